import { listedScope, reachesAgent, reachesSession, type Scope } from '@interlude/protocol/scope';
import type { Row } from '@/lib/server/event-log/rows';

/**
 * Whether a row of the fleet is in a scope. Events and log lines are, because nobody listens to a session or a log that
 * is not in his.
 */
export function isInScope(row: Row, scope: Scope): boolean {
  if (scope.kind === 'everything' || row.kind === 'event' || row.kind === 'log') return true;
  const { columns } = row;
  if (row.kind === 'agent') return reachesAgent(scope, String(columns.id));
  const agentId = String(columns.agent_id);
  if (row.kind === 'session') return reachesSession(listedScope(scope), { agentId, sessionId: String(columns.id) });
  const id = columns.session_id;
  return reachesSession(scope, { agentId, sessionId: id === null ? null : String(id) });
}
