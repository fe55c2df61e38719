import { ObligationCache, type OpenObligation } from '@interlude/runner/host/obligations';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

const reply = (messageId: string): OpenObligation => ({
  messageId,
  sessionId: 's1',
  from: { kind: 'person', id: 'operator' },
  text: 'Well?',
  sentAt: 1,
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function asking(answers: unknown[] | (() => Promise<unknown>)) {
  const errors: string[] = [];
  const fetch = vi.fn(typeof answers === 'function' ? answers : async () => answers.shift());
  const cache = new ObligationCache(fetch, (message) => errors.push(message));
  return { cache, fetch, errors };
}

describe('the list of pending replies', () => {
  test('is empty before the first response, and a copy afterwards', async () => {
    const { cache } = asking([[reply('a')]]);
    expect(cache.get()).toEqual([]);
    await cache.refresh();
    const mine = cache.get();
    mine.push(reply('mine'));
    expect(cache.get()).toEqual([reply('a')]);
    expect(() => Object.assign(cache.get()[0] as OpenObligation, { messageId: 'changed' })).toThrow(TypeError);
  });

  test('is requested at the start and every ten seconds', async () => {
    const { cache, fetch } = asking([[], [], []]);
    cache.start();
    cache.start();
    expect(fetch).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(fetch).toHaveBeenCalledTimes(3);
    cache.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(fetch).toHaveBeenCalledTimes(3);
  });

  test('shares one request among concurrent calls', async () => {
    let answer = (_: unknown) => {};
    const { cache, fetch } = asking(() => new Promise((resolve) => (answer = resolve)));
    const asked = [cache.refresh(), cache.refresh(), cache.refresh()];
    answer([reply('a')]);
    await Promise.all(asked);
    expect(fetch).toHaveBeenCalledTimes(1);
    void cache.refresh();
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test('is requested 400 ms after the first of several changes', async () => {
    const { cache, fetch } = asking([[], []]);
    cache.markDirty();
    await vi.advanceTimersByTimeAsync(300);
    cache.markDirty();
    await vi.advanceTimersByTimeAsync(99);
    expect(fetch).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(fetch).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(fetch).toHaveBeenCalledTimes(1);
  });

  test('is requested again for a change during a request', async () => {
    const answers: ((value: unknown) => void)[] = [];
    const { cache, fetch } = asking(() => new Promise((resolve) => answers.push(resolve)));
    void cache.refresh();
    cache.markDirty();
    await vi.advanceTimersByTimeAsync(500);
    expect(fetch).toHaveBeenCalledTimes(1);
    answers[0]?.([]);
    await vi.advanceTimersByTimeAsync(0);
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test('stays unchanged when the server fails, with a log line', async () => {
    let fails = false;
    const { cache, errors } = asking(async () => {
      if (fails) throw Object.assign(new Error('fetch failed'), { cause: { code: 'ECONNREFUSED' } });
      return [reply('a')];
    });
    await cache.refresh();
    fails = true;
    await cache.refresh();
    expect(cache.get()).toEqual([reply('a')]);
    expect(errors).toEqual(['could not refresh pending replies; keeping the last result: ECONNREFUSED']);
  });

  test.each([[{ obligations: [] }], ['text'], [null], [undefined], [7]])(
    'is empty when the answer is %j',
    async (answer) => {
      const { cache, errors } = asking([[reply('a')], answer]);
      await cache.refresh();
      await cache.refresh();
      expect(cache.get()).toEqual([]);
      expect(errors).toEqual([]);
    },
  );

  test('omits invalid entries', async () => {
    const { cache } = asking([[reply('a'), null, { ...reply('c'), sentAt: 'today' }, reply('b')]]);
    await cache.refresh();
    expect(cache.get()).toEqual([reply('a'), reply('b')]);
  });
});
