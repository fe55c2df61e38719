import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { OBLIGATION_ROW, obligationFromRow } from '@/db/fleet-rows';
import type { Obligation, ObligationList } from '@/lib/protocol/read-models';
import { query, readTogether } from './read-together';

/** A hook asks whom the agent owes a reply; nobody answers more than this in one go. */
const MAX_SHOWN = 200;

/**
 * The replies an agent owes, oldest first. The cost grows only with what is owed: it reads a range of an index that
 * holds nothing else.
 *
 * An agent nobody has heard of owes nothing: its runner asks before its first word.
 */
export async function readObligations({ reader }: Database, agentId: string): Promise<ObligationList> {
  const sql = `SELECT ${OBLIGATION_ROW.columns()} FROM obligations INDEXED BY obligations_owed_by_agent
    WHERE agent_id = ? AND state = 'owed' ORDER BY position LIMIT ?`;
  const owed = query(obligationFromRow, sql, columnText(agentId), MAX_SHOWN);
  const { position, found } = await readTogether(reader, [owed]);
  const shown = ({ messageId, sessionId, from, text, sentAt }: Obligation) => ({
    messageId,
    sessionId,
    from,
    text,
    sentAt,
  });
  return { position, obligations: found[0].map(shown) };
}
