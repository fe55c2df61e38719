import type { Delivery } from '@interlude/runner/outbox/delivery';
import { Drain } from '@interlude/runner/outbox/drain';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../support/clocks';

/** A drain whose deliveries end when the test says how. */
function scene() {
  const clock = new ManualClock();
  const under: ((delivery: Delivery) => void)[] = [];
  let count = 0;
  const drain = new Drain(
    clock,
    () => {
      count += 1;
      return new Promise((resolve) => under.push(resolve));
    },
    () => undefined,
  );
  return {
    drain,
    clock,
    deliveries: () => count,
    async ends(delivery: Delivery) {
      under.shift()?.(delivery);
      await turn();
    },
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const failed: Delivery = { kind: 'failed', cause: 'unavailable', message: 'down', retryAfterMs: null };

describe('the drain', () => {
  test('runs one delivery at a time, and another one for work that arrived meanwhile', async () => {
    const { drain, ends, deliveries } = scene();
    drain.work();
    await turn();
    drain.work();
    drain.work();
    await turn();
    expect(deliveries()).toBe(1);
    await ends({ kind: 'emptied' });
    expect(deliveries()).toBe(2);
    await ends({ kind: 'emptied' });
    expect(drain.state).toBe('idle');
    expect(deliveries()).toBe(2);
  });

  test('sends nothing more once it is fenced', async () => {
    const { drain, ends, deliveries } = scene();
    drain.work();
    await turn();
    await ends({ kind: 'fenced', message: 'a newer outbox has written' });
    drain.work();
    drain.kick();
    await turn();
    expect([drain.state, deliveries()]).toEqual(['fenced', 1]);
  });

  test('continues until the queue is empty', async () => {
    const { drain, ends, deliveries } = scene();
    drain.work();
    await turn();
    await ends({ kind: 'progressed' });
    await ends({ kind: 'progressed' });
    expect(deliveries()).toBe(3);
    await ends({ kind: 'emptied' });
    expect(drain.state).toBe('idle');
  });

  test('clears its trouble once the queue is empty', async () => {
    const { drain, ends } = scene();
    drain.work();
    await turn();
    await ends({ ...failed, cause: 'storage' });
    expect(drain.trouble).toMatchObject({ kind: 'storage' });
    drain.kick();
    await turn();
    await ends({ kind: 'emptied' });
    expect([drain.state, drain.trouble]).toEqual(['idle', null]);
  });

  test('waits the full delay despite new work, but not after a kick', async () => {
    const { drain, ends, deliveries, clock } = scene();
    drain.work();
    await turn();
    await ends(failed);
    drain.work();
    await turn();
    expect([drain.state, deliveries()]).toEqual(['waiting', 1]);
    drain.kick();
    await turn();
    expect([drain.state, deliveries()]).toEqual(['sending', 2]);
    expect(clock.armed).toEqual([]);
  });

  test('skips the delay after a failure during which it was kicked', async () => {
    const { drain, ends, deliveries, clock } = scene();
    drain.work();
    await turn();
    drain.kick();
    await ends(failed);
    expect([drain.state, deliveries()]).toEqual(['sending', 2]);
    expect(clock.armed).toEqual([]);
    await ends(failed);
    expect(drain.state).toBe('waiting');
  });

  test('keeps the start of a trouble and counts attempts until a success', async () => {
    const { drain, ends, clock } = scene();
    drain.work();
    await turn();
    await ends(failed);
    const { since } = drain.trouble ?? {};
    clock.fire();
    await turn();
    await ends({ ...failed, cause: 'unauthorized', message: 'no' } as Delivery);
    expect(drain.trouble).toMatchObject({ kind: 'unauthorized', message: 'no', since, tries: 2 });
    clock.fire();
    await turn();
    await ends({ kind: 'progressed' });
    expect(drain.trouble).toBeNull();
  });

  test('sends nothing and has no timer after stop', async () => {
    const { drain, ends, deliveries, clock } = scene();
    drain.work();
    await turn();
    const stopped = drain.stop();
    await ends(failed);
    await stopped;
    drain.kick();
    await turn();
    expect([drain.state, deliveries(), clock.armed.length]).toEqual(['stopped', 1, 0]);
  });
});
