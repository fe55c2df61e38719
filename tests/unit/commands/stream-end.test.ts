import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { OpenStreams, streamToBody } from '@/lib/server/access/streamed-response';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { FrameReader } from '../../support/frames';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../../support/ingest-target';

/** An ended stream leaves nothing behind. */
const MAX_MS = 280_000;
const BY = { whenOver: () => () => {}, scope: { kind: 'everything' as const } };

let target: InProcessTarget;
let hub: CommandHub;
let following: number;
beforeEach(async () => {
  target = await inProcessTarget(Date.now);
  await ingest(target, [marker(1)]);
  following = 0;
  const follow = () => {
    following += 1;
    return () => {
      following -= 1;
    };
  };
  const streams = new OpenStreams(
    () => {},
    () => {},
  );
  const database = { ...target.database, follow };
  hub = new CommandHub({ database, now: Date.now, kind: 'perRequest', streams });
});
afterEach(async () => {
  hub.close();
  vi.useRealTimers();
  await target.close();
});

async function listen(agentId: string, runnerId: string): Promise<FrameReader> {
  const runner = { id: runnerId, startedAt: Date.now() };
  const opener = await hub.open(agentId, runner, 0, new AbortController().signal, MAX_MS, BY);
  const reader = new FrameReader(streamToBody(opener));
  await reader.until((frames) => frames.some(({ event }) => `${event}` === 'up-to-date'));
  return reader;
}

describe('an ended runner’s stream', () => {
  test('leaves no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const gone = await listen('a1', 'one');
    expect(vi.getTimerCount()).toBe(1);
    await gone.cancel();
    expect(vi.getTimerCount()).toBe(0);
    const replaced = await listen('a1', 'one');
    const latest = await listen('a1', 'one');
    await replaced.end();
    await latest.cancel();
    // The first one's time to read its bye.
    vi.advanceTimersByTime(10_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('sends bye in time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const reader = await listen('a1', 'one');
    vi.advanceTimersByTime(MAX_MS);
    const frames = await reader.end();
    expect(frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'planned' } });
  });
});

describe('following other processes’ commits', () => {
  test('happens once, while a runner is connected', async () => {
    hub.start();
    expect(following).toBe(0);
    const one = await listen('a1', 'one');
    const other = await listen('a2', 'two');
    expect(following).toBe(1);
    const again = await listen('a1', 'one');
    await one.end();
    await other.cancel();
    expect(following).toBe(1);
    await again.cancel();
    expect(following).toBe(0);
    await listen('a1', 'one');
    expect(following).toBe(1);
    hub.close();
    expect(following).toBe(0);
  });

  test('does not happen for a stream opened while the hub closed', async () => {
    const { signal } = new AbortController();
    const opening = hub.open('a1', { id: 'one', startedAt: 1 }, 0, signal, MAX_MS, BY);
    hub.close();
    const frames = await new FrameReader(streamToBody(await opening)).end();
    expect(frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } });
    expect(following).toBe(0);
  });
});
