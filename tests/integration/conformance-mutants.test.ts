import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  expectRunnerFails,
  expectServerFails,
  QUICK,
  RUNNER_MUTANTS,
  SERVER_MUTANTS,
} from '../support/conformance-mutants';
import { type InProcessServer, inProcessServer } from '../support/server-target';

const isOurs = ({ title }: { title: string }) => QUICK.has(title);

describe.concurrent('the runner checks', () => {
  test.each(RUNNER_MUTANTS.filter(isOurs))('fail a runner that $title', expectRunnerFails);
});

describe.concurrent('the server checks', () => {
  let server: InProcessServer;
  beforeAll(async () => {
    server = await inProcessServer();
  });
  afterAll(() => server.close());

  test.each(SERVER_MUTANTS.filter(isOurs))('fail a server that $title', (mutant) => expectServerFails(server, mutant));
});
