import { MAX_ITEM_TEXT } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { ingest, record, sendEvents } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { describeContract, sharedServer } from './contract';
import { describeRunnerAwayContract } from './runner-away-contract';

/** The contract over a libSQL server, whose parser and limits differ from those of the library that reads files. */
// Platforms without a binary skip the suites; the stage reports it.
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
let libsql: ReturnType<typeof startLibsqlServer> | undefined;
// Stops after the server that reads from it: hooks run last to first.
afterAll(async () => (await libsql)?.stop());

const shared = sharedServer(async (): Promise<InProcessServer> => {
  libsql = startLibsqlServer();
  return inProcessServer((await libsql).url);
});

suites('over a libSQL server', () => {
  describeContract('libSQL server', shared, { isBulk: true });
  describeRunnerAwayContract('libSQL server', shared);
});

/** Limits that only this database has. Last, because the suites leave more rows than one response may hold. */
suites('a libSQL server', () => {
  let target: InProcessServer;
  const own = (id: string, seq: number, event: object) => record(seq, { agentId: id, sessionId: id, event });
  const rows = async (sql: string, id: string) =>
    (await (await shared()).database.reader.execute({ sql, args: [id] })).rows.map((row) => ({ ...row }));

  beforeAll(async () => {
    target = await shared();
  });

  test('receives a full request in parts', async () => {
    const records = Array.from({ length: 8 }, (_, index) =>
      own('pieces', index + 1, { type: 'CUSTOM', name: 'large', value: 'ü'.repeat(500_000) }),
    );
    expect(await ingest(target, records, 1, 'pieces')).toMatchObject({ accepted: 8, rejected: [] });
    const sizes = await rows('SELECT octet_length(payload) AS size FROM events WHERE session_id = ?', 'pieces');
    expect(sizes.map(({ size }) => Number(size) > 1_000_000)).toEqual(Array(8).fill(true));
  });

  test('stores a message whose deltas exceed a row, and the rest of its request', async () => {
    const delta = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x'.repeat(900_000) };
    const start = { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' };
    await ingest(target, [own('long', 1, start), ...[2, 3, 4, 5, 6].map((seq) => own('long', seq, delta))], 1, 'long');
    const rest = [own('long', 7, delta), own('long', 8, { type: 'TEXT_MESSAGE_END', messageId: 'm' })];
    expect(await ingest(target, rest, 1, 'long')).toMatchObject({ accepted: 2, rejected: [] });
    const { turns } = await (await target.get('/api/v1/sessions/long/transcript')).json();
    const [item] = turns[0].items;
    expect(item).toMatchObject({ kind: 'message', streaming: false, cut: 6 * 900_000 - MAX_ITEM_TEXT });
    expect(item.text).toBe('x'.repeat(MAX_ITEM_TEXT));
    const kept = await rows(
      "SELECT sum(length(payload->>'$.delta')) AS units FROM events WHERE session_id = ?",
      'long',
    );
    expect(kept).toEqual([{ units: 6 * 900_000 }]);
  });

  test('stores the beginning of a record that exceeds its limit, and the other records', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const large = own('large', 1, { type: 'X', value: 'x'.repeat(6 * 1024 * 1024) });
    const response = await ingest(target, [large, own('large', 2, { type: 'X' })], 1, 'large');
    expect(response).toMatchObject({ ackedSeq: 2, accepted: 1, rejected: [{ seq: 1, code: 'record_too_large' }] });
    const [kept] = await rows('SELECT record FROM quarantine WHERE producer_id = ?', 'large');
    expect(JSON.parse(String(kept?.record)).beginning).toMatch(/^\{"seq":1,.*x{1000}$/s);
    expect(logged.mock.calls.flat().join()).toContain('string or blob too big');
    logged.mockRestore();
  });

  test('indexes and truncates logs', async () => {
    const lines = Array.from({ length: 300 }, (_, index) =>
      record(index + 1, {
        kind: 'log',
        agentId: 'logs',
        log: { level: 'info', component: 'c', message: `line ${index}` },
      }),
    );
    await ingest(target, lines, 1, 'logs');
    const keeper = new LogKeeper({ database: target.database, now: Date.now }, { maxAgeMs: 60_000, maxBytes: 500 });
    await keeper.indexAll();
    expect(await rows('SELECT indexed_line > 200 AS indexed FROM agent_logs WHERE agent_id = ?', 'logs')).toEqual([
      { indexed: 1 },
    ]);
    await keeper.removeOld();
    keeper.close();
    const page = await (await target.get('/api/v1/agents/logs/logs?q=line&limit=1000')).json();
    expect(page.lines.length).toBeLessThan(100);
    expect(page.log).toMatchObject({ lastLine: 300, lines: page.log.lastLine - page.log.firstLine + 1 });
    // Includes the lines of every earlier suite.
  });

  test('answers 503 to every request while it is away, and recovers when it returns', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await ingest(target, [own('away', 1, { type: 'X' })], 1, 'away');
    const paths = [
      '/sessions',
      '/sessions/away',
      '/sessions/away/transcript',
      '/agents',
      '/agents/away/logs',
      '/readyz',
    ];
    await (await libsql)?.kill();
    for (const path of [...paths, '/stream?topic=fleet']) {
      const response = await target.get(`/api/v1${path}`);
      expect([path, response.status, response.headers.get('retry-after')]).toEqual([path, 503, expect.any(String)]);
    }
    const later = { producer: { id: 'away', epoch: 1 }, records: [own('away', 2, { type: 'Y' })] };
    expect((await sendEvents(target, later)).status).toBe(503);
    await (await libsql)?.restart();
    for (const path of paths) {
      // One readiness check serves for a moment.
      await vi.waitFor(async () => expect([path, (await target.get(`/api/v1${path}`)).status]).toEqual([path, 200]));
    }
    expect(await (await sendEvents(target, later)).json()).toMatchObject({ ackedSeq: 2, accepted: 1 });
    vi.restoreAllMocks();
  });
});
