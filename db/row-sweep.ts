import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement, InValue } from '@libsql/client';
import { isInputsFault } from './database-error';
import type { Reader } from './reader';

/** Which of a sweep's rows to take: one of them, or all but some. */
export interface RowChoice {
  only: string | null;
  except: readonly string[];
}

export const EVERY_ROW: RowChoice = { only: null, except: [] };

/** A condition on a column, with `?first` and the number behind it, which `choiceArgs` fills. */
export function isChosen(column: string, first: number): string {
  return `(?${first} IS NULL OR ${column} = ?${first}) AND ${column} NOT IN (SELECT value FROM json_each(?${first + 1}))`;
}

export function choiceArgs({ only, except }: RowChoice): InValue[] {
  return [only, JSON.stringify(except)];
}

/** Rows that are due. */
export interface DueRows {
  table: string;
  /** The column that identifies them. */
  key: string;
  /** The condition under which a row is due, with `args` by number. */
  where: string;
  args: readonly InValue[];
  order?: string;
}

/** Most rows of one transaction. */
const MAX_DUE = 100;
/** For work that takes its rows one by one. */
export const ALL_DUE = -1;

/** The due rows among the chosen ones. */
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

/** Whether there is something to do at all. */
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
  /** What the rows are, for the log. */
  kind: string;
  due: DueRows;
  /** Does some of what is due. @returns how many rows; call again until it is 0 */
  work: (choice: RowChoice) => Promise<number>;
}

/**
 * Work that falls due row by row and is done in bulk. A row that can't be worked on, whatever is wrong with it, holds
 * up no other: it is set aside, which is logged once, and left alone for the life of this process.
 *
 * Failure: an error that is not a row's own, such as one of the database itself, is passed on, and sets nothing aside.
 */
export class RowSweep {
  readonly #reader: Pick<Reader, 'execute'>;
  readonly #parked = new Map<string, Set<string>>();

  constructor(reader: Pick<Reader, 'execute'>) {
    this.#reader = reader;
  }

  async run({ kind, due, work }: RowWork): Promise<void> {
    const parked = this.#parked.get(kind) ?? new Set();
    this.#parked.set(kind, parked);
    for (let barren = 0; ; ) {
      try {
        while ((await work({ only: null, except: [...parked] })) > 0);
        return;
      } catch (error) {
        if (!isInputsFault(error)) throw error;
        const before = parked.size;
        const { rows } = await this.#reader.execute(selectDue(due, { only: null, except: [...parked] }));
        for (const row of rows) await this.#alone(kind, parked, String(row[due.key]), work);
        // each row could be worked on by itself, so together they should not fail either
        barren = parked.size === before ? barren + 1 : 0;
        if (barren > 1) throw error;
      }
    }
  }

  async #alone(kind: string, parked: Set<string>, row: string, work: RowWork['work']): Promise<void> {
    try {
      while ((await work({ only: row, except: [] })) > 0);
    } catch (error) {
      if (!isInputsFault(error)) throw error;
      parked.add(row);
      serverLog('warn', `${kind} ${JSON.stringify(row)} is left alone: it can't be worked on`, { error });
    }
  }
}

/** The first of them, and as many more as have no more than `most` bytes together. `size`: of each, in bytes. */
export function withinBytes<Row extends object>(rows: readonly (Row & { size?: unknown })[], most: number): Row[] {
  let bytes = 0;
  const end = rows.findIndex(({ size }, at) => {
    bytes += Number(size);
    return at > 0 && bytes > most;
  });
  return end < 0 ? [...rows] : rows.slice(0, end);
}
