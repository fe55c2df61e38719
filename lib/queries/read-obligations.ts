import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { obligationFromRow } from '@/db/fleet-rows';
import type { ObligationList } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

/** A hook that asks wants to know whom the agent owes; nobody answers more than this in one go. */
const MAX_SHOWN = 200;

/**
 * The replies an agent owes, the oldest first. Its cost is that of what is owed, however much was ever said: it reads
 * a range of an index that holds nothing else.
 *
 * An agent nobody has heard of owes nothing: its runner asks before its first word.
 */
export async function readObligations(database: Database, agentId: string): Promise<ObligationList> {
  const [counter, owed] = await database.reader.batch(
    [
      COUNTER,
      {
        sql: `SELECT * FROM obligations INDEXED BY obligations_owed_by_agent
              WHERE agent_id = ? AND state = 'owed' ORDER BY position LIMIT ${MAX_SHOWN}`,
        args: [columnText(agentId)],
      },
    ],
    'read',
  );
  const obligations = (owed?.rows ?? []).map(obligationFromRow);
  return {
    position: counterOf(counter),
    obligations: obligations.map(({ messageId, sessionId, from, text, sentAt }) => ({
      messageId,
      sessionId,
      from,
      text,
      sentAt,
    })),
  };
}
