import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { inProcessServer, liveServer, type ServerTarget } from '../support/server-target';
import { expectWithin } from '../support/timing';
import { describeRunnerAwayContract } from './runner-away-contract';

describeRunnerAwayContract('in this process', inProcessServer);

let target: ServerTarget;
beforeAll(async () => {
  target = await inProcessServer();
});
afterAll(() => target.close());

test('POST /events stores a task’s output within 5 s after 9,000 pieces', async () => {
  let seq = 0;
  const send = (name: string, values: object[]) =>
    ingest(
      target,
      values.map((value) => record(++seq, { event: { type: 'CUSTOM', name, value: { task_id: 't', ...value } } })),
    );
  await send('task:started', [{ description: 'Build' }]);
  await send('task:output', [{ text: 'x'.repeat(MAX_TASK_OUTPUT_BYTES) }]);
  await send('task:output', Array(9_000).fill({ text: 'y' }));
  const startedAt = performance.now();
  await send('task:output', [{ text: 'z' }]);
  expectWithin(performance.now() - startedAt, 5_000);
});

test('GET /logs answers a backtracking regex over 1 MiB of lines within 5 s', async () => {
  const log = { level: 'info', component: 'c', message: 'a'.repeat(60_000) };
  const lines = Array.from({ length: 20 }, (_, index) => record(index + 1, { agentId: 'logger', kind: 'log', log }));
  await ingest(target, lines, 1, 'logger');
  const startedAt = performance.now();
  const regex = encodeURIComponent('(?i)[^x]{0,140}y');
  const page = await (await target.get(`/api/v1/agents/logger/logs?regex=${regex}`)).json();
  expectWithin(performance.now() - startedAt, 5_000);
  expect(page.lines).toEqual([]);
  expect(page.hasMore).toBe(page.searchedTo !== undefined);
});

test('npm start exits within 10 s of SIGTERM with an open stream', async () => {
  const own = await liveServer();
  const reader = await own.stream('topic=fleet');
  await reader.frame('up-to-date');
  const stoppedAt = performance.now();
  const closed = own.close({ keepStreams: true });
  await reader.end();
  await closed;
  expectWithin(performance.now() - stoppedAt, 10_000);
});
