import { afterAll, describe, expect, test } from 'vitest';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { describeContract, sharedServer } from './contract';
import { describeRunnerAwayContract } from './runner-away-contract';

/** The contract where each request has its own server, which ends with the request. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
let libsql: ReturnType<typeof startLibsqlServer> | undefined;
// Stops after the server that reads from it: hooks run last to first.
afterAll(async () => (await libsql)?.stop());

const shared = sharedServer(async (): Promise<InProcessServer> => {
  libsql = startLibsqlServer();
  return inProcessServer((await libsql).url, { INTERLUDE_CONTEXT: 'per-request' });
});

suites('where requests share nothing', () => {
  describeContract('a server for each request', shared);
  describeRunnerAwayContract('a server for each request', shared);

  test('checks readiness once for all requests of a moment', async () => {
    const target = await shared();
    const commits = async () => {
      const { rows } = await target.database.reader.execute('SELECT count(*) AS count FROM commits');
      return Number(rows[0]?.count);
    };
    const before = await commits();
    for (let n = 0; n < 20; n += 1) expect((await target.get('/readyz')).status).toBe(200);
    expect((await commits()) - before).toBeLessThan(10);
  });
});
