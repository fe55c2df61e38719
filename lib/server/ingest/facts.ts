import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { DesiredLogLevel, WakeRule } from '@interlude/protocol/commands';
import type { InboxMarks } from '@interlude/protocol/inbox';
import type { Position } from '@interlude/protocol/position';
import type { TaskRef } from '@interlude/protocol/projections/tasks';
import type { Arrangement } from '@interlude/protocol/read-models';
import type { FailureTally, UnseenFailures } from './batch-sessions';

/** An event that the server writes into a session. */
export interface EventFact {
  agentId: string;
  sessionId: string;
  /** Epoch milliseconds, for an event that was reported earlier but could not be stored then. Default: now. */
  occurredAt?: number;
  event: AgUiEvent;
}

/**
 * A change that the server makes to an agent or its sessions. Only runner, retirement and level facts publish the
 * agent's row.
 */
export type AgentFact = { agentId: string } & (
  | { kind: 'runner-connected'; runnerId: string }
  | { kind: 'runner-away' }
  | { kind: 'agent-retired'; retiredAt: number | null }
  | { kind: 'level-requested'; desired: DesiredLogLevel | null }
  | { kind: 'session-arranged'; sessionId: string; arrangement: Arrangement }
  | { kind: 'wake-rule-set'; sessionId: string; when: WakeRule | null }
  | { kind: 'inbox-marked'; marks: ReadonlyMap<string, InboxMarks> }
  /** Time alone may have changed the state. `usualSilenceMs`: the 99th percentile of this kind of agent's silences. */
  | { kind: 'state-due'; sessionId: string; usualSilenceMs: number }
  | { kind: 'reply-overdue'; sessionId: string; messageId: string }
  | ({ kind: 'task-undelivered'; sessionId: string; position: Position } & TaskRef)
  /** The server's clock was stepped. `lastSeenAt` is on the new clock. */
  | { kind: 'clock-moved'; lastSeenAt: number }
  /**
   * A person has seen the failures up to a position. `unseen` holds the remaining ones, from which these sessions'
   * marks are recounted.
   */
  | { kind: 'marks-seen'; upTo: number; unseen: UnseenFailures; sessionIds: readonly string[] }
  /**
   * Retention removed unsettled quarantined records. `counts`: their number by the session that they named, null for
   * none.
   */
  | { kind: 'quarantine-removed'; counts: ReadonlyMap<string | null, number> }
  /** A person has seen failures of the agent. `remaining`: number of the remaining ones. */
  | { kind: 'failures-seen'; remaining: FailureTally }
);
