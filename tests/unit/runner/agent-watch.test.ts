import { NOTHING_OPEN, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { AgentWatch } from '@interlude/runner/host/agent-reachability';
import { expect, test } from 'vitest';

const AT = Date.parse('2026-11-28T10:00:00Z');
const IN_A_TURN: OpenWork = { ...NOTHING_OPEN, turn: { runId: 'r1', userMessageIds: [] } };

/** The watch of a new runner, which probes every five seconds. */
function watched(leftOpen: OpenWork | null) {
  let [now, answer] = [AT, null as string | null];
  const told: string[] = [];
  const watch = new AgentWatch(null, {
    reach: async () => answer,
    print: () => {},
    now: () => now,
    close: async () => void told.push('closed'),
    openWork: () => new Map(leftOpen === null ? [] : [['s1', leftOpen]]),
    store: async () => {},
    report: async () => void told.push(watch.unreachable === undefined ? 'reachable' : 'unreachable'),
    emit: () => {},
    log: () => {},
  });
  return {
    watch,
    told,
    async look(reason: string | null) {
      answer = reason;
      await watch.probe();
      now += 5_000;
    },
  };
}

test('reports work left open as unknown until the agent responds', async () => {
  const { watch, told, look } = watched(IN_A_TURN);
  await look('no answer');
  expect(watch.unreachable).toEqual({ since: AT, reason: 'no answer', wasAtWork: true });
  expect(watch.lastActivityOf('s1')).toBe('working');
  await look('no answer');
  await look(null);
  expect(watch.unreachable).toBeUndefined();
  expect(told).toEqual(['unreachable', 'reachable']);
});

test('loses an agent once, from the first unanswered probe', async () => {
  const { watch, told, look } = watched(IN_A_TURN);
  for (let times = 0; times < 10; times += 1) await look('no answer');
  expect(told).toEqual(['unreachable', 'unreachable', 'closed']);
  expect(watch.unreachable?.since).toBe(AT);
});

test('gives an agent without open work time to start', async () => {
  const { watch, look } = watched(null);
  for (let times = 0; times < 4; times += 1) await look('no answer');
  expect(watch.unreachable).toBeUndefined();
  await look('no answer');
  expect(watch.unreachable).toEqual({ since: AT, reason: 'no answer', wasAtWork: false });
});

test('tolerates some missed probes', async () => {
  const { watch, told, look } = watched(IN_A_TURN);
  await look(null);
  for (let times = 0; times < 3; times += 1) await look('no answer');
  expect(watch.unreachable).toBeUndefined();
  expect(told).toEqual([]);
});
