import type { AgentLogLevel, AgentSummary, LogPage } from '@interlude/protocol/read-models';
import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../support/clocks';
import { LocalDashboard } from '../support/local-dashboard';
import { startSilentRunner } from '../support/silent-runner';
import { tempDir } from '../support/temp-dir';

/** A level from the dashboard's route to the runner's log and back, with the real runner, its disk and its port. */
const MINUTE = 60_000;

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

let agents = 0;

async function agentAtHome() {
  agents += 1;
  const agentId = `quiet-${agents}`;
  const folder = await tempDir();
  const clock = new ManualClock();
  const read = async <Model>(path: string) => dashboard.request<Model>(`/agents/${agentId}${path}`);
  return {
    agentId,
    folder,
    clock,
    start: (more: { startedAt?: number } = {}) =>
      startSilentRunner({ agentId, folder, endpoint: dashboard.endpoint, clock, ...more }),
    put: (body: object) => dashboard.request(`/agents/${agentId}/log-level`, body, 'PUT'),
    level: () => read<AgentLogLevel>('/log-level'),
    connection: async () => (await read<{ agent: AgentSummary }>('')).agent.connection,
    /** What its log says of levels and of the test, in order. */
    log: async () =>
      (await read<LogPage>('/logs')).lines.flatMap(({ component, message, marker }) => {
        if (marker?.kind === 'level') return [`${marker.previous} → ${marker.level} (${marker.by})`];
        return component === 'test' ? [message] : [];
      }),
  };
}

const settled = (look: () => unknown) => expect.poll(look, { interval: 10 });
const CONFIRMED = { level: 'debug', by: 'operator', base: 'info', desired: { level: 'debug', state: 'confirmed' } };

describe('a level that is asked of a runner', () => {
  test('is applied while it runs: confirmed, marked in the log, and debug lines arrive', async () => {
    const agent = await agentAtHome();
    const { logger } = await agent.start();
    const log = logger.child('test');
    log.debug('too fine');
    log.info('before');
    await settled(agent.log).toEqual(['before']);
    await agent.put({ level: 'debug' });
    await settled(() => logger.level.get()).toBe('debug');
    log.debug('fine');
    await settled(agent.log).toEqual(['before', 'info → debug (operator)', 'fine']);
    await settled(agent.level).toMatchObject(CONFIRMED);
    await agent.put({ level: null });
    await settled(() => logger.level.get()).toBe('info');
  });

  test('goes back by itself, and the log says so at that place', async () => {
    const agent = await agentAtHome();
    const { logger } = await agent.start();
    await agent.put({ level: 'debug', ttlSeconds: 25 });
    await settled(() => logger.level.get()).toBe('debug');
    agent.clock.fire();
    logger.child('test').debug('too late');
    await settled(agent.log).toEqual(['info → debug (operator)', 'debug → info (time-limit)']);
    await settled(agent.level).toMatchObject({ level: 'info', by: null, until: null });
  });

  test('is shown to be another than is written, where somebody turned it at the control port', async () => {
    const agent = await agentAtHome();
    await agent.start();
    await agent.put({ level: 'debug' });
    await settled(agent.level).toMatchObject(CONFIRMED);
    const control = await readControlFile(controlPath(agent.folder, agent.agentId));
    await fetch(`${control?.url}/log-level`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control?.secret}` },
      body: JSON.stringify({ level: 'error' }),
    });
    await settled(agent.level).toMatchObject({ level: 'error', by: 'control-port', desired: CONFIRMED.desired });
    await settled(agent.log).toEqual(['info → debug (operator)', 'debug → error (control-port)']);
  });

  test('reaches an agent that was away when it comes back, and only the newest does', async () => {
    const agent = await agentAtHome();
    const first = await agent.start();
    await settled(agent.connection).toBe('connected');
    await first.close();
    await settled(agent.connection).toBe('away');
    await agent.put({ level: 'error' });
    await agent.put({ level: 'debug' });
    expect(await agent.level()).toMatchObject({ level: 'info', desired: { level: 'debug', state: 'requested' } });
    await agent.start();
    await settled(agent.level).toMatchObject(CONFIRMED);
    expect(await agent.log()).toEqual(['info → debug (operator)']);
  });

  test('reaches it through an outage of the dashboard', async () => {
    const agent = await agentAtHome();
    await agent.start();
    await settled(agent.connection).toBe('connected');
    await dashboard.down();
    await dashboard.up();
    await agent.put({ level: 'debug' });
    await settled(agent.level).toMatchObject(CONFIRMED);
  });

  test('can be given back, and then nothing is asked any more', async () => {
    const agent = await agentAtHome();
    await agent.start();
    await agent.put({ level: 'warn' });
    await settled(agent.level).toMatchObject({ level: 'warn' });
    await agent.put({ level: null });
    await settled(agent.level).toMatchObject({ level: 'info', by: null, desired: null });
    await settled(agent.log).toEqual(['info → warn (operator)', 'warn → info (operator)']);
  });
});

describe('a level with a time limit', () => {
  test('lasts through a restart of the runner, no longer than it was to', async () => {
    const agent = await agentAtHome();
    const first = await agent.start();
    await agent.put({ level: 'debug' });
    await settled(agent.level).toMatchObject(CONFIRMED);
    await first.close();
    agent.clock.time += 10 * MINUTE;
    const { logger } = await agent.start();
    logger.child('test').debug('still fine');
    // the new process is asked as well, has done it, and says so
    await settled(agent.level).toMatchObject(CONFIRMED);
    const restartedAt = agent.clock.time;
    while (logger.level.get() === 'debug') agent.clock.fire();
    expect(agent.clock.time - restartedAt).toBe(5 * MINUTE);
    await settled(agent.log).toEqual(['info → debug (operator)', 'still fine', 'debug → info (time-limit)']);
  });

  test('that ran out while the runner was away is over when it is back, and the log says so there', async () => {
    const agent = await agentAtHome();
    const first = await agent.start();
    await agent.put({ level: 'debug', ttlSeconds: 60 });
    await settled(agent.level).toMatchObject(CONFIRMED);
    first.logger.child('test').info('last words');
    await first.close();
    agent.clock.time += 2 * MINUTE;
    const { logger } = await agent.start();
    expect(logger.level.get()).toBe('info');
    logger.child('test').info('first words');
    await settled(agent.log).toEqual([
      'info → debug (operator)',
      'last words',
      'debug → info (time-limit)',
      'first words',
    ]);
  });
});

describe('of two runners of one agent', () => {
  test('the one that takes over is asked for the level, and the other confirms nothing', async () => {
    const agent = await agentAtHome();
    const older = await agent.start({ startedAt: 1_000 });
    await agent.put({ level: 'debug', ttlSeconds: null });
    await settled(agent.level).toMatchObject(CONFIRMED);
    const elsewhere = { ...agent, folder: await tempDir() };
    const newer = await startSilentRunner({
      agentId: agent.agentId,
      folder: elsewhere.folder,
      endpoint: dashboard.endpoint,
      clock: agent.clock,
    });
    await settled(() => older.over).toHaveLength(1);
    await settled(() => newer.logger.level.get()).toBe('debug');
    await settled(agent.level).toMatchObject(CONFIRMED);
  });
});
