import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { Database } from '@/db/client';
import { serverFor } from '@/lib/server/create-server';
import { errorOf, ingest, record, sendEvents } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { sharedServer } from './contract';
import { describeInboxContract } from './inbox-contract';
import { describeIngestContract } from './ingest-contract';
import { describeReadModelsContract } from './read-models-contract';
import { describeRequestsContract } from './requests-contract';
import { describeStreamContract } from './stream-contract';

/**
 * A newer version has migrated the database while this one runs on it, as during a rolling deploy. Every table gets
 * what a later migration may add: nullable columns, columns with defaults, tables and indexes. The old version is this
 * one, reading and writing as usual.
 */
const LATER = 9_999_999_999_999;

async function migrateAsLater({ reader, writes }: Database): Promise<number> {
  const { rows } =
    await reader.execute(`SELECT m.name FROM sqlite_master AS m JOIN pragma_table_list AS t ON t.name = m.name
    WHERE m.type = 'table' AND t.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> '__drizzle_migrations'`);
  const tables = rows.map(({ name }) => String(name));
  await writes.run(async (transaction) => {
    await transaction.batch([
      ...tables.flatMap((table) => [
        `ALTER TABLE "${table}" ADD COLUMN later_note text`,
        `ALTER TABLE "${table}" ADD COLUMN later_due integer NOT NULL DEFAULT 0`,
        `CREATE INDEX "${table}_later" ON "${table}" (later_due)`,
      ]),
      'CREATE TABLE later (id integer PRIMARY KEY, body text NOT NULL)',
      { sql: 'INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)', args: ['later', LATER] },
    ]);
  });
  return tables.length;
}

type Shared = Parameters<typeof describeInboxContract>[1];

interface Place {
  url(): Promise<string>;
  end(): Promise<void>;
}

function inFile(): Place {
  const folder = mkdtemp(join(tmpdir(), 'interlude-two-versions-'));
  return {
    url: async () => `file:${join(await folder, 'interlude.db')}`,
    end: async () => rm(await folder, { recursive: true, force: true }),
  };
}

function atServer(): Place {
  let server: ReturnType<typeof startLibsqlServer> | undefined;
  return {
    async url() {
      server ??= startLibsqlServer();
      return (await server).url;
    },
    end: async () => (await server)?.stop(),
  };
}

/** On a file and at a libSQL server, which commits in another way. */
function besideNewer(where: string, place: Place, suites: readonly ((name: string, shared: Shared) => void)[]): void {
  // Stops after the server that has it open: hooks run last to first.
  afterAll(() => place.end());
  const shared = sharedServer(async (): Promise<InProcessServer> => {
    const target = await inProcessServer(await place.url());
    expect(await migrateAsLater(target.database)).toBeGreaterThan(15);
    return target;
  });
  for (const suite of suites) suite(`beside a newer version, ${where}`, shared);

  describe(`a server that starts beside a newer version, ${where}`, () => {
    const own = (seq: number) => record(seq, { agentId: 'beside', sessionId: 'beside', event: { type: 'X' } });

    test('works with a newer migration until the newer version forbids it', async () => {
      const first = await shared();
      const second = await inProcessServer(await place.url());
      expect(await ingest(second, [own(1)], 1, 'beside')).toMatchObject({ accepted: 1 });
      expect(await ingest(first, [own(1), own(2)], 1, 'beside')).toMatchObject({ accepted: 1, duplicates: 1 });
      expect((await second.get('/api/v1/sessions/beside')).status).toBe(200);
      await second.close();
      await first.database.writes.run((transaction) =>
        transaction.execute({ sql: 'UPDATE compatibility SET oldest_writer = ?', args: [LATER] }),
      );
      const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
      // A running server is refused, and so is a starting one.
      const late = await sendEvents(first, { producer: { id: 'beside', epoch: 1 }, records: [own(3)] });
      expect({ status: late.status, ...(await errorOf(late)) }).toMatchObject({
        status: 503,
        message: expect.stringMatching(/Update this instance/),
      });
      expect((await first.get('/readyz')).status).toBe(503);
      expect((await first.get('/api/v1/sessions/beside')).status).toBe(200);
      const third = serverFor({ INTERLUDE_DATABASE_URL: await place.url(), INTERLUDE_TOKEN: first.token });
      const request = new Request('http://127.0.0.1/api/v1/sessions', {
        headers: { authorization: `Bearer ${first.token}` },
      });
      const refused = await third.handle(request);
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).toBe('5');
      expect((await errorOf(refused)).message).toMatch(/was written by a newer Interlude\. Update this one/);
      await third.close();
      // The first server's sweep fails as well, and is reported once.
      await expect.poll(() => logged.mock.calls.flat().join()).toContain('commands: delivery is delayed');
      vi.restoreAllMocks();
    });
  });
}

besideNewer('in a file', inFile(), [
  describeIngestContract,
  describeStreamContract,
  describeReadModelsContract,
  describeRequestsContract,
  describeInboxContract,
]);
const found = ensureLibsqlServer();
if ('missing' in found) {
  test.skip(`at a libSQL server (not run: ${found.missing})`, () => {});
} else {
  besideNewer('at a libSQL server', atServer(), [
    describeIngestContract,
    describeStreamContract,
    describeInboxContract,
  ]);
}
