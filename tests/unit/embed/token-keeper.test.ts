import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Checked, TokenLimits } from '@/components/embed/token-keeper';
import { TokenKeeper } from '@/components/embed/token-keeper';

const START = 1_000_000;
const good = (limits: Partial<TokenLimits> = {}): Checked => ({
  kind: 'good',
  limits: { parentOrigin: null, expiresAt: null, mayAct: false, ...limits },
});

beforeEach(() => {
  vi.useFakeTimers({ now: START });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A keeper, a server that accepts the tokens in `taken`, and a log of events. */
function kept(checks: Record<string, Checked> = {}, fault: (limits: TokenLimits) => string | null = () => null) {
  const log: string[] = [];
  const taken = new Set<string>();
  const keeper = new TokenKeeper({
    request: (why) => log.push(`ask ${why}`),
    check: async (token) => checks[token] ?? good(),
    fault,
    onGood: () => log.push('good'),
    onNone: () => log.push('none'),
    onFault: (why) => log.push(`fault ${why}`),
    fetch: async (input, init) => {
      const bearer = new Headers(init?.headers).get('authorization') ?? '';
      log.push(`${input} ${bearer} ${init?.credentials}`);
      return new Response(null, { status: taken.has(bearer.slice(7)) ? 200 : 401 });
    },
    now: Date.now,
  });
  return { keeper, log, taken };
}

test('sends requests with the token and without cookies', async () => {
  const { keeper, log, taken } = kept();
  taken.add('t1');
  await keeper.give('t1');
  const response = await keeper.fetch('/a', { credentials: 'same-origin' });
  expect(response.status).toBe(200);
  expect(log).toEqual(['good', '/a Bearer t1 omit']);
});

test('repeats all refused requests once with a single new token', async () => {
  const { keeper, log, taken } = kept();
  await keeper.give('t1');
  const answers = Promise.all([keeper.fetch('/a'), keeper.fetch('/b')]);
  await vi.advanceTimersByTimeAsync(100);
  expect(log.filter((one) => one.startsWith('ask'))).toEqual(['ask refused']);
  taken.add('t2');
  await keeper.give('t2');
  expect((await answers).map(({ status }) => status)).toEqual([200, 200]);
  expect(log.slice(-2)).toEqual(['/a Bearer t2 omit', '/b Bearer t2 omit']);
});

test('keeps requests refused without a new token, and accepts a later one', async () => {
  const { keeper, log, taken } = kept();
  await keeper.give('t1');
  const response = keeper.fetch('/a');
  await vi.advanceTimersByTimeAsync(15_000);
  expect((await response).status).toBe(401);
  expect(log.at(-1)).toBe('none');
  taken.add('t2');
  await keeper.give('t2');
  expect((await keeper.fetch('/a')).status).toBe(200);
});

test('times out on the first token, and accepts a later one', async () => {
  const { keeper, log } = kept();
  keeper.begin();
  await vi.advanceTimersByTimeAsync(15_000);
  expect(log).toEqual(['ask first', 'none']);
  await keeper.give('t1');
  expect(log).toEqual(['ask first', 'none', 'good']);
});

test('never uses an invalid token, and stops requesting after three', async () => {
  const { keeper, log } = kept({ bad: { kind: 'refused' } });
  for (let given = 0; given < 3; given += 1) await keeper.give('bad');
  expect(log).toEqual(['ask refused', 'ask refused', 'none']);
});

test('checks a token again while the server is down, and prefers the later of two', async () => {
  const checks: Record<string, Checked> = { t1: { kind: 'away' } };
  const { keeper, log, taken } = kept(checks);
  const first = keeper.give('t1');
  await vi.advanceTimersByTimeAsync(300);
  await keeper.give('t2');
  checks.t1 = good();
  await vi.advanceTimersByTimeAsync(20_000);
  await first;
  expect(log).toEqual(['good']);
  taken.add('t2');
  expect((await keeper.fetch('/a')).status).toBe(200);
});

test('drops a token for another page and reports why', async () => {
  const { keeper, log } = kept({}, () => 'not yours');
  await keeper.give('t1');
  expect(log).toEqual(['fault not yours']);
  void keeper.fetch('/a');
  await vi.advanceTimersByTimeAsync(0);
  expect(log.at(-1)).toBe('ask first');
});

test.each([
  ['15 minutes', 900_000, 870_000],
  ['8 seconds', 8_000, 6_000],
  ['a second', 1_000, 1_000],
])('requests the next token before one of %s ends', async (_time, ttlMs, askedAfterMs) => {
  const { keeper, log } = kept({ t1: good({ expiresAt: START + ttlMs }) });
  await keeper.give('t1');
  await vi.advanceTimersByTimeAsync(askedAfterMs - 1);
  expect(log).toEqual(['good']);
  await vi.advanceTimersByTimeAsync(1);
  expect(log).toEqual(['good', 'ask expiring']);
});
