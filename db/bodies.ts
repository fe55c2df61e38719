import type { InboxItem, InboxMarks } from '@interlude/protocol/inbox';
import type { AgentSummary, Obligation, SessionSummary, Task } from '@interlude/protocol/read-models';

/** The JSON part of a row in the fleet's tables: everything that has no column. */

type AgentColumn = 'id' | 'lastSeenAt' | 'updatedPosition';
type SessionColumn =
  | 'id'
  | 'agentId'
  | 'state'
  | 'lastEventAt'
  | 'stateDueAt'
  | 'answerBy'
  | 'insightCount'
  | 'otherFailureCount'
  | 'wakeRule'
  | 'updatedPosition';
type TaskColumn = 'sessionId' | 'agentId' | 'status' | 'startedAt' | 'endedAt' | 'position';
type ObligationColumn = 'sessionId' | 'agentId' | 'state' | 'owedSince' | 'isOverdue' | 'position';

export type AgentBody = Omit<AgentSummary, AgentColumn>;
export type SessionBody = Omit<SessionSummary, SessionColumn>;
/** The id is here too, exactly as sent: the column may hold it with changes that SQLite needs (`columnText`). */
export type TaskBody = Omit<Task, TaskColumn>;
export type InboxBody = Omit<
  InboxItem,
  keyof InboxMarks | 'id' | 'kind' | 'agentId' | 'sessionId' | 'since' | 'updatedPosition'
>;
export type ObligationBody = Omit<Obligation, ObligationColumn>;
