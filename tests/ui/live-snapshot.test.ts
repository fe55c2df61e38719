import { QueryClient } from '@tanstack/react-query';
import { expect, it } from 'vitest';
import { loadSnapshot, takeFrames } from '@/components/live/live-snapshot';
import type { RowFrame } from '@/components/live/row-frame';

interface Seen {
  position: string;
  ids: string[];
}

const KEY = ['seen'];
const frame = (id: string) => ({ id, event: 'session-event', data: {} }) as unknown as RowFrame;
const fold = ({ ids }: Seen, frames: RowFrame[]): Seen => ({
  position: frames.at(-1)?.id ?? '0',
  ids: [...ids, ...frames.map(({ id }) => id)],
});

/** A snapshot at 1 that is loaded again; the answer comes when it is told to. */
function loadedAgain() {
  const client = new QueryClient();
  client.setQueryData<Seen>(KEY, { position: '1', ids: ['1'] });
  let answer: (snapshot: Seen) => void = () => {};
  const load = () =>
    new Promise<Seen>((resolve) => {
      answer = resolve;
    });
  const loading = client.fetchQuery({ queryKey: KEY, queryFn: () => loadSnapshot(client, KEY, fold, load) });
  const take = (...ids: string[]) => takeFrames(client, KEY, fold, ids.map(frame));
  return { client, loading, take, answer: (snapshot: Seen) => answer(snapshot) };
}

it('frames that come while a snapshot is loaded again are in it, each once, though it was read before them', async () => {
  const { client, loading, take, answer } = loadedAgain();
  take('2', '3');
  // another reader of the same key brings them too
  take('2', '3', '4');
  answer({ position: '2', ids: ['1', '2'] });
  await loading;
  expect(client.getQueryData(KEY)).toEqual({ position: '4', ids: ['1', '2', '3', '4'] });
  take('4', '5');
  expect(client.getQueryData<Seen>(KEY)?.ids).toEqual(['1', '2', '3', '4', '5']);
});

it('a snapshot that is newer than every frame stays as it was read', async () => {
  const { client, loading, take, answer } = loadedAgain();
  take('2');
  const snapshot = { position: '9', ids: ['all'] };
  answer(snapshot);
  await loading;
  expect(client.getQueryData(KEY)).toEqual(snapshot);
});
