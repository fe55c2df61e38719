import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MAX_EVERY_MS } from '@interlude/protocol/limits';
import type { OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { expect } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { LocalConnection } from '@/db/local-connection';
import { hasDue } from '@/db/row-sweep';
import { UNINDEXED_LOGS } from '@/lib/server/log-store/chunk-lines';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { AccessStage } from './access-stage';
import { PNG } from './attachments';
import { callCli } from './cli-in-process';
import { dumpDatabase } from './database';
import { stepOf } from './numbered-work';
import { tempDir } from './temp-dir';

/** A dashboard with rows in nearly every table, on a file unless a URL is given, and an agent that can continue. */
export class PopulatedDatabase {
  readonly stage: AccessStage;
  readonly agentId = 'worker';
  #seq = 0;
  #step = 0;

  private constructor(stage: AccessStage) {
    this.stage = stage;
  }

  /** @param env the dashboard's environment */
  static async start(env: Record<string, string> = {}): Promise<PopulatedDatabase> {
    const used = new PopulatedDatabase(await AccessStage.start({ env }));
    await used.work(12);
    await used.#fillRest();
    return used;
  }

  get file(): string {
    return `${this.stage.dataDir}/interlude.db`;
  }

  /** Environment for the command line on the same machine. */
  get env(): Record<string, string> {
    return { INTERLUDE_DATA_DIR: this.stage.dataDir };
  }

  /** Performs the next steps, one request each. @returns the last acknowledged `seq` */
  async work(steps: number): Promise<number> {
    for (let done = 0; done < steps; done += 1) {
      this.#step += 1;
      await this.send(stepOf(this.agentId, this.#step).records);
    }
    return this.#seq;
  }

  async send(records: readonly OutgoingRecord[]): Promise<void> {
    const body = {
      producer: { id: this.agentId, epoch: 1 },
      records: records.map((record, index) => ({ ...record, seq: this.#seq + index + 1 })),
    };
    await this.stage.ask('/events', { method: 'POST', body });
    this.#seq += records.length;
  }

  async #fillRest(): Promise<void> {
    const session = '/sessions/worker-a';
    await this.stage.ask(`${session}/messages`, { method: 'POST', body: { text: 'Hello', clientId: 'c1' } });
    await this.stage.send(`/api/v1${session}/attachments?name=dot.png`, {
      method: 'POST',
      body: PNG,
      headers: { 'content-type': 'image/png' },
    });
    await this.stage.token({ role: 'viewer', name: 'The wall' });
    await this.send([
      ...Array.from({ length: 600 }, (_, index) => line(`needle-${index} in a stack of hay`)),
      line('claude hook failed: exit code 1'),
      // Otherwise the server reports the agent as silent after two minutes, which changes rows during a slow test.
      { kind: 'status', agentId: this.agentId, occurredAt: Date.now(), status: { everyMs: MAX_EVERY_MS } },
    ]);
    await this.settle();
    // removed rows leave tombstones in the search table
    await this.#keeper().retain();
  }

  /** Indexes the whole log now. Otherwise the dashboard does so shortly after, while a test compares rows. */
  async settle(): Promise<void> {
    const { reader } = this.stage.parts.database;
    do await this.#keeper().indexAll();
    while (await hasDue(reader, [UNINDEXED_LOGS]));
  }

  #keeper(): LogKeeper {
    const { database, now } = this.stage.parts;
    return new LogKeeper({ database, now }, { maxAgeMs: 365 * 86_400_000, maxBytes: 12_000 });
  }
}

function line(message: string): OutgoingRecord {
  return {
    kind: 'log',
    agentId: 'worker',
    occurredAt: Date.now(),
    log: { level: 'info', component: 'hay', message },
  };
}

/** Opens the database at a path or URL without migrating it, and closes it after `work`. */
export async function withDatabase<T>(place: string, work: (database: Database) => Promise<T>): Promise<T> {
  const url = /^https?:/.test(place) ? place : pathToFileURL(place).href;
  const database = await openDatabase({ url, migrates: false });
  return work(database).finally(() => database.close());
}

export const dumpOf = (place: string) => withDatabase(place, dumpDatabase);

/** Runs statements on a file as another program does. */
export async function run(file: string, ...statements: string[]): Promise<void> {
  const connection = new LocalConnection(file, 5_000);
  for (const sql of statements) await connection.run(sql, 'loop');
  connection.close();
}

/** Writes a value that no reader can represent, so that a copy fails. */
export const SPOILS_A_ROW =
  'UPDATE turns SET started_at = 9223372036854775807 WHERE rowid = (SELECT max(rowid) FROM turns)';

/** Checks that a copy has the original's search results and triggers. */
export async function expectSameSearch(used: PopulatedDatabase, place: string): Promise<void> {
  await withDatabase(place, async (database) => {
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

/** Checks that a dashboard's writes are refused until a copy into its database is complete. */
export async function expectTakenOver(used: PopulatedDatabase, place: string): Promise<void> {
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
