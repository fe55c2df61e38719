import type { InterludeMetadata, TurnTrigger } from './ag-ui';
import type { TurnKind } from './turn-places';

/**
 * An event as it is served to AG-UI clients: only fields that the schema of its type has, each with its type.
 *
 * @see `@ag-ui/core` 0.0.59 and 1.0.0
 */
export interface ServedEvent {
  type: string;
  /** Epoch milliseconds. */
  timestamp?: number;
  metadata?: { interlude?: ServedRun | ServedPart; [key: string]: unknown };
  /** Set on what a subagent said or did. */
  subagentRunId?: string;
  [field: string]: unknown;
}

/** On RUN_STARTED: which turn of the session the run is. */
export interface ServedRun {
  /** `none`: the run is no turn of the session. It holds what stands outside of turns, or what is for this client alone. */
  turn?: TurnKind;
  turnId?: string;
  /** The run continues a turn that had begun before. */
  continues?: true;
  trigger?: TurnTrigger;
  userMessageIds?: string[];
}

/** On a message, thought or call: what Interlude adds. */
export type ServedPart = Pick<InterludeMetadata, 'attachments' | 'clientId' | 'delivery' | 'from' | 'replyTo'>;
