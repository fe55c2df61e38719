import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import type { ResultRows } from '@/db/reader';
import type { WriteTransaction } from '@/db/writes';

/** What a statement of a writing job was given and gave at most: what it is given and gives is copied on the event loop. */
export interface LargestStatement {
  argumentLength: number;
  rows: number;
}

/** Watches every write of a database from now on. */
export function largestStatement({ writes }: Database): LargestStatement {
  const largest: LargestStatement = { argumentLength: 0, rows: 0 };
  const see = (statements: InStatement[], results: ResultRows[]) => {
    for (const statement of statements) {
      const args = typeof statement === 'string' ? [] : Object.values(statement.args ?? []);
      const length = args.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
      largest.argumentLength = Math.max(largest.argumentLength, length);
    }
    for (const { rows } of results) largest.rows = Math.max(largest.rows, rows.length);
  };
  const watched = (transaction: WriteTransaction): WriteTransaction => ({
    ...transaction,
    execute: async (statement) => {
      const result = await transaction.execute(statement);
      see([statement], [result]);
      return result;
    },
    batch: async (statements) => {
      const results = await transaction.batch(statements);
      see(statements, results);
      return results;
    },
  });
  const run = writes.run.bind(writes);
  writes.run = (job, about) => run((transaction) => job(watched(transaction)), about);
  return largest;
}
