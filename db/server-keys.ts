import type { Database } from './client';

const KEY_BYTES = 32;

/** By database. Holds values, not promises, because an aborted request must not leave one pending. */
const known = new WeakMap<Database['reader'], Map<string, Uint8Array<ArrayBuffer>>>();

/**
 * A key of the server for one purpose: 32 random bytes, shared by all instances on the database and created by the first
 * that needs it. It never leaves the server, and no credential derives from it.
 *
 * Ordering: instances that create the same key concurrently all get the one inserted first.
 * Failure: throws the database's errors; the next call reads again.
 */
export async function serverKey(
  { reader, writes }: Pick<Database, 'reader' | 'writes'>,
  name: ServerKeyName,
): Promise<Uint8Array<ArrayBuffer>> {
  const keys = known.get(reader) ?? new Map<string, Uint8Array<ArrayBuffer>>();
  known.set(reader, keys);
  const cached = keys.get(name);
  if (cached !== undefined) return cached;
  const select = { sql: 'SELECT key FROM server_keys WHERE name = ?', args: [name] };
  const stored = await reader.execute(select);
  const { rows } =
    stored.rows.length > 0
      ? stored
      : await writes.run(async (transaction) => {
          const key = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
          await transaction.execute({
            sql: 'INSERT INTO server_keys (name, key) VALUES (?, ?) ON CONFLICT (name) DO NOTHING',
            args: [name, key],
          });
          return transaction.execute(select);
        });
  const key = new Uint8Array(rows[0]?.key as ArrayBuffer);
  if (key.byteLength !== KEY_BYTES)
    throw new Error(
      `The server key ${name} has ${key.byteLength} bytes instead of ${KEY_BYTES}. Stop every instance, delete its row in server_keys, and start again.`,
    );
  keys.set(name, key);
  return key;
}

type ServerKeyName = 'sign-in' | 'digest' | 'refresh-token' | 'session-alias';
