import type { InStatement, ResultSet, Transaction } from '@libsql/client';
import { Pace } from './next-turn';
import type { TransactionSource } from './write-queue';

/**
 * A transaction on a database file, where each statement is answered on the event loop itself: others get their turns
 * between its statements, so that no more than one is ever waited for.
 */
export function inTurns(transaction: Transaction): Awaited<ReturnType<TransactionSource['transaction']>> {
  const pace = new Pace();
  const execute = async (statement: InStatement): Promise<ResultSet> => {
    const result = await transaction.execute(statement);
    if (pace.isDue) await pace.rest();
    return result;
  };
  return {
    execute,
    batch: async (statements) => {
      const results: ResultSet[] = [];
      for (const statement of statements) results.push(await execute(statement));
      return results;
    },
    commit: () => transaction.commit(),
    close: () => transaction.close(),
  };
}
