import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { LocalConnection } from '@/db/local-connection';
import { callCli } from './cli-in-process';
import { dumpDatabase } from './database';
import { tempDir } from './temp-dir';
import type { WellUsed } from './well-used-database';

/** Opens the database at a path or an address, without migrating it, for as long as `work` takes. */
export async function opened<T>(place: string, work: (database: Database) => Promise<T>): Promise<T> {
  const url = /^https?:/.test(place) ? place : pathToFileURL(place).href;
  const database = await openDatabase({ url, migrates: false });
  return work(database).finally(() => database.close());
}

export const dumpOf = (place: string) => opened(place, dumpDatabase);

/** Runs statements on a file as another program would. */
export async function run(file: string, ...statements: string[]): Promise<void> {
  const connection = new LocalConnection(file, 5_000);
  for (const sql of statements) await connection.run(sql, 'loop');
  connection.close();
}

/** A row whose value no reader can represent, so that a copy fails at it. */
export const SPOILS_A_ROW =
  'UPDATE turns SET started_at = 9223372036854775807 WHERE rowid = (SELECT max(rowid) FROM turns)';

/** Checks that a copy finds what the original finds, and that its triggers keep it so. */
export async function searchesWell(used: WellUsed, place: string): Promise<void> {
  await opened(place, async (database) => {
    const integrity = ['log_search', 'session_search'].map(
      (name) => `INSERT INTO ${name} (${name}) VALUES ('integrity-check')`,
    );
    await database.writes.run((transaction) => transaction.batch(integrity));
    const found = async ({ reader }: Database) => {
      const search = (sql: string) => reader.execute(sql).then(({ rows }) => rows.map((row) => ({ ...row })));
      return Promise.all([
        search(
          `SELECT CAST(rowid AS TEXT) AS id FROM log_search WHERE log_search MATCH '"nee" AND "edl"' ORDER BY rowid`,
        ),
        search(`SELECT rowid AS id FROM session_search WHERE session_search MATCH '"wor" AND "ork"' ORDER BY rowid`),
      ]);
    };
    const [lines, sessions] = await found(database);
    expect([lines, sessions]).toEqual(await found(used.stage.parts.database));
    expect([lines?.length, sessions?.length].every((count) => (count ?? 0) > 0)).toBe(true);
    const triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name";
    const named = async ({ reader }: Database) => (await reader.execute(triggers)).rows.map((row) => ({ ...row }));
    expect(await named(database)).toEqual(await named(used.stage.parts.database));
  });
}

/** Checks that a database with a dashboard on it refuses its writes until a copy into it is whole. */
export async function isTakenOver(used: WellUsed, place: string): Promise<void> {
  const cli = (...args: string[]) => callCli(['db', ...args], used.env);
  const url = /^https?:/.test(place) ? place : pathToFileURL(place).href;
  const live = await openDatabase({ url, migrates: true });
  const write = () => live.writes.run((transaction) => transaction.execute('UPDATE counter SET position = position'));
  await write();
  const spoilt = join(await tempDir(), 'spoilt.db');
  await cli('backup', spoilt);
  await run(spoilt, SPOILS_A_ROW);
  expect((await cli('copy', spoilt, place)).exitCode).toBe(1);
  await expect(write()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/a copy into it is running/),
  });
  expect(await cli('copy', used.file, place)).toMatchObject({ exitCode: 0 });
  await write();
  expect(Number((await live.reader.execute('SELECT count(*) AS count FROM events')).rows[0]?.count)).toBeGreaterThan(0);
  await live.close();
}
