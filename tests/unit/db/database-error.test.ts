import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Client, createClient, LibsqlBatchError, LibsqlError } from '@libsql/client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Damage } from '@/db/damage';
import { databaseErrorCode, databaseFailure, databaseFault } from '@/db/database-error';
import { guardedReader } from '@/db/guarded-reader';
import { temporaryDatabase } from '../../support/database';

const PAGE_BYTES = 4096;

afterEach(() => {
  vi.restoreAllMocks();
});

const fetchFailed = (code?: string) =>
  new TypeError('fetch failed', { cause: code === undefined ? undefined : Object.assign(new Error(code), { code }) });

describe('an error of the database', () => {
  it.each([
    ['soon', new LibsqlError('locked', 'SQLITE_BUSY')],
    ['soon', new LibsqlError('full', 'SQLITE_FULL')],
    ['soon', new LibsqlError('io', 'SQLITE_IOERR')],
    ['soon', new LibsqlError('expired', 'STREAM_EXPIRED')],
    ['soon', new LibsqlError('gone', 'HRANA_WEBSOCKET_ERROR')],
    ['soon', new LibsqlError('502', 'SERVER_ERROR')],
    ['soon', new LibsqlError('rolled back', 'TRANSACTION_CLOSED')],
    ['soon', fetchFailed('ECONNREFUSED')],
    ['soon', fetchFailed()],
    ['soon', new Error('drizzle', { cause: fetchFailed('UND_ERR_SOCKET') })],
    ['refused', new LibsqlBatchError('too big', 2, 'SQLITE_TOOBIG')],
    ['refused', new LibsqlError('too big', 'ARGS_INVALID')],
    ['refused', new LibsqlError('near ORDER', 'SQL_PARSE_ERROR')],
    ['refused', new LibsqlError('unique', 'SQLITE_CONSTRAINT_PRIMARYKEY')],
    ['refused', new RangeError('Received integer which cannot be safely represented as a JavaScript number')],
    ['damaged', new LibsqlError('malformed', 'SQLITE_CORRUPT')],
    ['damaged', new LibsqlError('malformed', 'SQLITE_CORRUPT_VTAB')],
    ['damaged', new LibsqlError('no database', 'SQLITE_NOTADB')],
    [null, new TypeError('x is not a function')],
    [null, new Error('ours')],
  ] as const)('is %s: %s', (fault, error) => {
    expect(databaseFault(error)).toBe(fault);
    const answer = databaseFailure(error);
    if (fault === 'soon' || fault === 'damaged') {
      expect(answer).toMatchObject({ code: 'unavailable', cause: error, headers: { 'retry-after': /^\d+$/ } });
    } else expect(answer).toBe(error);
  });

  it('of a server that nobody serves is told by the code of the network', async () => {
    const client = createClient({ url: 'http://127.0.0.1:9' });
    const error = await client.execute('SELECT 1').catch((failure) => failure);
    expect([databaseErrorCode(error), databaseFault(error)]).toEqual([expect.stringMatching(/^[A-Z_]+$/), 'soon']);
  });
});

describe('a read', () => {
  const reading = (errors: unknown[]) => {
    const execute = vi.fn(async () => {
      const error = errors.shift();
      if (error !== undefined) throw error;
      return { rows: [] };
    });
    return { execute, reader: guardedReader({ execute } as unknown as Client, new Damage('x')) };
  };

  it('that met a dead socket is repeated once', async () => {
    const { reader, execute } = reading([fetchFailed('ECONNRESET')]);
    await expect(reader.execute('SELECT 1')).resolves.toEqual({ rows: [] });
    expect(execute).toHaveBeenCalledTimes(2);
  });

  it('that meets nobody again is unavailable', async () => {
    const { reader, execute } = reading([fetchFailed('ECONNRESET'), fetchFailed('ECONNREFUSED')]);
    await expect(reader.execute('SELECT 1')).rejects.toMatchObject({ code: 'unavailable' });
    expect(execute).toHaveBeenCalledTimes(2);
  });

  it('that can’t succeed is not repeated', async () => {
    const { reader, execute } = reading([new LibsqlError('x', 'SQLITE_ERROR')]);
    await expect(reader.execute('SELECT 1')).rejects.toMatchObject({ code: 'SQLITE_ERROR' });
    expect(execute).toHaveBeenCalledTimes(1);
  });
});

describe('a damaged database', () => {
  it('is said once, remembered, and written to no more', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const database = await temporaryDatabase();
    const { rows } = await database.reader.execute("SELECT rootpage FROM sqlite_master WHERE name = 'producers'");
    await database.reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
    const file = await open(fileURLToPath(database.url), 'r+');
    await file.write(Buffer.alloc(PAGE_BYTES, 0x5a), 0, PAGE_BYTES, (Number(rows[0]?.rootpage) - 1) * PAGE_BYTES);
    await file.close();

    const damaged = await database.reopen();
    expect(damaged.damage.code).toBeNull();
    for (let time = 0; time < 2; time += 1) {
      await expect(damaged.reader.execute('SELECT * FROM producers')).rejects.toMatchObject({ code: 'unavailable' });
    }
    expect(damaged.damage.code).toBe('SQLITE_CORRUPT');
    expect(said).toHaveBeenCalledTimes(1);
    const write = damaged.writes.run((transaction) => transaction.execute('SELECT 1'));
    await expect(write).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('damaged') });
    await damaged.dispose();
  });
});
