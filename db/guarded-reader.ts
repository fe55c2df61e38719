import type { Client } from '@libsql/client';
import type { Damage } from './damage';
import { databaseErrorCode, databaseFailure } from './database-error';

/** A socket that was closed while nobody used it fails the first request that is sent through it, and no other. */
const DEAD_SOCKET = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UNREACHABLE|HRANA_CLOSED_ERROR|HRANA_WEBSOCKET_ERROR)$/;

/**
 * The client that is read with: what the database fails at comes as `unavailable`, and a read that met a dead socket is
 * repeated once. Reads only: nobody knows whether a write that failed so has happened.
 */
export function guardedReader(client: Client, damage: Damage): Client {
  const guard =
    <Args extends unknown[], Result>(read: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      try {
        return await read(...args).catch((error) => {
          if (!DEAD_SOCKET.test(databaseErrorCode(error) ?? '')) throw error;
          return read(...args);
        });
      } catch (error) {
        damage.see(error);
        throw databaseFailure(error);
      }
    };
  const guarded: Partial<Client> = {
    execute: guard((...args: Parameters<Client['execute']>) => client.execute(...args)) as Client['execute'],
    batch: guard((...args: Parameters<Client['batch']>) => client.batch(...args)),
  };
  return new Proxy(client, {
    get(target, name) {
      const own = guarded[name as keyof Client] ?? Reflect.get(target, name, target);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
}
