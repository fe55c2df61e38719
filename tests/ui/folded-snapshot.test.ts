import { expect, it } from 'vitest';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import type { RowFrame } from '@/components/live/row-frame';

interface Seen {
  position: string;
  ids: string[];
}

const frame = (id: string) => ({ id, event: 'session-event', data: {} }) as unknown as RowFrame;

/** A snapshot at position 1 whose second read is pending; the test resolves it. */
function readAgain() {
  let answer: (snapshot: Seen) => void = () => {};
  const snapshot = new FoldedSnapshot<Seen>({
    initial: { position: '1', ids: ['1'] },
    read: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
    fold: (before, frames) => ({ ...before, ids: [...before.ids, ...frames.map(({ id }) => id)] }),
  });
  const reading = snapshot.read(new AbortController().signal);
  const take = (...ids: string[]) => snapshot.applyFrames(ids.map(frame));
  return { snapshot, reading, take, answer: (seen: Seen) => answer(seen) };
}

it('applies frames that arrive during a reread to the snapshot, each once', async () => {
  const { snapshot, reading, take, answer } = readAgain();
  await Promise.resolve();
  take('2', '3');
  take('2', '3', '4');
  answer({ position: '2', ids: ['1', '2'] });
  await reading;
  expect(snapshot.value).toEqual({ position: '4', ids: ['1', '2', '3', '4'] });
  take('4', '5');
  expect(snapshot.value?.ids).toEqual(['1', '2', '3', '4', '5']);
});

it('keeps a snapshot newer than every frame', async () => {
  const { snapshot, reading, take, answer } = readAgain();
  await Promise.resolve();
  take('2');
  const seen = { position: '9', ids: ['all'] };
  answer(seen);
  await reading;
  expect(snapshot.value).toEqual(seen);
});

it('discards a response older than its request', async () => {
  const { snapshot, reading, take, answer } = readAgain();
  await Promise.resolve();
  answer({ position: '0', ids: [] });
  take('2');
  await reading;
  expect(snapshot.value).toEqual({ position: '2', ids: ['1', '2'] });
});

it('accepts the first read after a gap at any position, and none started before it', async () => {
  const { snapshot, reading, take, answer } = readAgain();
  await Promise.resolve();
  snapshot.reset();
  take('2');
  expect([snapshot.value?.ids, snapshot.position]).toEqual([['1'], null]);
  answer({ position: '3', ids: ['before'] });
  await expect(reading).rejects.toThrow('Connection interrupted');
  const again = snapshot.read(new AbortController().signal);
  await Promise.resolve();
  answer({ position: '0', ids: ['restored'] });
  await again;
  expect(snapshot.value).toEqual({ position: '0', ids: ['restored'] });
});
