import type { Database } from '@/db/client';
import { type DueRows, type RowChoice, type RowSweep, selectDue, withinBytes } from '@/db/row-sweep';
import type { WriteKey, WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { AgentFact } from '@/lib/server/ingest/facts';
import type { RunSlice } from './remove-history';
import { recordRemoval } from './remove-turns';

/** A kind of rows that are removed one by one. */
interface OldRows {
  /** Name for the log. */
  kind: string;
  table: string;
  key: string;
  /** Column with the row's position. */
  at: string;
  /** Condition for rows that may be removed. */
  where: string;
  /** SQL expression for a row's WriteKey. */
  under: string;
  /** Statements that remove rows and their dependent rows, by keys as JSON. */
  removal: readonly string[];
  /** Maximum rows per transaction. */
  atOnce: number;
}

const KEYS = '(SELECT value FROM json_each(?1))';
const ROWS_AT_ONCE = 200;

/** The newest command of these types stays, because it remains in force at any age. */
const newest = (of: 'agent_id' | 'session_id', type: string, index: string) =>
  `WHEN '${type}' THEN position < (SELECT max(position) FROM commands AS newer INDEXED BY ${index}
    WHERE newer.${of} = commands.${of} AND newer.type = '${type}')`;

const COMMANDS: OldRows = {
  kind: 'old command',
  table: 'commands INDEXED BY commands_ended',
  key: 'id',
  at: 'position',
  where: `state NOT IN ('queued', 'delivered') AND CASE type
    ${newest('agent_id', 'log-level.set', 'commands_of_level')}
    ${newest('session_id', 'wake-rule.set', 'commands_of_waking')} ELSE true END`,
  under: `'agent:' || agent_id`,
  removal: [`DELETE FROM asks WHERE command_id IN ${KEYS}`, `DELETE FROM commands WHERE id IN ${KEYS}`],
  atOnce: ROWS_AT_ONCE,
};

/** Requests that required no runner. */
const ASKS: OldRows = {
  kind: 'old request',
  table: 'asks INDEXED BY asks_by_command',
  key: 'rowid',
  at: 'asked_position',
  where: 'command_id IS NULL',
  under: `(SELECT 'agent:' || agent_id FROM sessions WHERE id = asks.session_id)`,
  removal: [`DELETE FROM asks WHERE rowid IN ${KEYS}`],
  atOnce: ROWS_AT_ONCE,
};

/** An unseen failure stays, because it marks its session. */
const INSIGHTS: OldRows = {
  kind: 'insight',
  table: 'insights',
  key: 'position',
  at: 'position',
  where: '(seen_at IS NOT NULL OR NOT is_failure)',
  under: `'agent:' || agent_id`,
  removal: [`DELETE FROM insights WHERE position IN ${KEYS}`],
  atOnce: ROWS_AT_ONCE,
};

/** Kinds whose items open only once. Items of other kinds exist once per session or agent, and may reopen. */
const ITEMS: OldRows = {
  kind: 'inbox item',
  table: 'inbox INDEXED BY inbox_done',
  key: 'id',
  at: 'updated_position',
  where: `done_at IS NOT NULL AND kind IN ('permission', 'question', 'overdue-reply')`,
  under: `'agent:' || agent_id`,
  removal: [recordRemoval('inbox', `id IN ${KEYS}`), `DELETE FROM inbox WHERE id IN ${KEYS}`],
  atOnce: ROWS_AT_ONCE,
};

const RESULTS: OldRows = {
  ...ITEMS,
  kind: 'inbox item of task',
  table: 'inbox INDEXED BY inbox_delivered',
  where: `done_at IS NOT NULL AND kind = 'undelivered'`,
};

const DELIVERIES: OldRows = {
  kind: 'webhook delivery',
  table: 'webhook_deliveries',
  key: 'position',
  at: 'position',
  where: `state <> 'waiting'`,
  under: `'webhook'`,
  removal: [`DELETE FROM webhook_deliveries WHERE position IN ${KEYS}`],
  atOnce: ROWS_AT_ONCE,
};

const REMOVED_UP_TO = '(SELECT removed_up_to FROM sessions WHERE id = attachments.session_id)';

/**
 * Attachments of removed messages. A message that a later turn shows may still refer to one. Few events remain before
 * the cut.
 */
const ATTACHMENTS: OldRows = {
  kind: 'attachment of old turns',
  table: 'attachments',
  key: 'rowid',
  at: 'rowid',
  where: `is_named = 1 AND named_position < ${REMOVED_UP_TO} AND NOT EXISTS (SELECT 1 FROM events
    WHERE session_id = attachments.session_id AND position <= ${REMOVED_UP_TO}
    AND type LIKE 'TEXT_MESSAGE%' AND turn_id NOT LIKE 'task:%' AND instr(payload, attachments.hash) > 0)`,
  under: `'session:' || session_id`,
  removal: [
    `DELETE FROM attachment_parts WHERE (session_id, hash) IN (
      SELECT session_id, hash FROM attachments WHERE rowid IN ${KEYS})`,
    `DELETE FROM attachments WHERE rowid IN ${KEYS}`,
  ],
  // each may hold megabytes
  atOnce: 4,
};

/**
 * Removes rows without a turn by their own age, once they have ended, and rows of removed turns.
 *
 * Failure: a row that fails is skipped, see RowSweep. The next call continues.
 *
 * @param limit the newest position that may be removed
 */
export async function removeRows(database: Database, rows: RowSweep, limit: number, paced: RunSlice): Promise<void> {
  for (const old of limit > 0 ? [COMMANDS, ASKS, INSIGHTS, ITEMS, RESULTS, DELIVERIES] : []) {
    await removeKind(database, rows, old, limit, paced);
  }
  await removeKind(database, rows, ATTACHMENTS, Number.MAX_SAFE_INTEGER, paced);
}

async function removeKind(
  { reader, writes }: Database,
  rows: RowSweep,
  old: OldRows,
  limit: number,
  paced: RunSlice,
): Promise<void> {
  const { kind, table, key, at, where } = old;
  const dueAfter = (after: number): DueRows => {
    const args = [after, limit];
    return { table, key, where: `${where} AND ${at} > ?1 AND ${at} <= ?2`, args, order: at };
  };
  // Rows up to this position were examined; those that remain stay.
  let after = 0;
  await rows.run({
    kind,
    due: dueAfter(0),
    work: async (choice) => {
      const query = selectDue(dueAfter(choice.only === null ? after : 0), choice, `${key}, ${at} AS at`, 1);
      const [first] = (await reader.execute(query)).rows;
      if (first === undefined) return 0;
      const before = Number(first.at) - 1;
      let removed = 0;
      await paced(async () => {
        removed = await writes.run((transaction) => removeSlice(transaction, old, dueAfter(before), choice));
      });
      if (choice.only === null) after = before;
      return removed;
    },
  });
}

async function removeSlice(
  transaction: WriteTransaction,
  { key, under, removal, atOnce }: OldRows,
  due: DueRows,
  choice: RowChoice,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(due, choice, `${key} AS id, ${under} AS under`, atOnce));
  if (rows.length === 0) return 0;
  for (const { under: touched } of rows) if (touched !== null) transaction.touch(String(touched) as WriteKey);
  const keys = JSON.stringify(rows.map(({ id }) => id));
  await transaction.batch(removal.map((sql) => ({ sql, args: [keys] })));
  return rows.length;
}

