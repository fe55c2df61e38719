// @vitest-environment happy-dom

import type { Position } from '@interlude/protocol/position';
import type { Task, TaskList } from '@interlude/protocol/read-models';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { FleetStore } from '@/components/live/fleet-store';
import { FleetContext } from '@/components/live/use-fleet';
import { useTasks, useTasksAfterRemoval } from '@/components/tasks/use-tasks';
import { aTask } from './rows';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const gone = aTask({ id: 'gone', position: '2' });
const left = aTask({ id: 'left', position: '6' });

/** A server whose responses the test sends, unless the request was aborted. */
function aSlowServer() {
  const answers: ((list: TaskList) => void)[] = [];
  vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
    return new Promise<Response>((resolve, reject) => {
      answers.push((list) => resolve(Response.json(list)));
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  const answer = (asked: number, position: Position, tasks: Task[]) =>
    act(async () => {
      answers[asked]?.({ position, tasks });
      await new Promise((resolve) => setTimeout(resolve, 0));
    });
  return { answers, answer };
}

it('removed tasks don’t return with a list requested earlier', async () => {
  const { answers, answer } = aSlowServer();
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const stores = { fleet: new FleetStore(), first: new FleetStore() };
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>
      <FleetContext.Provider value={stores}>{children}</FleetContext.Provider>
    </QueryClientProvider>
  );
  const hook = renderHook(
    ({ upTo }: { upTo: Position | undefined }) => {
      useTasksAfterRemoval('s', upTo);
      return useTasks('s').tasks.map(({ id }) => id);
    },
    { wrapper, initialProps: { upTo: undefined as Position | undefined } },
  );
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  hook.rerender({ upTo: '4' });
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  await answer(1, '9', [left]);
  expect(hook.result.current).toEqual(['left']);
  await answer(0, '7', [gone, left]);
  expect(hook.result.current).toEqual(['left']);
});
