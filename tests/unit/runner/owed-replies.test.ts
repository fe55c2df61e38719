import { PendingReplies, type PendingReply } from '@interlude/runner/host/pending-replies';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

const reply = (messageId: string): PendingReply => ({
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
  const owed = new PendingReplies(fetch, (message) => errors.push(message));
  return { owed, fetch, errors };
}

describe('the list of pending replies', () => {
  test('is empty before the first response, and a copy afterwards', async () => {
    const { owed } = asking([[reply('a')]]);
    expect(owed.get()).toEqual([]);
    await owed.refresh();
    const mine = owed.get();
    mine.push(reply('mine'));
    expect(owed.get()).toEqual([reply('a')]);
    expect(() => Object.assign(owed.get()[0] as PendingReply, { messageId: 'changed' })).toThrow(TypeError);
  });

  test('is requested at the start and every ten seconds', async () => {
    const { owed, fetch } = asking([[], [], []]);
    owed.start();
    owed.start();
    expect(fetch).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(fetch).toHaveBeenCalledTimes(3);
    owed.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(fetch).toHaveBeenCalledTimes(3);
  });

  test('shares one request among concurrent calls', async () => {
    let answer = (_: unknown) => {};
    const { owed, fetch } = asking(() => new Promise((resolve) => (answer = resolve)));
    const asked = [owed.refresh(), owed.refresh(), owed.refresh()];
    answer([reply('a')]);
    await Promise.all(asked);
    expect(fetch).toHaveBeenCalledTimes(1);
    void owed.refresh();
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test('is requested 400 ms after the first of several changes', async () => {
    const { owed, fetch } = asking([[], []]);
    owed.markDirty();
    await vi.advanceTimersByTimeAsync(300);
    owed.markDirty();
    await vi.advanceTimersByTimeAsync(99);
    expect(fetch).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(fetch).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(fetch).toHaveBeenCalledTimes(1);
  });

  test('is requested again for a change during a request', async () => {
    const answers: ((value: unknown) => void)[] = [];
    const { owed, fetch } = asking(() => new Promise((resolve) => answers.push(resolve)));
    void owed.refresh();
    owed.markDirty();
    await vi.advanceTimersByTimeAsync(500);
    expect(fetch).toHaveBeenCalledTimes(1);
    answers[0]?.([]);
    await vi.advanceTimersByTimeAsync(0);
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test('stays unchanged when the server fails, with a log line', async () => {
    let fails = false;
    const { owed, errors } = asking(async () => {
      if (fails) throw Object.assign(new Error('fetch failed'), { cause: { code: 'ECONNREFUSED' } });
      return [reply('a')];
    });
    await owed.refresh();
    fails = true;
    await owed.refresh();
    expect(owed.get()).toEqual([reply('a')]);
    expect(errors).toEqual(['pending replies could not be refreshed, keeping the last result: ECONNREFUSED']);
  });

  test.each([[{ obligations: [] }], ['text'], [null], [undefined], [7]])(
    'is empty when the answer is %j',
    async (answer) => {
      const { owed, errors } = asking([[reply('a')], answer]);
      await owed.refresh();
      await owed.refresh();
      expect(owed.get()).toEqual([]);
      expect(errors).toEqual([]);
    },
  );

  test('omits invalid entries', async () => {
    const { owed } = asking([[reply('a'), null, { ...reply('c'), sentAt: 'today' }, reply('b')]]);
    await owed.refresh();
    expect(owed.get()).toEqual([reply('a'), reply('b')]);
  });
});
