import type { AgentSummary, Obligation, SessionSummary, Task } from '@/lib/protocol/read-models';

/** What of a row of the fleet's tables is JSON: all that has no column. */

type AgentColumn = 'id' | 'lastSeenAt' | 'updatedPosition';
type SessionColumn =
  | 'id'
  | 'agentId'
  | 'state'
  | 'lastEventAt'
  | 'answerBy'
  | 'insightCount'
  | 'otherFailureCount'
  | 'updatedPosition';
type TaskColumn = 'sessionId' | 'agentId' | 'status' | 'startedAt' | 'endedAt' | 'position';
type ObligationColumn = 'sessionId' | 'agentId' | 'state' | 'position';

export type AgentBody = Omit<AgentSummary, AgentColumn>;
export type SessionBody = Omit<SessionSummary, SessionColumn>;
/** The id is here too, as it was sent: its column holds it as SQLite can. */
export type TaskBody = Omit<Task, TaskColumn>;
export type ObligationBody = Omit<Obligation, ObligationColumn>;
