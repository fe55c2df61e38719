import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LocalConnection } from '@/db/local-connection';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(async () => {
  await database.dispose();
});

describe('a connection', () => {
  test.each(['loop', 'thread'] as const)(
    'on the %s accepts and returns the same values as the client for servers',
    async (place) => {
      const connection = new LocalConnection(fileURLToPath(database.url), 0);
      const { rows } = await connection.execute(
        {
          sql: 'SELECT ? AS yes, ? AS n, ? AS text, ? AS none, 9007199254740991 AS most',
          args: [true, 1.5, 'é', null],
        },
        place,
      );
      expect(rows).toEqual([{ yes: 1, n: 1.5, text: 'é', none: null, most: Number.MAX_SAFE_INTEGER }]);
      await expect(connection.execute('SELECT 9007199254740993', place)).rejects.toThrow(RangeError);
      await expect(connection.execute({ sql: 'SELECT ?', args: [Number.NaN] }, place)).rejects.toThrow(RangeError);
      await expect(connection.execute('SELECT unknown', place)).rejects.toMatchObject({ code: 'SQLITE_ERROR' });
      connection.close();
    },
  );

  test('continues after a statement failed', async () => {
    const connection = new LocalConnection(fileURLToPath(database.url), 0);
    const insert = { sql: 'INSERT INTO counter (id, position) VALUES (?, 1)', args: [1] };
    await connection.execute(insert, 'loop');
    const again = connection.execute(insert, 'loop');
    await expect(again).rejects.toMatchObject({
      code: 'SQLITE_CONSTRAINT',
      extendedCode: 'SQLITE_CONSTRAINT_PRIMARYKEY',
    });
    await connection.execute({ ...insert, args: [2] }, 'loop');
    const { rows } = await connection.execute('SELECT id FROM counter', 'loop');
    expect(rows.map(({ id }) => id)).toEqual([1, 2]);
    connection.close();
  });

  test('sees a table that was changed after a statement was prepared', async () => {
    const connection = new LocalConnection(fileURLToPath(database.url), 0);
    await connection.run('CREATE TABLE grown (a)', 'loop');
    const columns = async () => Object.keys((await connection.execute('SELECT * FROM grown', 'loop')).rows[0] ?? {});
    await connection.run('INSERT INTO grown VALUES (1)', 'loop');
    expect(await columns()).toEqual(['a']);
    await database.writes.run((transaction) => transaction.execute('ALTER TABLE grown ADD COLUMN b DEFAULT 2'));
    expect(await columns()).toEqual(['a', 'b']);
    connection.close();
  });

  test('forgets the previous arguments', async () => {
    const connection = new LocalConnection(fileURLToPath(database.url), 0);
    const sql = 'SELECT ?1 AS a, ?2 AS b';
    await connection.execute({ sql, args: ['x', 'y'] }, 'loop');
    expect((await connection.execute({ sql, args: ['z'] }, 'loop')).rows).toEqual([{ a: 'z', b: null }]);
    connection.close();
  });

  test.each(['loop', 'thread'] as const)('on the %s reports damage that libSQL has no code for', async (place) => {
    const path = fileURLToPath(database.url);
    const before = new LocalConnection(path, 0);
    await before.run('CREATE TABLE bent (a); CREATE INDEX bent_by_a ON bent (a); INSERT INTO bent VALUES (1)', 'loop');
    // an index without its table's row
    await before.run('CREATE TABLE other (a); CREATE INDEX other_by_a ON other (a)', 'loop');
    await before.run('PRAGMA writable_schema = ON', 'loop');
    const other = "(SELECT rootpage FROM sqlite_schema WHERE name = 'other_by_a')";
    await before.run(`UPDATE sqlite_schema SET rootpage = ${other} WHERE name = 'bent_by_a'`, 'loop');
    before.close();
    const connection = new LocalConnection(path, 0);
    const found = connection.execute('DELETE FROM bent WHERE rowid = 1', place);
    await expect(found).rejects.toMatchObject({ code: 'SQLITE_CORRUPT', rawCode: 779 });
    connection.close();
  });

  test('is in no transaction once closed', async () => {
    const connection = new LocalConnection(fileURLToPath(database.url), 0);
    await connection.run('BEGIN', 'loop');
    expect(connection.isInTransaction).toBe(true);
    connection.close();
    expect(connection.isInTransaction).toBe(false);
  });

  test('reports a file that cannot be opened', () => {
    const open = () => new LocalConnection(`${fileURLToPath(database.url)}/within`, 0);
    expect(open).toThrow(expect.objectContaining({ code: 'SQLITE_CANTOPEN' }));
  });
});
