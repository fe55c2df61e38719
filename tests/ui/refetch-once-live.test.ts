import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test, vi } from 'vitest';
import type { ConnectionStatus } from '@/components/live/connection-state';
import { refetchOnceLive } from '@/components/live/live-provider';

/** A connection whose status the test sets. */
function connection() {
  const listeners = new Set<() => void>();
  let status: ConnectionStatus = 'connecting';
  return {
    get state() {
      return { status, since: 0, attempt: 0, asOf: null };
    },
    onState(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    enter(next: ConnectionStatus) {
      status = next;
      for (const listener of listeners) listener();
    },
  };
}

test('repeats failed queries once the server is back, and no others', async () => {
  const queryClient = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const live = connection();
  refetchOnceLive(live, queryClient);
  live.enter('live');
  const refused = vi.fn().mockRejectedValueOnce(new Error('away')).mockResolvedValue('there');
  const known = vi.fn().mockResolvedValue('known');
  const leave = [
    new QueryObserver(queryClient, { queryKey: ['refused'], queryFn: refused }).subscribe(() => {}),
    new QueryObserver(queryClient, { queryKey: ['known'], queryFn: known }).subscribe(() => {}),
  ];
  await vi.waitFor(() => expect(queryClient.getQueryState(['refused'])?.status).toBe('error'));
  await vi.waitFor(() => expect(queryClient.getQueryState(['known'])?.status).toBe('success'));

  live.enter('reconnecting');
  expect(refused).toHaveBeenCalledTimes(1);
  live.enter('live');
  await vi.waitFor(() => expect(queryClient.getQueryData(['refused'])).toBe('there'));
  live.enter('live');
  expect(refused).toHaveBeenCalledTimes(2);
  expect(known).toHaveBeenCalledTimes(1);
  for (const stop of leave) stop();
  queryClient.clear();
});
