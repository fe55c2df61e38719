import type { Obligation, ObligationList, SessionObligations } from '@interlude/protocol/read-models';
import { OBLIGATION_ROW, obligationFromRow } from '@/db/read-model-rows';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { query, readTogether } from './read-together';

/** A hook asks whom the agent owes a reply; nobody answers more than this in one go. */
const MAX_SHOWN = 200;
/** Of what was settled, as much as somebody reads. */
const MAX_SETTLED = 20;

/**
 * The replies an agent owes, oldest first. The cost grows only with what is owed: it reads a range of an index that
 * holds nothing else.
 *
 * An agent nobody has heard of owes nothing: its runner asks before its first word.
 *
 * @param byAlias whether sessions go by the ids that the agent's runner knows
 */
export async function readObligations(sight: Sight, agentId: string, byAlias = false): Promise<ObligationList> {
  const sql = `SELECT ${OBLIGATION_ROW.columns()},
      (SELECT alias FROM session_aliases AS a WHERE a.session_id = obligations.session_id) AS alias FROM obligations INDEXED BY obligations_owed_by_agent
    WHERE agent_id = ? AND state = 'owed' AND ${agentsIn(sight.scope)} ORDER BY position LIMIT ?`;
  const owed = query(
    (row) => {
      const obligation = obligationFromRow(row);
      return byAlias && row.alias !== null ? { ...obligation, sessionId: String(row.alias) } : obligation;
    },
    sql,
    columnText(agentId),
    MAX_SHOWN,
  );
  const { position, found } = await readTogether(sight, [owed]);
  const shown = (obligation: Obligation) => {
    const { messageId, sessionId, from, text, sentAt, owedSince, isOverdue, candidate } = obligation;
    return { messageId, sessionId, from, text, sentAt, owedSince, isOverdue, candidate };
  };
  return { position, obligations: found[0].map(shown) };
}

/** What a session's agent owes in it, oldest first, and what was settled there last. Of a session nobody knows, nothing. */
export async function readSessionObligations(sight: Sight, sessionId: string): Promise<SessionObligations> {
  const columns = OBLIGATION_ROW.columns();
  const which = sessionsIn(sight.scope, 'session_id');
  const id = columnText(sessionId);
  const { position, found } = await readTogether(sight, [
    query(
      obligationFromRow,
      `SELECT ${columns} FROM obligations INDEXED BY obligations_owed_by_session
        WHERE session_id = ? AND state = 'owed' AND ${which} ORDER BY position LIMIT ?`,
      id,
      MAX_SHOWN,
    ),
    query(
      obligationFromRow,
      `SELECT ${columns} FROM obligations INDEXED BY obligations_settled
        WHERE session_id = ? AND state <> 'owed' AND ${which} ORDER BY updated_position DESC LIMIT ?`,
      id,
      MAX_SETTLED,
    ),
  ]);
  return { position, owed: found[0] ?? [], settled: found[1] ?? [] };
}
