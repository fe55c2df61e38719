import type { Client } from '@libsql/client';
import { AppError } from '@/lib/protocol/errors';
import type { DatabaseFile } from './database-file';
import { inTurns } from './in-turns';
import type { TransactionSource } from './write-queue';

/**
 * Write transactions on a database file. Each statement is answered on the event loop itself, so others get their turns
 * between them, whichever job they are of: no more than one is ever waited for.
 *
 * Failure: a prepared `BEGIN IMMEDIATE` that met a lock stays "in progress" in libSQL until it is garbage-collected,
 * and until then no transaction of its connection can commit. Statements run by `executeMultiple` are finalized at
 * once, so the lock is asked for that way: a deferred transaction, which needs none, is swapped for an immediate one.
 * A file that was deleted or replaced takes every write, and all of them are gone with the process: none is begun then.
 */
export function localWriter(client: Client, file: Pick<DatabaseFile, 'moved'>): TransactionSource {
  return {
    transaction: async () => {
      if (file.moved() !== null) throw movedAway();
      const transaction = await client.transaction('deferred');
      try {
        await transaction.executeMultiple('COMMIT; BEGIN IMMEDIATE');
        return inTurns(transaction);
      } catch (error) {
        transaction.close();
        throw error;
      }
    },
  };
}

/** The path is the operator's affair: the server's own log names it, when /readyz is asked. */
function movedAway(): AppError {
  const message =
    'The file of the database was deleted or replaced while it was open. Nothing was stored; put it back, or restart Interlude, then send this again.';
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}