/** Maximum records and bytes per transaction. Each record may belong to another session, which is read and written. */
const RECORDS_AT_ONCE = 50;
const RECORD_BYTES_AT_ONCE = 8 * 1024 * 1024;

/** A settled record stays for a while, so repeating the decision gives the same answer. */
const SETTLED_FOR_MS = 24 * 60 * 60_000;

/** Records that are settled, or can't be settled. */
function oldRecords(limit: number, now: number): DueRows {
  const where = `ifnull(parked, '') <> 'parked' AND position <= ?1 AND ifnull(settled_at, 0) <= ?2`;
  const table = 'quarantine INDEXED BY quarantine_settled';
  return { table, key: 'position', where, args: [limit, now - SETTLED_FOR_MS] };
}

/**
 * Removes old quarantined records. Those that can still be settled stay.
 *
 * Ordering: oldest first.
 * Failure: the same transaction subtracts a record from the counts of its agent and session. A record that fails is
 * skipped, see RowSweep.
 *
 * @param limit the newest position that may be removed
 */
export async function removeQuarantined(
  { reader, writes }: Database,
  rows: RowSweep,
  limit: number,
  now: number,
  paced: RunSlice,
): Promise<void> {
  const due = oldRecords(limit, now);
  await rows.run({
    kind: 'quarantined record',
    due,
    work: async (choice) => {
      const { rows: found } = await reader.execute(selectDue(due, choice, due.key, 1));
      let removed = 0;
      if (found.length > 0) {
        await paced(async () => {
          removed = await writes.run((transaction) => removeRecords(transaction, due, choice, now));
        });
      }
      return removed;
    },
  });
}

async function removeRecords(
  transaction: WriteTransaction,
  due: DueRows,
  choice: RowChoice,
  now: number,
): Promise<number> {
  const columns = 'position, agent_id, session_id, parked, octet_length(record) AS size';
  const { rows } = await transaction.execute(selectDue(due, choice, columns, RECORDS_AT_ONCE));
  const gone = withinBytes(rows, RECORD_BYTES_AT_ONCE);
  const positions = gone.map(({ position }) => Number(position));
  const uncounted = new Map<string, Map<string | null, number>>();
  for (const { agent_id, session_id, parked } of gone) {
    if (agent_id === null) continue;
    const agentId = String(agent_id);
    transaction.touch(`agent:${agentId}`);
    // Settled records are no longer counted.
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
