import { listedScope, type Scope } from '@interlude/protocol/scope';
import { columnText } from './table-rows';

/**
 * Scopes as SQL conditions. They must agree with `reachesAgent`, `reachesSession` and `reachesLog`. Ids are quoted as
 * literals, so a condition fits into any statement.
 */

/** For rows with an agent. */
export function agentsIn(scope: Scope, agentId = 'agent_id'): string {
  if (scope.kind === 'everything') return 'TRUE';
  if (scope.kind !== 'agents') return 'FALSE';
  const named = `${agentId} IN (${scope.ids.map(literal).join(', ')})`;
  const byPrefix = scope.prefixes.map((prefix) => {
    const text = literal(prefix);
    return `substr(${agentId}, 1, length(${text})) = ${text}`;
  });
  return `(${[named, ...byPrefix].join(' OR ')})`;
}

/** For rows with a session and an agent. */
export function sessionsIn(scope: Scope, sessionId: string, agentId = 'agent_id'): string {
  return scope.kind === 'session' ? `${sessionId} = ${literal(scope.sessionId)}` : agentsIn(scope, agentId);
}

/** For sessions that appear in lists. */
export function listedSessionsIn(scope: Scope, id = 'id'): string {
  return sessionsIn(listedScope(scope), id);
}

/** For log lines and facts about a log. */
export function logsIn(scope: Scope, agentId = 'agent_id'): string {
  return scope.kind === 'log' ? `${agentId} = ${literal(scope.agentId)}` : agentsIn(scope, agentId);
}

/**
 * The newest position that a reader may know: with a scope, that of the newest row in the scope. The counter would
 * reveal how busy other agents are.
 *
 * Nearly every change in a session also changes the session's row, so other tables are only searched after that row's
 * position.
 */
export function positionIn(scope: Scope): string {
  if (scope.kind === 'everything') return 'SELECT position FROM counter';
  const newest = (table: string, column: string, which: string) =>
    `SELECT max(${column}) AS at FROM ${table} WHERE ${which}`;
  const logs = `SELECT max((SELECT max(position) FROM log_lines WHERE agent_id = l.agent_id)) AS at
    FROM agent_logs AS l WHERE ${logsIn(scope, 'l.agent_id')}`;
  const heads = [
    newest('sessions', 'updated_position', listedSessionsIn(scope)),
    newest('agents', 'updated_position', agentsIn(scope, 'id')),
    logs,
    ...(scope.kind === 'session' ? [newest('events', 'position', sessionsIn(scope, 'session_id'))] : []),
  ];
  const rest = ['tasks', 'obligations', 'inbox'].map((table) =>
    newest(
      table,
      'updated_position',
      `updated_position > (SELECT at FROM head) AND ${sessionsIn(scope, 'session_id')}`,
    ),
  );
  return `WITH head AS (SELECT ifnull(max(at), 0) AS at FROM (${heads.join(' UNION ALL ')}))
    SELECT max(at) AS position FROM (${['SELECT at FROM head', ...rest].join(' UNION ALL ')})`;
}

function literal(id: string): string {
  return `'${columnText(id).replaceAll("'", "''")}'`;
}
