import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement, InValue } from '@libsql/client';
import { isInputError } from './database-error';
import type { Reader } from './reader';

/** Selects one of a sweep's rows, or all but some. */
export interface RowChoice {
  only: string | null;
  except: readonly string[];
}

export const EVERY_ROW: RowChoice = { only: null, except: [] };

/** A condition on a column, with `?first` and the next parameter, which `choiceArgs` fills. */
export function isChosen(column: string, first: number): string {
  return `(?${first} IS NULL OR ${column} = ?${first}) AND ${column} NOT IN (SELECT value FROM json_each(?${first + 1}))`;
}

export function choiceArgs({ only, except }: RowChoice): InValue[] {
  return [only, JSON.stringify(except)];
}

export interface DueRows {
  table: string;
  /** Column that identifies a row. */
  key: string;
  /** Condition for a due row, with `args` by number. */
  where: string;
  args: readonly InValue[];
  order?: string;
}

/** Maximum rows per transaction. */
const MAX_DUE = 100;
/** As `limit` of `selectDue`: all due rows. */
export const ALL_DUE = -1;

export function selectDue(
  { table, key, where, args, order = key }: DueRows,
  choice: RowChoice,
  columns = key,
  limit = MAX_DUE,
): InStatement {
  return {
    sql: `SELECT ${columns} FROM ${table} WHERE ${where} AND ${isChosen(key, args.length + 1)}
      ORDER BY ${order} LIMIT ${limit}`,
    args: [...args, ...choiceArgs(choice)],
  };
}

export function isAnyDue(all: readonly DueRows[]): InStatement {
  const args: InValue[] = [];
  const exists = all.map(({ table, where, args: own }) => {
    const first = args.length;
    args.push(...own);
    return `EXISTS (SELECT 1 FROM ${table} WHERE ${where.replaceAll(/\?(\d+)/g, (_, at) => `?${first + Number(at)}`)})`;
  });
  return { sql: `SELECT ${exists.join(' OR ')} AS is_any_due`, args };
}

export async function hasDue(reader: Pick<Reader, 'execute'>, all: readonly DueRows[]): Promise<boolean> {
  const { rows } = await reader.execute(isAnyDue(all));
  return Number(rows[0]?.is_any_due) === 1;
}

export interface RowWork {
  /** Name of the rows, for the log. */
  kind: string;
  due: DueRows;
  /** Processes some due rows. @returns the number of processed rows; the sweep calls again until it is 0 */
  work: (choice: RowChoice) => Promise<number>;
}

/**
 * Processes due rows in bulk. A failing row does not block the others: it is logged once, and skipped for the life of
 * this process.
 *
 * Failure: an error that no row causes, such as a database failure, is thrown and marks no row as failing.
 */
export class RowSweep {
  readonly #reader: Pick<Reader, 'execute'>;
  readonly #skipped = new Map<string, Set<string>>();

  constructor(reader: Pick<Reader, 'execute'>) {
    this.#reader = reader;
  }

  async run({ kind, due, work }: RowWork): Promise<void> {
    const skipped = this.#skipped.get(kind) ?? new Set();
    this.#skipped.set(kind, skipped);
    for (let failures = 0; ; ) {
      try {
        while ((await work({ only: null, except: [...skipped] })) > 0);
        return;
      } catch (error) {
        if (!isInputError(error)) throw error;
        const before = skipped.size;
        const { rows } = await this.#reader.execute(selectDue(due, { only: null, except: [...skipped] }));
        for (const row of rows) await this.#runAlone(kind, skipped, String(row[due.key]), work);
        // If each row succeeds alone, a repeated failure of all together has another cause.
        failures = skipped.size === before ? failures + 1 : 0;
        if (failures > 1) throw error;
      }
    }
  }

  async #runAlone(kind: string, skipped: Set<string>, row: string, work: RowWork['work']): Promise<void> {
    try {
      while ((await work({ only: row, except: [] })) > 0);
    } catch (error) {
      if (!isInputError(error)) throw error;
      skipped.add(row);
      serverLog('warn', `${kind} ${JSON.stringify(row)} is skipped: processing failed`, { error });
    }
  }
}

/** Returns the first rows up to a total `size` of `most` bytes, and at least one. */
export function withinBytes<Row extends object>(rows: readonly (Row & { size?: unknown })[], most: number): Row[] {
  let bytes = 0;
  const end = rows.findIndex(({ size }, index) => {
    bytes += Number(size);
    return index > 0 && bytes > most;
  });
  return end < 0 ? [...rows] : rows.slice(0, end);
}
