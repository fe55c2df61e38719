import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { WakeRule } from '@interlude/protocol/commands';
import type { InboxMarks } from '@interlude/protocol/inbox';
import type { DesiredLogLevel } from '@interlude/protocol/log-levels';
import type { Position } from '@interlude/protocol/position';
import type { TaskRef } from '@interlude/protocol/projections/tasks';
import type { Arrangement } from '@interlude/protocol/read-models';
import type { FailureTally, UnseenFailures } from './batch-sessions';

/** What the server itself has to say in a session. */
export interface EventFact {
  agentId: string;
  sessionId: string;
  /** When it happened, if not now: for something that was told earlier and could not be taken then. */
  occurredAt?: number;
  event: AgUiEvent;
}

/** What the server knows of an agent, whose row follows from it. */
export type AgentFact = { agentId: string } & (
  | { kind: 'runner-connected'; runnerId: string }
  | { kind: 'runner-away' }
  /** A person has put it away, or taken it back. */
  | { kind: 'agent-retired'; retiredAt: number | null }
  | { kind: 'level-asked'; desired: DesiredLogLevel | null }
  /** A person has arranged a session. The agent's own row does not change. */
  | { kind: 'session-arranged'; sessionId: string; arrangement: Arrangement }
  /** When people want the agent of a session woken; null if no rule holds. The agent's own row does not change. */
  | { kind: 'wake-rule-set'; sessionId: string; when: WakeRule | null }
  /** People have marked inbox items of the agent or its sessions. The agent's own row does not change. */
  | { kind: 'inbox-marked'; marks: ReadonlyMap<string, InboxMarks> }
  /**
   * Time alone may have changed the state of a session. `usualSilenceMs`: the 99th percentile of its kind's silences. The
   * agent's own row does not change.
   */
  | { kind: 'state-due'; sessionId: string; usualSilenceMs: number }
  /** A reply is owed for too long by now. The agent's own row changes only by its count. */
  | { kind: 'reply-overdue'; sessionId: string; messageId: string }
  /** The result of a task was not delivered in time. The agent's own row does not change. */
  | ({ kind: 'task-undelivered'; sessionId: string; position: Position } & TaskRef)
  /** The clock was moved: on the new clock, the agent was last seen at this time. */
  | { kind: 'clock-moved'; lastSeenAt: number }
  /**
   * A person has looked at the failures up to a position, which leaves these in these sessions and around all of them.
   * Their marks are counted anew. The agent's own row does not change.
   */
  | { kind: 'marks-seen'; upTo: number; unseen: UnseenFailures; sessionIds: readonly string[] }
  /**
   * Records are gone from quarantine that nobody had settled: so many that named each session, null for those that named
   * none.
   */
  | { kind: 'quarantine-removed'; counts: ReadonlyMap<string | null, number> }
  /** A person has looked at failures, which leaves so many. */
  | { kind: 'failures-seen'; left: FailureTally }
);
