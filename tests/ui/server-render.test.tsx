import { useQuery } from '@tanstack/react-query';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import { LiveProvider } from '@/components/live/live-provider';
import { useFleet, useFleetQuery, useInitialData } from '@/components/live/use-fleet';
import { useFolded } from '@/components/live/use-folded';
import { aSession } from './rows';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function Reader() {
  useInitialData((fleet) => fleet.takeSession({ position: '1', session: aSession() }));
  const load = () => Promise.reject(new Error('not on the server'));
  useFleetQuery({ kind: 'row', table: 'sessions', of: 's', load, take: () => undefined });
  const session = useFleet(({ sessions }) => sessions.get('s'));
  const snapshot = useFolded(['one'], 'session:s', () => {
    const initial = { position: '1', text: 'folded' };
    return new FoldedSnapshot({ initial, read: load, fold: (before) => before });
  });
  const { data } = useQuery({ queryKey: ['other'], queryFn: () => 'never', enabled: false, initialData: 'there' });
  return `${data} ${session?.title} ${snapshot.store.value?.text}`;
}

it('a server render leaves no timer that would keep its data in memory', () => {
  const markup = renderToString(
    <LiveProvider>
      <Reader />
    </LiveProvider>,
  );
  expect(markup).toContain('there Do it folded');
  expect(vi.getTimerCount()).toBe(0);
});
