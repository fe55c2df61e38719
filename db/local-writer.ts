import { AppError } from '@interlude/protocol/errors';
import type { InStatement } from '@libsql/client';
import type { DatabaseFile } from './database-file';
import type { LocalConnection, Place } from './local-connection';
import { Pace } from './next-turn';
import { inOrder } from './reader';
import type { TransactionSource } from './write-queue';
import type { WriteTransaction } from './writes';

/** Copies the log into the file, as far as no reader prevents it. */
const CHECKPOINT = 'PRAGMA wal_checkpoint(PASSIVE)';

/** How long the statements of one transaction may take on the event loop; the others run on a thread. */
const MAX_LOOP_MS = 10;

/**
 * Write transactions on a database file, over the one connection that writes. Most take a few milliseconds on the event
 * loop, and a thread would only add to that. A longer one continues on a thread, and so does every commit, which waits
 * for the disk: nobody else waits for either.
 *
 * Failure: a file that was deleted or replaced, or whose log was cut short, accepts every write and loses all of them
 * with the process, so no transaction is begun then.
 */
export function localWriter(
  connection: LocalConnection,
  file: Pick<DatabaseFile, 'changed' | 'committed' | 'lacksOnlyItsLog'>,
): TransactionSource {
  return {
    transaction: async () => {
      let place: Place = 'loop';
      if ((await file.changed()) !== null) {
        // The log was deleted but is still open: what was acknowledged is copied from it into the file.
        if (file.lacksOnlyItsLog()) await connection.run(CHECKPOINT, 'thread').catch(() => undefined);
        throw changedByOthers();
      }
      await connection.run('BEGIN IMMEDIATE', 'loop');
      const pace = new Pace();
      let onLoopMs = 0;
      const execute: WriteTransaction['execute'] = async (statement) => {
        const begunAt = performance.now();
        const answer = await connection.execute(statement, isSavepoint(statement) ? 'loop' : place);
        // a thread's answer comes in a turn of its own
        if (place === 'loop') {
          onLoopMs += performance.now() - begunAt;
          await pace.rest();
        }
        if (onLoopMs >= MAX_LOOP_MS) place = 'thread';
        return answer;
      };
      return {
        execute,
        batch: (statements) => inOrder(statements, execute),
        commit: async () => {
          await connection.run('COMMIT', 'thread');
          file.committed();
        },
        close: async () => {
          // even if it reports an error, the transaction is over
          if (connection.isInTransaction) await connection.run('ROLLBACK', 'thread').catch(() => undefined);
        },
      };
    },
  };
}

/** Set and released in microseconds, whatever stands between. */
function isSavepoint(statement: InStatement): boolean {
  return typeof statement === 'string' && /^(SAVEPOINT|RELEASE) /.test(statement);
}

/** The path is the operator's affair: the server's own log names it, when /readyz is asked. */
function changedByOthers(): AppError {
  const message =
    "A file of the database was deleted, replaced or cut short while it was open, or can't be looked at, and nothing was stored. Put it back, or stop Interlude and start it again. Then send this again.";
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}
