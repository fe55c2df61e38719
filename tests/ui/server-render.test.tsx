import { useQuery } from '@tanstack/react-query';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LiveProvider } from '@/components/live/live-provider';
import { useLiveQuery } from '@/components/live/use-live-query';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function Reader() {
  useLiveQuery({
    key: ['sessions'],
    topic: 'fleet',
    initial: { position: '1', sessions: ['s1'] },
    load: () => Promise.reject(new Error('not on the server')),
    fold: (snapshot) => snapshot,
  });
  const { data } = useQuery({ queryKey: ['other'], queryFn: () => 'never', enabled: false, initialData: 'there' });
  return data;
}

it('a render on the server leaves no timer that would keep what it read', () => {
  const markup = renderToString(
    <LiveProvider>
      <Reader />
    </LiveProvider>,
  );
  expect(markup).toContain('there');
  expect(vi.getTimerCount()).toBe(0);
});
