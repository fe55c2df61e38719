import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { DesiredLogLevel } from '@/lib/protocol/log-levels';
import type { UnseenFailures } from './failure-tally';

/** What the server itself has to say in a session. */
export interface EventFact {
  agentId: string;
  sessionId: string;
  /** When it happened, where that is not now: of what was told before and could not be taken then. */
  occurredAt?: number;
  event: AgUiEvent;
}

/** What the server knows of an agent, whose row follows from it. */
export type AgentFact = { agentId: string } & (
  | { kind: 'runner-connected'; runnerId: string }
  | { kind: 'runner-away' }
  | { kind: 'level-asked'; desired: DesiredLogLevel | null }
  /** The clock was moved: the agent was last seen at this time of the new one. */
  | { kind: 'clock-moved'; lastSeenAt: number }
  /** A person has looked at the failures up to a position. Of these sessions the marks are counted anew. */
  | { kind: 'failures-seen'; upTo: number; unseen: UnseenFailures; sessionIds: readonly string[] }
);
