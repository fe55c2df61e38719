import type { InterludeMetadata, TurnTrigger } from './ag-ui';
import type { TurnKind } from './turn-places';

/**
 * An event as AG-UI clients are served it: only fields that the schema of its type knows, each of the type it says.
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
  /** `none`: no turn. The run holds what stands outside of turns, or says what there is to say to the client alone. */
  turn?: TurnKind;
  turnId?: string;
  /** The run goes on with a turn of which the client has seen a run, or that had begun before. */
  continues?: true;
  trigger?: TurnTrigger;
  userMessageIds?: string[];
}

/** On what a run says or does: what Interlude knows about it besides. */
export type ServedPart = Pick<InterludeMetadata, 'attachments' | 'clientId' | 'delivery' | 'from' | 'replyTo'>;
