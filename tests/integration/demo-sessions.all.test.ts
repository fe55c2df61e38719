import { join } from 'node:path';
import type { AgentList, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { ASSISTANT, FIRST_MESSAGE } from '@interlude/runner/cli/demo/assistant-script';
import { FLEET } from '@interlude/runner/cli/demo/demo-source';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type CliRun, startCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { Operator } from '../support/operator';
import { tempDir } from '../support/temp-dir';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

const CAST = FLEET.length + 1;
const sessions = async () => (await dashboard.request<SessionList>('/sessions')).sessions;
const listed = async () => (await sessions()).filter(({ arrangement }) => arrangement.archivedAt === null);

/** Posts ended sessions of a demo agent. */
async function postEnded(...sessionIds: string[]): Promise<void> {
  const event = { type: 'CUSTOM', name: 'session:ended', value: {} };
  const records = sessionIds.map((sessionId, index) => {
    return { seq: index + 1, kind: 'event', agentId: 'checkout-service', sessionId, occurredAt: Date.now(), event };
  });
  await fetch(`${dashboard.url}/api/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${dashboard.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ producer: { id: 'another', epoch: Date.now() }, records }),
  });
}

function startDemo(dataDir: string): CliRun {
  const env = { INTERLUDE_DATA_DIR: dataDir, INTERLUDE_URL: dashboard.url, INTERLUDE_TOKEN: dashboard.token };
  const demo = startCli(['demo', '--speed', '100'], env);
  onTestFinished(() => void demo.process.kill('SIGKILL'));
  return demo;
}

/** Waits until every replaying agent has ended so many turns more. */
async function untilPlayed(turns: number): Promise<void> {
  const before = new Map((await sessions()).map((one) => [one.id, one.turnCount]));
  const replayed = async () => (await sessions()).filter(({ agentId }) => agentId !== ASSISTANT);
  const isPlayed = ({ id, turnCount }: SessionSummary) => turnCount >= (before.get(id) ?? 0) + turns;
  await expect.poll(async () => (await replayed()).filter(isPlayed).length).toBe(FLEET.length);
}

test('the demo keeps one session per agent through rounds and a kill, and leaves only what a person used', async () => {
  const dataDir = join(await tempDir(), 'data');
  const first = startDemo(dataDir);
  await untilPlayed(5);
  expect(await listed()).toHaveLength(CAST);
  first.process.kill('SIGKILL');
  await first.ended;

  const second = startDemo(dataDir);
  await untilPlayed(2);
  expect(await listed()).toHaveLength(CAST);
  expect((await sessions()).find(({ agentId }) => agentId === ASSISTANT)).toMatchObject({
    title: FIRST_MESSAGE,
    state: 'idle',
    turnCount: 1,
  });

  second.process.kill('SIGINT');
  expect((await second.ended).exitCode).toBe(130);
  expect(await listed()).toEqual([]);
  expect((await sessions()).map(({ state }) => state)).toEqual(Array.from({ length: CAST }, () => 'exited'));
  const { agents } = await dashboard.request<AgentList>('/agents');
  expect(agents.filter(({ retiredAt }) => retiredAt === null)).toEqual([]);

  await postEnded('checkout-service-0a1b2c3d', 'checkout-service-mine');
  const third = startDemo(dataDir);
  await untilPlayed(1);
  // Archives what an earlier version left, but not the session of an agent that only has the same name.
  await expect.poll(async () => (await listed()).length).toBe(CAST + 1);
  expect((await listed()).map(({ id }) => id)).toContain('checkout-service-mine');
  const mine = (await listed()).find(({ agentId }) => agentId === ASSISTANT);
  const operator = new Operator(dashboard, mine?.id ?? '');
  await operator.send('Hello');
  await operator.finished(2);
  third.process.kill('SIGTERM');
  await third.ended;
  expect((await listed()).map(({ id }) => id).sort()).toEqual(['checkout-service-mine', mine?.id]);
});
