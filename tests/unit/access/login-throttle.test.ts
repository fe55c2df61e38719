import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LoginThrottle } from '@/lib/server/access/login-throttle';

const [HERE, THERE] = ['192.0.2.1', '198.51.100.2'];
let throttle: LoginThrottle;
beforeEach(() => {
  vi.useFakeTimers();
  throttle = new LoginThrottle(Date.now);
});
afterEach(() => vi.useRealTimers());

function fail(count: number, address = HERE): void {
  for (let index = 0; index < count; index += 1) throttle.recordFailure(address);
}

/** @returns how many of `count` requests were admitted and refused so far */
function send(count: number, { address = HERE, signal }: { address?: string; signal?: AbortSignal } = {}) {
  const had = { compared: 0, refused: 0 };
  for (let index = 0; index < count; index += 1) {
    throttle.admit(address, signal).then(
      () => {
        had.compared += 1;
      },
      () => {
        had.refused += 1;
      },
    );
  }
  return had;
}

/** Sends a wrong token again after each response, until the signal aborts. */
async function guess(signal: AbortSignal, counts: { compared: number }): Promise<void> {
  while (!signal.aborted) {
    await throttle.admit(HERE).then(
      () => {
        counts.compared += 1;
        throttle.recordFailure(HERE);
      },
      () => {},
    );
  }
}

test('admits requests at once after few failures, then in rounds', async () => {
  fail(19);
  const before = send(100);
  await vi.advanceTimersByTimeAsync(0);
  expect(before).toEqual({ compared: 100, refused: 0 });
  fail(1);
  const after = send(100);
  await vi.advanceTimersByTimeAsync(599);
  expect(after).toEqual({ compared: 0, refused: 0 });
  await vi.advanceTimersByTimeAsync(1);
  expect(after).toEqual({ compared: 100, refused: 0 });
});

/** In flight; the least of 100 right tokens admitted (mean minus five standard deviations); the most. */
test.each([
  [260, 100, 100],
  [320, 72, 100],
  [1_000, 6, 53],
])(
  'with %i wrong tokens in flight, admits right ones from that address within a second',
  async (inFlight, least, most) => {
    fail(20);
    const over = new AbortController();
    const guesses = { compared: 0 };
    const guessers = Array.from({ length: inFlight }, () => guess(over.signal, guesses));
    let passed = 0;
    for (let sent = 0; sent < 100; sent += 20) {
      const [here, there] = [send(20), send(20, { address: THERE })];
      await vi.advanceTimersByTimeAsync(1_000);
      expect([here.compared + here.refused, there.compared]).toEqual([20, 20]);
      passed += here.compared;
    }
    expect(passed).toBeGreaterThanOrEqual(least);
    expect(passed).toBeLessThanOrEqual(most);
    // 300 per round, however many are in flight
    expect(guesses.compared).toBeLessThanOrEqual((5_000 / 600 + 1) * 300);
    over.abort();
    await vi.runAllTimersAsync();
    await Promise.all(guessers);
  },
);

test('refuses requests beyond the limit of a round', async () => {
  fail(20);
  const client = new AbortController();
  const here = send(301);
  await vi.advanceTimersByTimeAsync(600);
  expect(here).toEqual({ compared: 300, refused: 1 });
  const refusal = throttle.admit(HERE, client.signal).catch((error) => error);
  client.abort();
  await vi.advanceTimersByTimeAsync(600);
  expect(await refusal).toMatchObject({ code: 'too_many_requests', headers: { 'retry-after': '1' } });
});

test('does not admit an aborted request', async () => {
  fail(20);
  const clients = Array.from({ length: 2_000 }, () => new AbortController());
  const abandoned = clients.map(({ signal }) => send(1, { signal }));
  const right = send(1);
  for (const client of clients) client.abort();
  await vi.advanceTimersByTimeAsync(600);
  expect(right.compared).toBe(1);
  expect(abandoned.filter(({ refused }) => refused === 1)).toHaveLength(2_000);
});

test('refuses at once a request that was already aborted', async () => {
  fail(20);
  const abandoned = send(2_000, { signal: AbortSignal.abort() });
  const right = send(1);
  await vi.advanceTimersByTimeAsync(0);
  expect(abandoned).toEqual({ compared: 0, refused: 2_000 });
  await vi.advanceTimersByTimeAsync(600);
  expect(right.compared).toBe(1);
});

test('admits requests at once a minute after the failures', async () => {
  fail(30);
  vi.setSystemTime(Date.now() + 60_001);
  const had = send(100);
  await vi.advanceTimersByTimeAsync(0);
  expect(had.compared).toBe(100);
});

test('evicts the least recently failed of more than 10,000 addresses', async () => {
  fail(20);
  fail(20, THERE);
  fail(1);
  for (let index = 0; index < 9_999; index += 1) throttle.recordFailure(`address ${index}`);
  const [here, there] = [send(1), send(1, { address: THERE })];
  await vi.advanceTimersByTimeAsync(0);
  expect([here.compared, there.compared]).toEqual([0, 1]);
});
