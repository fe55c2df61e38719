import type { AgentLogLevel, AgentSummary, LogPage } from '@interlude/protocol/read-models';
import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../support/clocks';
import { LocalDashboard } from '../support/local-dashboard';
import { startSilentRunner } from '../support/silent-runner';
import { tempDir } from '../support/temp-dir';

/** A log level from the dashboard's route to the runner's log and back, with the real runner, disk and port. */
const MINUTE = 60_000;

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

let agents = 0;

async function runnerWithLog() {
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
    /** The log's lines about levels and from the test, in order. */
    log: async () =>
      (await read<LogPage>('/logs')).lines.flatMap(({ component, message, marker }) => {
        if (marker?.kind === 'level') return [`${marker.previous} → ${marker.level} (${marker.by})`];
        return component === 'test' ? [message] : [];
      }),
  };
}

const eventually = (look: () => unknown) => expect.poll(look, { interval: 10 });
const CONFIRMED = { level: 'debug', by: 'operator', base: 'info', desired: { level: 'debug', state: 'confirmed' } };

describe('a requested level', () => {
  test('is applied to a running runner: confirmed, marked in the log, with debug lines', async () => {
    const agent = await runnerWithLog();
    const { logger } = await agent.start();
    const log = logger.child('test');
    log.debug('too fine');
    log.info('before');
    await eventually(agent.log).toEqual(['before']);
    await agent.put({ level: 'debug' });
    await eventually(() => logger.level.get()).toBe('debug');
    log.debug('fine');
    await eventually(agent.log).toEqual(['before', 'info → debug (operator)', 'fine']);
    await eventually(agent.level).toMatchObject(CONFIRMED);
    await agent.put({ level: null });
    await eventually(() => logger.level.get()).toBe('info');
  });

  test('reverts by itself, which the log marks', async () => {
    const agent = await runnerWithLog();
    const { logger } = await agent.start();
    await agent.put({ level: 'debug', ttlSeconds: 25 });
    await eventually(() => logger.level.get()).toBe('debug');
    agent.clock.fire();
    logger.child('test').debug('too late');
    await eventually(agent.log).toEqual(['info → debug (operator)', 'debug → info (time-limit)']);
    await eventually(agent.level).toMatchObject({ level: 'info', by: null, until: null });
  });

  test('shows the level in use when it was changed at the control port', async () => {
    const agent = await runnerWithLog();
    await agent.start();
    await agent.put({ level: 'debug' });
    await eventually(agent.level).toMatchObject(CONFIRMED);
    const control = await readControlFile(controlPath(agent.folder, agent.agentId));
    await fetch(`${control?.url}/log-level`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control?.secret}` },
      body: JSON.stringify({ level: 'error' }),
    });
    await eventually(agent.level).toMatchObject({ level: 'error', by: 'control-port', desired: CONFIRMED.desired });
    await eventually(agent.log).toEqual(['info → debug (operator)', 'debug → error (control-port)']);
  });

  test('reaches an absent agent when it returns, and only the newest does', async () => {
    const agent = await runnerWithLog();
    const first = await agent.start();
    await eventually(agent.connection).toBe('connected');
    await first.close();
    await eventually(agent.connection).toBe('away');
    await agent.put({ level: 'error' });
    await agent.put({ level: 'debug' });
    expect(await agent.level()).toMatchObject({ level: 'info', desired: { level: 'debug', state: 'requested' } });
    await agent.start();
    await eventually(agent.level).toMatchObject(CONFIRMED);
    expect(await agent.log()).toEqual(['info → debug (operator)']);
  });

  test('reaches the runner through an outage of the dashboard', async () => {
    const agent = await runnerWithLog();
    await agent.start();
    await eventually(agent.connection).toBe('connected');
    await dashboard.down();
    await dashboard.up();
    await agent.put({ level: 'debug' });
    await eventually(agent.level).toMatchObject(CONFIRMED);
  });

  test('is no longer requested after it is reset', async () => {
    const agent = await runnerWithLog();
    await agent.start();
    await agent.put({ level: 'warn' });
    await eventually(agent.level).toMatchObject({ level: 'warn' });
    await agent.put({ level: null });
    await eventually(agent.level).toMatchObject({ level: 'info', by: null, desired: null });
    await eventually(agent.log).toEqual(['info → warn (operator)', 'warn → info (operator)']);
  });
});

describe('a level with a time limit', () => {
  test('survives a restart of the runner without being extended', async () => {
    const agent = await runnerWithLog();
    const first = await agent.start();
    await agent.put({ level: 'debug' });
    await eventually(agent.level).toMatchObject(CONFIRMED);
    await first.close();
    agent.clock.time += 10 * MINUTE;
    const { logger } = await agent.start();
    logger.child('test').debug('still fine');
    // The new process receives the request as well, applies it and confirms.
    await eventually(agent.level).toMatchObject(CONFIRMED);
    const restartedAt = agent.clock.time;
    while (logger.level.get() === 'debug') agent.clock.fire();
    expect(agent.clock.time - restartedAt).toBe(5 * MINUTE);
    await eventually(agent.log).toEqual(['info → debug (operator)', 'still fine', 'debug → info (time-limit)']);
  });

  test('that expired during the runner’s absence is reset on its return, which the log marks', async () => {
    const agent = await runnerWithLog();
    const first = await agent.start();
    await agent.put({ level: 'debug', ttlSeconds: 60 });
    await eventually(agent.level).toMatchObject(CONFIRMED);
    first.logger.child('test').info('last words');
    await first.close();
    agent.clock.time += 2 * MINUTE;
    const { logger } = await agent.start();
    expect(logger.level.get()).toBe('info');
    logger.child('test').info('first words');
    await eventually(agent.log).toEqual([
      'info → debug (operator)',
      'last words',
      'debug → info (time-limit)',
      'first words',
    ]);
  });
});

describe('the newer of two runners of an agent', () => {
  test('receives the level, and the older confirms nothing', async () => {
    const agent = await runnerWithLog();
    const older = await agent.start({ startedAt: 1_000 });
    await agent.put({ level: 'debug', ttlSeconds: null });
    await eventually(agent.level).toMatchObject(CONFIRMED);
    const elsewhere = { ...agent, folder: await tempDir() };
    const newer = await startSilentRunner({
      agentId: agent.agentId,
      folder: elsewhere.folder,
      endpoint: dashboard.endpoint,
      clock: agent.clock,
    });
    await eventually(() => older.over).toHaveLength(1);
    await eventually(() => newer.logger.level.get()).toBe('debug');
    await eventually(agent.level).toMatchObject(CONFIRMED);
  });
});
