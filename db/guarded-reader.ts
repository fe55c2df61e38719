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
  const again = <Result>(read: () => Promise<Result>): Promise<Result> => guard(() => read().catch(onceMore(read)));
  return {
    execute: (statement) => again(() => reader.execute(statement)),
    batch: (statements, mode) => again(() => reader.batch(statements, mode)),
    transaction: async (mode) => {
      let snapshot = await again(() => reader.transaction(mode));
      let isBegun = false;
      // A snapshot at a server begins with its first statement: until that is answered, another is as good.
      const read = async <Result>(ask: () => Promise<Result>): Promise<Result> => {
        if (isBegun) return await guard(ask);
        isBegun = true;
        const anew = async () => {
          snapshot.close();
          snapshot = await reader.transaction(mode);
          return await ask();
        };
        return await guard(() => ask().catch(onceMore(anew)));
      };
      return {
        execute: (statement) => read(() => snapshot.execute(statement)),
        batch: (statements) => read(() => snapshot.batch(statements)),
        close: () => snapshot.close(),
      };
    },
  };
}

function onceMore<Result>(read: () => Promise<Result>): (error: unknown) => Promise<Result> {
  return (error) => {
    if (DEAD_SOCKET.test(databaseErrorCode(error) ?? '')) return read();
    throw error;
  };
}
