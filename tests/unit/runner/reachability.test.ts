import { type Outage, ReachabilityProbe } from '@interlude/runner/host/agent-reachability';
import { expect, test } from 'vitest';

const AT = Date.parse('2026-11-28T10:00:00Z');

/** An agent's scripted address, probed every five seconds of the test's clock. */
function watched(before: Outage | null = null) {
  let [now, reason] = [AT, null as string | null];
  const told: string[] = [];
  const reach = new ReachabilityProbe({
    reach: async () => reason,
    onLost: async (outage) => void told.push(`lost since ${outage.since - AT}: ${outage.reason}`),
    onBack: async (outage) => void told.push(`back, lost since ${outage.since - AT}`),
    print: (line) => void told.push(`said: ${line}`),
    before,
    now: () => now,
  });
  return {
    reach,
    told,
    async pass(ms: number, answer: string | null) {
      reason = answer;
      for (const end = now + ms; now < end; now += 5_000) await reach.probe();
    },
  };
}

test('loses an unresponsive agent within 25 s, from the first failed probe', async () => {
  const { reach, told, pass } = watched();
  await pass(60_000, null);
  await pass(20_000, 'no answer');
  expect([reach.outage, told]).toEqual([null, []]);
  await pass(5_000, 'no answer');
  expect(told).toEqual(['said: no answer; retrying', 'lost since 60000: no answer']);
  await pass(10 * 60_000, 'no answer');
  expect(told).toHaveLength(2);
  expect(reach.outage).toEqual({ since: AT + 60_000, reason: 'no answer' });
});

test('restores an agent that responds again, and reports its next outage', async () => {
  const { reach, told, pass } = watched();
  await pass(5_000, null);
  await pass(25_000, 'no answer');
  await pass(5_000, null);
  expect(reach.outage).toBeNull();
  expect(told.slice(2)).toEqual(['said: the agent is reachable again', 'back, lost since 5000']);
  await pass(25_000, 'still none');
  expect(told.slice(4)).toEqual(['said: still none; retrying', 'lost since 35000: still none']);
});

test('ignores a short outage', async () => {
  const { told, pass } = watched();
  for (let times = 0; times < 10; times += 1) {
    await pass(5_000, null);
    await pass(20_000, 'no answer');
  }
  await pass(5_000, null);
  expect(told).toEqual([]);
});

test('prints at once that an address is dead from the start', async () => {
  const { told, pass } = watched();
  await pass(5_000, 'ECONNREFUSED');
  expect(told).toEqual(['said: ECONNREFUSED; retrying']);
  await pass(20_000, 'ECONNREFUSED');
  expect(told.slice(1)).toEqual(['lost since 0: ECONNREFUSED']);
});

test('ignores probes around a sleep of the machine', async () => {
  let now = AT;
  const lost: Outage[] = [];
  const answers = [null, 'no answer', 'the network is not up yet', null];
  const reach = new ReachabilityProbe({
    reach: async () => answers.shift() ?? null,
    onLost: async (outage) => void lost.push(outage),
    onBack: async () => {},
    print: () => {},
    now: () => now,
  });
  for (const sleptMs of [0, 5_000, 3_600_000, 5_000]) {
    now += sleptMs;
    await reach.probe();
  }
  expect(lost).toEqual([]);
});

test('continues the outage of the previous runner without repeating it', async () => {
  const { reach, told, pass } = watched({ since: AT - 60_000, reason: 'no answer' });
  expect(reach.outage?.since).toBe(AT - 60_000);
  await pass(60_000, 'no answer');
  await pass(5_000, null);
  expect(told).toEqual(['said: no answer; retrying', 'said: the agent is reachable again', 'back, lost since -60000']);
});
