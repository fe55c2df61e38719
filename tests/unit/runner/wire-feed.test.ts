import { frameReader } from '@interlude/runner/adapters/recordings';
import type { WireAdapter, WireEnd, WireFrame } from '@interlude/runner/adapters/wire';
import { SessionWriter } from '@interlude/runner/adapters/writer/session-writer';
import { WireFeed } from '@interlude/runner/host/wire-feed';
import { expect, onTestFinished, test, vi } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';

/** Starts a turn at `begin`, repeats its input, and ends the turn after ten seconds of silence. */
function adapter(): WireAdapter {
  let runs = 0;
  const writers = new Map<string, SessionWriter>();
  let due: { at: number; writer: SessionWriter } | null = null;
  return {
    get dueAt() {
      return due?.at ?? null;
    },
    read({ msg }, now) {
      const { session, begin, say } = msg as { session: string; begin?: string; say?: string };
      const writer =
        writers.get(session) ?? new SessionWriter({ sessionId: session, newRunId: () => `${session}-r${++runs}` });
      writers.set(session, writer);
      writer.at(now);
      if (begin !== undefined) writer.begin({ kind: 'user', userMessageIds: [begin] });
      if (say !== undefined) writer.parts().appendText('text', null, say);
      due = { at: now + 10_000, writer };
      return writer.drain();
    },
    elapsed(now) {
      if (due === null || due.at > now) return [];
      const { writer, at } = due;
      due = null;
      writer.at(at);
      writer.finish({ kind: 'success' }, { isInferred: true });
      return writer.drain();
    },
    ended: (end, now) =>
      [...writers.values()].flatMap((writer) => {
        writer.at(now);
        writer.end(end);
        return writer.drain();
      }),
  };
}

function stage() {
  const around = new MemorySourceContext();
  const recorded: WireFrame[] = [];
  const answered: [string, readonly string[]][] = [];
  const feed = new WireFeed({
    adapter: adapter(),
    context: around,
    record: (frame) => recorded.push(frame),
    onAnswered: (sessionId, ids) => answered.push([sessionId, ids]),
  });
  onTestFinished(() => feed.close());
  const types = () => around.told.map(({ sessionId, event }) => `${sessionId} ${event.type}`);
  return { around, recorded, answered, feed, types };
}

test('records a frame, and emits its events with the cursor', async () => {
  const { feed, around, recorded } = stage();
  const frame = { dir: 'in', msg: { session: 'a', begin: 'm1', say: 'Hi' } } as const;
  await feed.pass(frame, [{ name: 'place', value: '7' }]);
  expect(recorded).toEqual([frame]);
  expect(around.stored.get('place')).toBe('7');
  const text = around.events.find(({ type }) => type === 'TEXT_MESSAGE_START');
  expect(text?.metadata?.interlude?.replyTo).toEqual(['m1']);
});

test('stores the cursor of a frame without events', async () => {
  const { feed, around } = stage();
  await feed.pass({ dir: 'in', msg: { session: 'a' } }, [{ name: 'place', value: '8' }], 'a');
  expect(around.stored.get('place')).toBe('8');
});

test('emits events of a timeout when due, with the messages they answer', async () => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { feed, types, answered } = stage();
  await feed.pass({ dir: 'in', msg: { session: 'a', begin: 'm1' } });
  await vi.advanceTimersByTimeAsync(9_000);
  await feed.pass({ dir: 'in', msg: { session: 'a', say: 'x' } });
  await vi.advanceTimersByTimeAsync(9_900);
  expect(types()).not.toContain('a RUN_FINISHED');
  await vi.advanceTimersByTimeAsync(200);
  expect(types().at(-1)).toBe('a RUN_FINISHED');
  expect(answered).toEqual([['a', ['m1']]]);
});

test('emits nothing after close', async () => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { feed, types } = stage();
  await feed.pass({ dir: 'in', msg: { session: 'a', begin: 'm1' } });
  feed.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(types()).toEqual(['a RUN_STARTED']);
});

test.each<WireEnd>([
  { reason: 'the runner was stopped', isAsked: true },
  { reason: 'exited with code 3', exitCode: 3, signal: null, goesOn: 'It is started again in 0.5 s.' },
  { reason: 'terminated by signal SIGKILL', exitCode: null, signal: 'SIGKILL' },
])('records an end so that a replay gives the same events: %j', async (end) => {
  const { feed, around, recorded } = stage();
  await feed.pass({ dir: 'in', msg: { session: 'a', begin: 'm1' } });
  await feed.ended(end);
  const live = around.events.map((event) => ({ ...event, runId: 'r' }));
  const reader = frameReader(adapter());
  const replayed = recorded.flatMap(({ dir, msg }) => reader.read({ at: 0, fields: { dir, msg } }, 0));
  expect(replayed.map(({ event }) => ({ ...event, runId: 'r' }))).toEqual(live);
});
