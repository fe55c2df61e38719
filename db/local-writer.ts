import { AppError } from '@/lib/protocol/errors';
import type { DatabaseFile } from './database-file';
import type { LocalConnection, Place } from './local-connection';
import { Pace } from './next-turn';
import { inOrder } from './reader';
import type { TransactionSource, WriteTransaction } from './write-queue';

/**
 * Write transactions on a database file, over the one connection that writes. Most are over in a few milliseconds on the
 * event loop, which a thread would only make longer; for the rest of one that is not, nobody else waits, nor for any
 * commit, which waits for the disk.
 *
 * Failure: a file that was deleted or replaced takes every write, and all of them are gone with the process: none is
 * begun then.
 */
export function localWriter(connection: LocalConnection, file: Pick<DatabaseFile, 'moved'>): TransactionSource {
  return {
    transaction: async () => {
      let place: Place = 'loop';
      if (file.moved() !== null) throw movedAway();
      await connection.run('BEGIN IMMEDIATE', 'loop');
      const pace = new Pace();
      const execute: WriteTransaction['execute'] = async (statement) => {
        const answer = await connection.execute(statement, place);
        if (pace.isDue) {
          place = 'thread';
          await pace.rest();
        }
        return answer;
      };
      return {
        execute,
        batch: (statements) => inOrder(statements, execute),
        commit: () => connection.run('COMMIT', 'thread'),
        close: async () => {
          // whatever it fails at, SQLite has left the transaction then
          if (connection.isInTransaction) await connection.run('ROLLBACK', 'thread').catch(() => undefined);
        },
      };
    },
  };
}

/** The path is the operator's affair: the server's own log names it, when /readyz is asked. */
function movedAway(): AppError {
  const message =
    'The file of the database was deleted or replaced while it was open. Nothing was stored; put it back, or restart Interlude, then send this again.';
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}
