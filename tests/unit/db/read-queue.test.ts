import { describe, expect, test } from 'vitest';
import { ReadQueue } from '@/db/reader';

/** Named reads that end when the test says so. */
function reads(queue: ReadQueue) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (client: string, name: string, signal?: AbortSignal) =>
    queue.run(
      client,
      () => {
        begun.push(name);
        return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
      },
      { signal },
    );
  const end = async (name: string) => {
    ends.get(name)?.();
    // its end, a turn of the event loop, and the next one's start
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { begun, ask, end };
}

describe('heavy reads', () => {
  test('run few at once, and the next starts when one ends', async () => {
    const { begun, ask, end } = reads(new ReadQueue({ concurrency: 2 }));
    const all = ['1', '2', '3', '4'].map((name) => ask('a', name));
    expect(begun).toEqual(['1', '2']);
    await end('2');
    expect(begun).toEqual(['1', '2', '3']);
    for (const name of ['1', '3', '4']) await end(name);
    expect(await Promise.all(all)).toEqual(['1', '2', '3', '4']);
  });

  test('alternate between clients, even if one sends many', async () => {
    const { begun, ask, end } = reads(new ReadQueue({ concurrency: 1 }));
    for (const name of ['a1', 'a2', 'a3', 'a4']) void ask('a', name);
    void ask('b', 'b1');
    void ask('c', 'c1');
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3']) await end(name);
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'a4']);
  });

  test('are refused when too many wait, first per client and then in total', async () => {
    const queue = new ReadQueue({ concurrency: 1, maxWaiting: 3, maxWaitingOfOne: 2 });
    const { ask, end } = reads(queue);
    void ask('a', 'a1');
    void ask('a', 'a2');
    void ask('a', 'a3');
    await expect(ask('a', 'a4')).rejects.toMatchObject({ code: 'unavailable', headers: { 'retry-after': '1' } });
    void ask('b', 'b1');
    await expect(ask('b', 'b2')).rejects.toMatchObject({ code: 'unavailable' });
    const under = queue.run('a', async () => 'what is under way waits, and is not refused', { continues: true });
    for (const name of ['a1', 'a2']) await end(name);
    const late = ask('b', 'b2');
    for (const name of ['b1', 'a3', 'b2', '']) await end(name);
    expect(await late).toBe('b2');
    expect(await under).toContain('not refused');
  });

  test('free their place when they fail or their reader is gone', async () => {
    const queue = new ReadQueue({ concurrency: 1 });
    const { begun, ask, end } = reads(queue);
    const failing = queue.run('a', () => Promise.reject(new Error('no such table')));
    const gone = new AbortController();
    const left = ask('a', 'left', gone.signal);
    const kept = ask('a', 'kept');
    gone.abort(new Error('nobody waits'));
    await expect(failing).rejects.toThrow('no such table');
    await expect(left).rejects.toThrow('nobody waits');
    await end('');
    await end('kept');
    expect(await kept).toBe('kept');
    expect(begun).toEqual(['kept']);
  });
});
