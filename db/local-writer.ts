import type { InStatement } from '@libsql/client';
import { AppError } from '@/lib/protocol/errors';
import type { DatabaseFile } from './database-file';
import type { LocalConnection, Place } from './local-connection';
import { Pace } from './next-turn';
import { inOrder } from './reader';
import type { TransactionSource, WriteTransaction } from './write-queue';

/** Brings into the file what its log holds, as far as no reader stands in the way. */
const CHECKPOINT = 'PRAGMA wal_checkpoint(PASSIVE)';

/** How long the statements of one transaction may take on the event loop; the rest of them run elsewhere. */
const MAX_LOOP_MS = 10;

/**
 * Write transactions on a database file, over the one connection that writes. Most are over in a few milliseconds on the
 * event loop, which a thread would only make longer; for the rest of one that is not, nobody else waits, nor for any
 * commit, which waits for the disk.
 *
 * Failure: a file that was deleted or replaced, or whose log was cut short, takes every write, and all of them are gone
 * with the process: none is begun then.
 */
export function localWriter(
  connection: LocalConnection,
  file: Pick<DatabaseFile, 'changed' | 'committed' | 'lacksOnlyItsLog'>,
): TransactionSource {
  return {
    transaction: async () => {
      let place: Place = 'loop';
      if ((await file.changed()) !== null) {
        // The log is deleted, not closed: what was acknowledged and stands there is brought into the file.
        if (file.lacksOnlyItsLog()) await connection.run(CHECKPOINT, 'thread').catch(() => undefined);
        throw changedByOthers();
      }
      await connection.run('BEGIN IMMEDIATE', 'loop');
      const pace = new Pace();
      let onLoopMs = 0;
      const execute: WriteTransaction['execute'] = async (statement) => {
        const begunAt = performance.now();
        const answer = await connection.execute(statement, isSavepoint(statement) ? 'loop' : place);
        if (place === 'loop') onLoopMs += performance.now() - begunAt;
        if (onLoopMs >= MAX_LOOP_MS) place = 'thread';
        await pace.rest();
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
          // it may report an error, but the transaction is over then
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
