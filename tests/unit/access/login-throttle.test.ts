import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LoginThrottle } from '@/lib/access/login-throttle';

const [HERE, THERE] = ['192.0.2.1', '198.51.100.2'];
/** Requests with a wrong token that one client keeps in flight. */
const IN_FLIGHT = 260;

let throttle: LoginThrottle;
beforeEach(() => {
  vi.useFakeTimers();
  throttle = new LoginThrottle(Date.now);
});
afterEach(() => vi.useRealTimers());

function fail(count: number, address = HERE): void {
  for (let at = 0; at < count; at += 1) throttle.failed(address);
}

/** @returns how many of `count` requests have had their turn so far */
function send(count: number, address = HERE): () => number {
  let had = 0;
  const turns = Array.from({ length: count }, () => throttle.turn(address));
  for (const turn of turns) {
    turn.then(
      () => {
        had += 1;
      },
      () => {},
    );
  }
  return () => had;
}

/** Sends a wrong token again as soon as the last one was refused, until the signal ends it. */
async function guess(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await throttle.turn(HERE);
    throttle.failed(HERE);
  }
}

async function millisecondsOf(turn: Promise<void>): Promise<number> {
  const since = Date.now();
  await turn;
  return Date.now() - since;
}

test('compares secrets at once while few were wrong, and then one every 3 ms', async () => {
  fail(19);
  const before = send(100);
  await vi.advanceTimersByTimeAsync(0);
  expect(before()).toBe(100);
  fail(1);
  const after = send(100);
  await vi.advanceTimersByTimeAsync(150);
  expect(after()).toBe(50);
});

test.each([HERE, THERE])(
  'gives a right token from %s its turn within a second of 260 wrong ones in flight',
  async (address) => {
    const over = new AbortController();
    const guessers = Array.from({ length: IN_FLIGHT }, () => guess(over.signal));
    await vi.advanceTimersByTimeAsync(5_000);
    for (let sent = 0; sent < 12; sent += 1) {
      const waited = millisecondsOf(throttle.turn(address));
      await vi.advanceTimersByTimeAsync(2_000);
      expect(await waited).toBeLessThan(address === HERE ? 1_000 : 1);
    }
    over.abort();
    await vi.runAllTimersAsync();
    await Promise.all(guessers);
  },
);

test('refuses requests of an address beyond those that may wait', async () => {
  fail(20);
  send(300);
  await expect(throttle.turn(HERE)).rejects.toMatchObject({
    code: 'too_many_requests',
    headers: { 'retry-after': '10' },
  });
  await expect(throttle.turn(THERE)).resolves.toBeUndefined();
});

test('waits for no request that was abandoned', async () => {
  fail(20);
  send(299);
  vi.clearAllTimers();
  vi.setSystemTime(Date.now() + 900);
  const had = send(300);
  await vi.advanceTimersByTimeAsync(900);
  expect(had()).toBe(300);
});

test('compares secrets at once when the wrong ones are a minute old', async () => {
  fail(30);
  vi.setSystemTime(Date.now() + 60_001);
  const had = send(100);
  await vi.advanceTimersByTimeAsync(0);
  expect(had()).toBe(100);
});

test('forgets the address that failed least recently, of more than 10,000', async () => {
  fail(20);
  fail(20, THERE);
  fail(1);
  for (let at = 0; at < 9_999; at += 1) throttle.failed(`address ${at}`);
  const [here, there] = [send(1), send(1, THERE)];
  await vi.advanceTimersByTimeAsync(0);
  expect([here(), there()]).toEqual([0, 1]);
});
