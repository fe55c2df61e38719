import type { Group } from '@interlude/conformance/check';
import { describe, expect, test } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { checkRunner, checkServer, expectFailed, frontOf, OURS } from '../support/conformance-runs';
import { inProcessServer } from '../support/server-target';

/** Groups that hardly wait. */
const SERVER_GROUPS: Group[] = ['outbox', 'answers', 'turns', 'tasks', 'requests', 'secrets'];

describe('the quick conformance checks pass', () => {
  test('for our own runner', async () => {
    expectFailed(await checkRunner(OURS, { only: ['turns'] }), []);
  });

  test('for our own server, which archives the checks’ sessions', async () => {
    const server = await inProcessServer();
    const front = await frontOf(server.fetch, (request, pass) => pass(request));
    try {
      const { results, left } = await checkServer({ url: front.url, token: server.token }, { only: SERVER_GROUPS });
      expectFailed(results, []);
      expect(results.filter(({ verdict }) => verdict === 'passed').length).toBeGreaterThan(30);
      expect(left).toEqual([]);
    } finally {
      await front.close();
      await server.close();
    }
  });
});

describe('the command', () => {
  test('prints each verdict with evidence and advice, and fails when one fails', async () => {
    const ends = ['sh', '-c', 'echo no; exit 1'];
    const { exitCode, stdout } = await callCli(['conformance', 'runner', '--timeout', '2', '--', ...ends]);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^turns\n {2}✗ a turn names its message/);
    expect(stdout).toMatch(/the runner exited: no/);
    expect(stdout).toMatch(/\n0 passed, \d+ failed\n$/);
  });

  test.each([
    [['conformance'], /name server or runner/],
    [['conformance', 'clients'], /cannot check "clients"/],
    [['conformance', 'runner'], /put the runner command after --/],
    [['conformance', 'runner', '--ours', '--', 'x'], /pass either a command or --ours/],
    [['conformance', 'server', '--only', 'manners'], /--only must be one of outbox, answers/],
    [['conformance', 'server', '--timeout', '0'], /--timeout must be a number of seconds/],
  ])('refuses %j with what to do', async (args, message) => {
    const { exitCode, stderr } = await callCli(args);
    expect([exitCode, stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(stderr).toMatch(message);
  });

  test('reports an unreachable server on one line', async () => {
    const args = ['conformance', 'server', '--url', 'http://127.0.0.1:9'];
    const { exitCode, stderr } = await callCli(args, { INTERLUDE_TOKEN: 'a-token-for-nobody' });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^interlude: http:\/\/127\.0\.0\.1:9 does not answer \(.*\)\. Start it, or name another with --url\n$/,
    );
  });
});
