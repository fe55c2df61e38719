import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { OBLIGATION_ROW, obligationFromRow } from '@/db/fleet-rows';
import type { Obligation, ObligationList } from '@/lib/protocol/read-models';
import { query, readTogether } from './read-together';

/** A hook that asks wants to know whom the agent owes; nobody answers more than this in one go. */
const MAX_SHOWN = 200;

/**
 * The replies an agent owes, the oldest first. Its cost is that of what is owed, however much was ever said: it reads
 * a range of an index that holds nothing else.
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
