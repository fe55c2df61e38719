import type { Client } from '@libsql/client';
import type { TransactionSource } from './write-queue';

/**
 * Write transactions on a database file.
 *
 * Failure: a prepared `BEGIN IMMEDIATE` that met a lock stays "in progress" in libSQL until it is garbage-collected,
 * and until then no transaction of its connection can commit. Statements run by `executeMultiple` are finalized at
 * once, so the lock is asked for that way: a deferred transaction, which needs none, is swapped for an immediate one.
 */
export function localWriter(client: Client): TransactionSource {
  return {
    transaction: async () => {
      const transaction = await client.transaction('deferred');
      try {
        await transaction.executeMultiple('COMMIT; BEGIN IMMEDIATE');
        return transaction;
      } catch (error) {
        transaction.close();
        throw error;
      }
    },
  };
}
