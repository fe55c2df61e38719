import type { Database } from '@/db/client';
import { type DueRows, type RowChoice, type RowSweep, selectDue } from '@/db/row-sweep';
import { withinBytes } from '@/db/within-bytes';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { AgentFact } from '@/lib/server/ingest/facts';
import type { Paced } from './remove-history';

/** Most records of one transaction: each may be of a session of its own, which is read and written. */
const RECORDS_AT_ONCE = 50;
/** And most bytes of them, after the first. */
const BYTES_AT_ONCE = 8 * 1024 * 1024;

/** Whoever has just settled a record sees what became of it, and may ask for the same again. */
const SETTLED_FOR_MS = 24 * 60 * 60_000;

/** What waits for nobody: it was settled, or can only be looked at. */
function oldRecords(limit: number, now: number): DueRows {
  const where = `ifnull(parked, '') <> 'parked' AND position <= ?1 AND ifnull(settled_at, 0) <= ?2`;
  const table = 'quarantine INDEXED BY quarantine_settled';
  return { table, key: 'position', where, args: [limit, now - SETTLED_FOR_MS] };
}

/**
 * Removes old records from quarantine. What can be settled still stays.
 *
 * Ordering: oldest first.
 * Failure: what is removed is no longer counted, of its agent and its session, from the same commit on. A record that
 * can't be worked on is left alone, see RowSweep.
 *
 * @param limit the newest position that may go
 */
export async function removeQuarantined(
  { reader, writes }: Database,
  rows: RowSweep,
  limit: number,
  now: number,
  paced: Paced,
): Promise<void> {
  const due = oldRecords(limit, now);
  await rows.run({
    kind: 'the record in quarantine at',
    due,
    work: async (choice) => {
      const { rows: found } = await reader.execute(selectDue(due, choice, due.key, 1));
      let removed = 0;
      if (found.length > 0) {
        await paced(async () => {
          removed = await writes.run((transaction) => removeSome(transaction, due, choice, now));
        });
      }
      return removed;
    },
  });
}

async function removeSome(
  transaction: WriteTransaction,
  due: DueRows,
  choice: RowChoice,
  now: number,
): Promise<number> {
  const columns = 'position, agent_id, session_id, parked, octet_length(record) AS size';
  const { rows } = await transaction.execute(selectDue(due, choice, columns, RECORDS_AT_ONCE));
  const gone = withinBytes(rows, BYTES_AT_ONCE);
  const positions = gone.map(({ position }) => Number(position));
  const uncounted = new Map<string, Map<string | null, number>>();
  for (const { agent_id, session_id, parked } of gone) {
    if (agent_id === null) continue;
    const agentId = String(agent_id);
    transaction.touch(`agent:${agentId}`);
    // what was settled is counted no more
    if (parked !== null) continue;
    const sessionId = session_id === null ? null : String(session_id);
    const counts = uncounted.get(agentId) ?? new Map<string | null, number>();
    uncounted.set(agentId, counts.set(sessionId, (counts.get(sessionId) ?? 0) + 1));
  }
  const facts = [...uncounted].map(([agentId, counts]): AgentFact => ({ kind: 'quarantine-removed', agentId, counts }));
  await appendFacts(transaction, now, facts);
  await transaction.execute({
    sql: 'DELETE FROM quarantine WHERE position IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(positions)],
  });
  return positions.length;
}
