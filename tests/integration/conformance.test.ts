import { describe, expect, test } from 'vitest';
import type { CheckResult } from '@/lib/runner/conformance/check';
import type { ConformanceReport } from '@/lib/runner/conformance/report';
import { runCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { checkRunnerInLanes, checkServer, expectFailed, OURS, PYTHON, TYPESCRIPT } from '../support/conformance-runs';
import { startLiveServer } from '../support/live-server';

const skipped = (results: readonly CheckResult[]) => results.filter(({ verdict }) => verdict === 'skipped');

describe.concurrent('the conformance check passes', () => {
  test('our own runner, and leaves nothing of it out', async () => {
    const results = await checkRunnerInLanes(OURS);
    expectFailed(results, []);
    expect(skipped(results)).toEqual([]);
  });

  test.each([
    ['in Python', PYTHON],
    ['in TypeScript', TYPESCRIPT],
  ])('the small runner %s, and leaves out what that says it does not take', async (_, command) => {
    const results = await checkRunnerInLanes(command);
    expectFailed(results, []);
    expect([...new Set(skipped(results).map(({ detail }) => detail))]).toEqual([
      'this small runner takes messages and nothing else',
    ]);
    expect(results.filter(({ verdict }) => verdict === 'passed').length).toBeGreaterThanOrEqual(40);
  });

  test('a server as people start it, and puts away what it played there', async () => {
    const server = await startLiveServer();
    try {
      const { results, left, prefix } = await checkServer(server);
      expectFailed(results, []);
      expect(skipped(results)).toEqual([]);
      expect(left).toEqual([]);
      const read = async (path: string) => {
        const headers = { authorization: `Bearer ${server.token}` };
        return await (await fetch(`${server.url}/api/v1${path}`, { headers })).json();
      };
      const { sessions } = await read(`/sessions?q=${prefix}`);
      expect(sessions.length).toBeGreaterThan(20);
      for (const { id, state, arrangement } of sessions) {
        // One has said itself that it is complete, and that stays.
        expect([id, /^(exited|complete)$/.test(state)]).toEqual([id, true]);
        expect(arrangement.archivedAt).not.toBeNull();
      }
      const { agents } = await read(`/agents?q=${prefix}`);
      for (const { id, retiredAt } of agents) expect([id, retiredAt]).toEqual([id, expect.any(Number)]);
      expect((await read('/inbox')).counts).toMatchObject({ failure: 0, permission: 0, question: 0 });

      const told = await runCli(['conformance', 'server', '--only', 'outbox', '--json'], {
        INTERLUDE_URL: server.url,
        INTERLUDE_TOKEN: server.token,
      });
      expect(told.exitCode).toBe(0);
      const report = JSON.parse(told.stdout) as ConformanceReport;
      expect(report).toMatchObject({ mode: 'server', target: server.url, protocol: '1', failed: 0, skipped: 0 });
      expect(report.passed).toBe(report.checks.length);
      expect(new Set(report.checks.map(({ group }) => group))).toEqual(new Set(['outbox']));
    } finally {
      await server.stop();
    }
  });
});

describe('the command', () => {
  test('says a verdict a line, with what was seen and what to do, and fails where one does', async () => {
    const ends = ['sh', '-c', 'echo no; exit 1'];
    const { exitCode, stdout } = await callCli(['conformance', 'runner', '--timeout', '2', '--', ...ends]);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^turns\n {2}✗ a turn names the message that it answers/);
    expect(stdout).toMatch(/the runner has ended by itself: no/);
    expect(stdout).toMatch(/\n0 passed, \d+ failed\n$/);
  });

  test.each([
    [['conformance'], /name server or runner/],
    [['conformance', 'clients'], /there is no "clients" to check/],
    [['conformance', 'runner'], /the command of the runner stands behind --/],
    [['conformance', 'runner', '--ours', '--', 'x'], /give a command or --ours/],
    [['conformance', 'server', '--only', 'manners'], /--only is one of outbox, answers/],
    [['conformance', 'server', '--timeout', '0'], /--timeout is a number of seconds/],
  ])('%j is refused with what to do', async (args, says) => {
    const { exitCode, stderr } = await callCli(args);
    expect([exitCode, stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(stderr).toMatch(says);
  });

  test('says of a server that is not there that it is not, in one line', async () => {
    const args = ['conformance', 'server', '--url', 'http://127.0.0.1:9'];
    const { exitCode, stderr } = await callCli(args, { INTERLUDE_TOKEN: 'a-token-for-nobody' });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^interlude: http:\/\/127\.0\.0\.1:9 does not answer \(.*\); start it, or name another with --url\n$/,
    );
  });
});
