import { LibsqlError } from '@libsql/client';
import { describe, expect, it, vi } from 'vitest';
import { Damage, guardedReader } from '@/db/damage';
import type { Reader } from '@/db/reader';

const failed = (code: string) => new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
const refused = () => new LibsqlError('x', 'SQLITE_ERROR');

/** Each statement fails with the next of these errors, and succeeds for null or none. */
function reading(...errors: (Error | null)[]) {
  const snapshots: { asked: number; isClosed: boolean }[] = [];
  const statement = async () => {
    const error = errors.shift() ?? null;
    if (error !== null) throw error;
    return { rows: [] };
  };
  const execute = vi.fn(statement);
  const batch = vi.fn(async () => [await statement()]);
  const transaction = async () => {
    const snapshot = { asked: 0, isClosed: false };
    snapshots.push(snapshot);
    // like libSQL's client, which ends the transaction when its first statement fails
    const ask = async () => {
      if (snapshot.isClosed) throw new LibsqlError('closed', 'TRANSACTION_CLOSED');
      snapshot.asked += 1;
      return statement().catch((error) => {
        snapshot.isClosed ||= snapshot.asked === 1;
        throw error;
      });
    };
    const close = () => {
      snapshot.isClosed = true;
    };
    return { execute: ask, batch: async () => [await ask()], close };
  };
  const reader = guardedReader({ execute, batch, transaction } satisfies Reader, new Damage('x'));
  return { reader, execute, batch, snapshots };
}

describe('a read', () => {
  it('is repeated once after a dead socket', async () => {
    const { reader, execute, batch } = reading(failed('ECONNRESET'), null, failed('UND_ERR_SOCKET'));
    await expect(reader.execute('SELECT 1')).resolves.toEqual({ rows: [] });
    expect(execute).toHaveBeenCalledTimes(2);
    await expect(reader.batch(['SELECT 1'], 'read')).resolves.toEqual([{ rows: [] }]);
    expect(batch).toHaveBeenCalledTimes(2);
  });

  it('is unavailable after two dead sockets', async () => {
    const { reader, execute } = reading(failed('ECONNRESET'), failed('ECONNREFUSED'));
    await expect(reader.execute('SELECT 1')).rejects.toMatchObject({ code: 'unavailable' });
    expect(execute).toHaveBeenCalledTimes(2);
  });

  it('is not repeated when it cannot succeed', async () => {
    const { reader, execute } = reading(refused());
    await expect(reader.execute('SELECT 1')).rejects.toMatchObject({ code: 'SQLITE_ERROR' });
    expect(execute).toHaveBeenCalledTimes(1);
  });
});

describe('a snapshot', () => {
  it.each(['execute', 'batch'] as const)('whose first %s met a dead socket is opened once more', async (kind) => {
    const { reader, snapshots } = reading(failed('ECONNRESET'));
    const snapshot = await reader.transaction('read');
    await (kind === 'execute' ? snapshot.execute('SELECT 1') : snapshot.batch(['SELECT 1']));
    await snapshot.execute('SELECT 2');
    expect(snapshots).toEqual([
      { asked: 1, isClosed: true },
      { asked: 2, isClosed: false },
    ]);
    snapshot.close();
    expect(snapshots.every(({ isClosed }) => isClosed)).toBe(true);
  });

  it('is unavailable after two dead sockets', async () => {
    const { reader, snapshots } = reading(failed('ECONNRESET'), failed('ECONNRESET'));
    const snapshot = await reader.transaction('read');
    await expect(snapshot.execute('SELECT 1')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(snapshot.execute('SELECT 1')).rejects.toMatchObject({ code: 'unavailable' });
    snapshot.close();
    expect(snapshots).toHaveLength(2);
  });

  it('is not repeated after it returned rows, since its moment is fixed', async () => {
    const { reader, snapshots } = reading(null, failed('ECONNRESET'));
    const snapshot = await reader.transaction('read');
    await snapshot.execute('SELECT 1');
    await expect(snapshot.execute('SELECT 2')).rejects.toMatchObject({ code: 'unavailable' });
    expect(snapshots).toEqual([{ asked: 2, isClosed: false }]);
  });

  it('is not repeated when its first statement cannot succeed', async () => {
    const { reader, snapshots } = reading(refused());
    const snapshot = await reader.transaction('read');
    await expect(snapshot.execute('SELECT 1')).rejects.toMatchObject({ code: 'SQLITE_ERROR' });
    expect(snapshots).toHaveLength(1);
  });
});
