import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { AppError } from '@interlude/protocol/errors';
import { createClient, LibsqlBatchError, LibsqlError } from '@libsql/client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Damage } from '@/db/damage';
import { databaseErrorCode, databaseFailure, databaseFault, isInputError } from '@/db/database-error';
import { Conflict, NeedsFixedPositions } from '@/db/optimistic-transaction';
import { temporaryDatabase } from '../../support/database';

const PAGE_BYTES = 4096;

afterEach(() => {
  vi.restoreAllMocks();
});

const fetchFailed = (code?: string) =>
  new TypeError('fetch failed', { cause: code === undefined ? undefined : Object.assign(new Error(code), { code }) });

describe('a database error', () => {
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

  it('of an unreachable server has the code of the network', async () => {
    const client = createClient({ url: 'http://127.0.0.1:9' });
    const error = await client.execute('SELECT 1').catch((failure) => failure);
    expect([databaseErrorCode(error), databaseFault(error)]).toEqual([expect.stringMatching(/^[A-Z_]+$/), 'soon']);
  });
});

describe('the input', () => {
  const ofTheMachine = Object.assign(new Error('EMFILE: too many open files'), { syscall: 'open', code: 'EMFILE' });

  it.each([
    [true, 'a statement is refused', new LibsqlError('unique', 'SQLITE_CONSTRAINT')],
    [true, 'our own code fails on it', new TypeError('x is not a function')],
    [true, 'it can’t be read', new SyntaxError('Unexpected end of JSON input')],
    [true, 'it can’t be a statement’s argument', new RangeError('Only finite numbers can be passed as arguments')],
    [false, 'the database is away', fetchFailed()],
    [false, 'the database is away', new AppError('unavailable', 'away')],
    [false, 'its answer is none', new LibsqlError('Expected array', 'HRANA_PROTO_ERROR')],
    [false, 'the database is damaged', new LibsqlError('malformed', 'SQLITE_CORRUPT')],
    [false, 'another transaction touched the same keys', new Conflict()],
    [false, 'positions are to be fixed', new NeedsFixedPositions()],
    [false, 'the machine has run out of something', new Error('read', { cause: ofTheMachine })],
    [false, 'memory is short', new RangeError('Array buffer allocation failed')],
    [false, 'it was given up', AbortSignal.abort().reason],
    [false, 'nothing is known', 'no error'],
  ])('is at fault: %s, when %s', (isAtFault, _, error) => {
    expect(isInputError(error)).toBe(isAtFault);
  });
});

describe('a damaged database', () => {
  const BENT = new Uint8Array(PAGE_BYTES).fill(0x5a);
  const fromReading = new LibsqlError('malformed', 'SQLITE_CORRUPT', 'SQLITE_CORRUPT', 11);
  const lines = (said: { mock: { calls: unknown[][] } }) => said.mock.calls.map(([line]) => String(line));

  /** A database whose file has these bytes in place of a table. */
  async function withPage(content: Uint8Array) {
    const database = await temporaryDatabase();
    const { rows } = await database.reader.execute("SELECT rootpage FROM sqlite_master WHERE name = 'producers'");
    await database.reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
    const at = (Number(rows[0]?.rootpage) - 1) * PAGE_BYTES;
    const put = (content: Uint8Array) => {
      const file = openSync(fileURLToPath(database.url), 'r+');
      const before = Buffer.alloc(PAGE_BYTES);
      readSync(file, before, 0, PAGE_BYTES, at);
      writeSync(file, content, 0, PAGE_BYTES, at);
      closeSync(file);
      return before;
    };
    const before = put(content);
    return { database: await database.reopen(), mend: () => put(before) };
  }

  it('is not written to while it is checked, and is logged', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { database } = await withPage(BENT);
    expect(database.damage.code).toBeNull();
    for (let time = 0; time < 2; time += 1) {
      await expect(database.reader.execute('SELECT * FROM producers')).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('is checked'),
      });
    }
    expect(database.damage.code).toBe('SQLITE_CORRUPT');
    const write = database.writes.run((transaction) => transaction.execute('SELECT 1'));
    await expect(write).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('is checked'),
    });
    expect(lines(said)).toEqual([expect.stringContaining('corrupt page, or its disk failed to read')]);
    await database.dispose();
  });

  it('is written to again when it is intact because its disk had failed to read', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { database, mend } = await withPage(BENT);
    const reading = database.reader.execute('SELECT * FROM producers');
    await expect(reading).rejects.toMatchObject({ code: 'unavailable' });
    // what the disk returns at the next attempt
    mend();
    await database.damage.idle();
    expect(database.damage.code).toBeNull();
    await database.writes.run((transaction) => transaction.execute('SELECT * FROM producers'));
    expect(lines(said)).toEqual([
      expect.anything(),
      expect.stringMatching(/is intact: its disk had failed .* check the disk/),
    ]);
    await database.dispose();
  });

  it.each([
    ['is damaged', async () => false],
    ['can’t be checked', () => Promise.reject(new LibsqlError('io', 'SQLITE_IOERR'))],
  ])('stays unwritable when it %s each time', async (_, isWhole) => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const look = vi.fn(isWhole);
    const damage = new Damage('x.db', look, [0, 0, 0]);
    damage.record(fromReading);
    damage.record(fromReading);
    await damage.idle();
    damage.record(fromReading);
    expect(look).toHaveBeenCalledTimes(3);
    expect(damage.refusal()).toMatchObject({ message: expect.stringContaining('damaged') });
    expect(lines(said)).toEqual([expect.anything(), expect.stringMatching(/x\.db is damaged \(SQLITE_CORRUPT\)/)]);
  });

  it.each([
    [
      'an index that lacks a row is none of the disk',
      new LibsqlError('', 'SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX', 779),
    ],
    ['a server reports it', new LibsqlError('', 'SQLITE_CORRUPT')],
  ])('stays unwritable at once when %s', async (_, error) => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const look = vi.fn(async () => true);
    const damage = new Damage('x.db', look, [0]);
    damage.record(error);
    await damage.idle();
    expect(look).not.toHaveBeenCalled();
    expect(damage.code).toBe('SQLITE_CORRUPT');
    expect(lines(said)).toEqual([expect.stringContaining('is damaged')]);
  });

  it('is not checked after it was closed', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const look = vi.fn(async () => false);
    const damage = new Damage('x.db', look, [0, 0]);
    damage.record(fromReading);
    damage.close();
    await damage.idle();
    expect(look).not.toHaveBeenCalled();
  });
});
