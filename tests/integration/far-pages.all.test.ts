import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ingest } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { sessionsOf, stepOf } from '../support/numbered-work';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';

/** What a page costs at a database that is far away: each request to it takes as long as the way there and back. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
const STEPS = 240;

suites('pages from a database that is far away', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  let line: UnreliableProxy;
  let target: InProcessServer;

  beforeAll(async () => {
    libsql = await startLibsqlServer();
    line = await unreliableProxy(libsql.url, 0);
    target = await inProcessServer(line.origin);
    const records = Array.from({ length: STEPS }, (_, at) => stepOf('far', at + 1).records).flat();
    const numbered = records.map((record, at) => ({ seq: at + 1, ...record }));
    for (let at = 0; at < numbered.length; at += 500) await ingest(target, numbered.slice(at, at + 500), 1, 'far');
  });
  afterAll(async () => {
    await target?.close();
    await line?.close();
    await libsql?.stop();
  });

  test.each([20, 200])('a transcript of %i turns is asked for in few requests', async (limit) => {
    const before = line.requests;
    const page = await (await target.get(`/api/v1/sessions/${sessionsOf('far')[0]}/transcript?limit=${limit}`)).json();
    expect(page.turns).toHaveLength(limit);
    expect(line.requests - before).toBeLessThan(25);
  });
});
