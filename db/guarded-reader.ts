import type { Damage } from './damage';
import { databaseErrorCode } from './database-error';
import type { Reader } from './reader';

/** A socket that was closed while idle fails only the first request sent through it. */
const DEAD_SOCKET = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UNREACHABLE|HRANA_CLOSED_ERROR|HRANA_WEBSOCKET_ERROR)$/;

/**
 * A reader whose database failures arrive as `unavailable`, and that repeats once what failed on a dead socket. For
 * reads only: nobody knows whether a write that failed in this way has happened.
 */
export function guardedReader(reader: Reader, damage: Damage): Reader {
  const guard = async <Result>(read: () => Promise<Result>): Promise<Result> => {
    try {
      return await read();
    } catch (error) {
      throw damage.failure(error);
    }
  };
  const again = <Result>(read: () => Promise<Result>): Promise<Result> =>
    guard(() =>
      read().catch((error) => {
        if (!DEAD_SOCKET.test(databaseErrorCode(error) ?? '')) throw error;
        return read();
      }),
    );
  return {
    execute: (statement) => again(() => reader.execute(statement)),
    batch: (statements, mode) => again(() => reader.batch(statements, mode)),
    transaction: async (mode) => {
      const snapshot = await again(() => reader.transaction(mode));
      return {
        execute: (statement) => guard(() => snapshot.execute(statement)),
        batch: (statements) => guard(() => snapshot.batch(statements)),
        close: () => snapshot.close(),
      };
    },
  };
}
