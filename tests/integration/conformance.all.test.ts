import type { CheckResult, ConformanceReport } from '@interlude/conformance/check';
import { describe, expect, test } from 'vitest';
import { runCli } from '../support/cli';
import { checkRunnerInLanes, checkServer, expectFailed, OURS, PYTHON, TYPESCRIPT } from '../support/conformance-runs';
import { startLiveServer } from '../support/live-server';

const skipped = (results: readonly CheckResult[]) => results.filter(({ verdict }) => verdict === 'skipped');

describe.concurrent('conformance', () => {
  test('every check passes for our own runner, skipping none', async () => {
    const results = await checkRunnerInLanes(OURS);
    expectFailed(results, []);
    expect(skipped(results)).toEqual([]);
  });

  test.each([
    ['in Python', PYTHON],
    ['in TypeScript', TYPESCRIPT],
  ])('every check passes for the small runner %s, skipping what that refuses', async (_, command) => {
    const results = await checkRunnerInLanes(command);
    expectFailed(results, []);
    expect([...new Set(skipped(results).map(({ detail }) => detail))]).toEqual([
      'this small runner supports messages only',
    ]);
    expect(results.filter(({ verdict }) => verdict === 'passed').length).toBeGreaterThanOrEqual(40);
  });

  test('every check passes for npm start, which archives the check’s sessions', async () => {
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
        // One session reported its own completion, which remains.
        expect([id, /^(exited|complete)$/.test(state)]).toEqual([id, true]);
        expect(arrangement.archivedAt).not.toBeNull();
      }
      const { agents } = await read(`/agents?q=${prefix}`);
      for (const { id, retiredAt } of agents) expect([id, retiredAt]).toEqual([id, expect.any(Number)]);
      expect((await read('/inbox')).counts).toMatchObject({ failure: 0, permission: 0, question: 0 });

      const result = await runCli(['conformance', 'server', '--only', 'outbox', '--json'], {
        INTERLUDE_URL: server.url,
        INTERLUDE_TOKEN: server.token,
      });
      expect(result.exitCode).toBe(0);
      const report = JSON.parse(result.stdout) as ConformanceReport;
      expect(report).toMatchObject({ mode: 'server', target: server.url, protocol: '1', failed: 0, skipped: 0 });
      expect(report.passed).toBe(report.checks.length);
      expect(new Set(report.checks.map(({ group }) => group))).toEqual(new Set(['outbox']));
    } finally {
      await server.stop();
    }
  });
});
