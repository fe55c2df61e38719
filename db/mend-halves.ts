import { stringifyWellFormed } from '@/lib/protocol/well-formed';
import type { WriteTransaction } from './write-queue';

/** Columns of JSON that may hold what agents and people said. */
const COLUMNS: Record<string, readonly string[]> = {
  events: ['payload'],
  quarantine: ['record'],
  sessions: ['body', 'places', 'memory'],
  agents: ['body'],
  tasks: ['body'],
  obligations: ['body'],
  turns: ['trigger', 'user_message_ids'],
  commands: ['body', 'result'],
  log_lines: ['marker'],
  log_chunks: ['components'],
};

/** Of one page; a row may have megabytes. */
const ROWS = 50;

/**
 * Takes half surrogate pairs out of what was stored before every door made its strings well-formed: such a text, taken
 * out of its JSON by SQL, ends the process. It is looked for as it stands in JSON, which is safe to read.
 *
 * Failure: it runs inside the caller's transaction and commits nothing itself. What is no JSON is left as it is.
 */
export async function mendHalves(transaction: WriteTransaction): Promise<void> {
  for (const [table, columns] of Object.entries(COLUMNS)) {
    const isSuspect = columns.map((column) => `${column} LIKE '%\\ud%'`).join(' OR ');
    const page = `SELECT rowid AS row_id, ${columns.join(', ')} FROM ${table}
      WHERE rowid > ? AND (${isSuspect}) ORDER BY rowid LIMIT ${ROWS}`;
    for (let after = -1, isLast = false; !isLast; ) {
      const { rows } = await transaction.execute({ sql: page, args: [after] });
      for (const row of rows) {
        after = Number(row.row_id);
        const before = columns.map((column) => (row[column] === null ? null : String(row[column])));
        const mended = before.map((json) => (json === null ? null : mendedJson(json)));
        if (mended.every((json, index) => json === before[index])) continue;
        const set = columns.map((column) => `${column} = ?`).join(', ');
        await transaction.execute({ sql: `UPDATE ${table} SET ${set} WHERE rowid = ?`, args: [...mended, after] });
      }
      isLast = rows.length < ROWS;
    }
  }
}

function mendedJson(json: string): string {
  try {
    return stringifyWellFormed(JSON.parse(json));
  } catch {
    return json;
  }
}
