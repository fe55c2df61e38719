import { afterAll, describe } from 'vitest';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { describeContract, sharedServer } from './contract';

/** The same suites where each request has a server of its own, which ends with it. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
let libsql: ReturnType<typeof startLibsqlServer> | undefined;
// behind the server that reads from it: hooks run last to first
afterAll(async () => (await libsql)?.stop());

const shared = sharedServer(async (): Promise<InProcessServer> => {
  libsql = startLibsqlServer();
  return inProcessServer((await libsql).url, { INTERLUDE_CONTEXT: 'per-request' });
});

suites('where requests share nothing', () => describeContract('a server for each request', shared));
