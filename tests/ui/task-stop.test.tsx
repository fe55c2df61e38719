// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { RefusalsProvider } from '@/components/live/refusals';
import { stopKey, TaskStop } from '@/components/tasks/task-stop';
import { layOut, settle } from './laid-out';
import { aTask } from './rows';

const task = aTask({ id: 't/1', status: 'running', description: 'Nightly build' });
const STOP = 'Stop “Nightly build”';
const CONFIRM = 'Press again to stop “Nightly build”';

let store: ActionStore;
let posted: string[];
beforeEach(async () => {
  vi.useFakeTimers();
  layOut();
  posted = [];
  vi.stubGlobal('fetch', async (url: string) => {
    posted.push(url);
    return Response.json({ commandId: 'c', state: 'queued' }, { status: 202 });
  });
  store = new ActionStore('s', () => {});
  render(
    <ActionsProvider store={store}>
      <RefusalsProvider status={{ takes: ['task.stop'] }}>
        <TaskStop task={task} />
      </RefusalsProvider>
    </ActionsProvider>,
  );
  await act(settle);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const click = (name: string) => act(async () => fireEvent.click(screen.getByRole('button', { name })));

it('stops a task with two presses', async () => {
  await click(STOP);
  expect(posted).toEqual([]);
  await act(settle);
  await click(CONFIRM);
  expect(posted).toEqual(['/api/v1/sessions/s/tasks/t%2F1/stop']);
  screen.getByText('Stopping…');
});

it('does not stop a task on a double click', async () => {
  await click(STOP);
  await click(CONFIRM);
  await act(settle);
  expect(posted).toEqual([]);
});

it.each([
  ['the button loses the focus', async () => fireEvent.blur(screen.getByRole('button', { name: CONFIRM }))],
  ['four seconds pass', () => vi.advanceTimersByTimeAsync(4_000)],
])('cancels the first press when %s', async (_when, happen) => {
  await click(STOP);
  await act(settle);
  await act(async () => {
    await happen();
  });
  await act(settle);
  screen.getByRole('button', { name: STOP });
  expect(posted).toEqual([]);
});

it('allows another attempt after the agent refused', async () => {
  await act(async () => store.fail(stopKey(task), 'no such task here'));
  const reason = screen.getByText('no such task here');
  expect(reason.parentElement?.textContent).toContain('Could not stop the task: no such task here');
  await act(settle);
  await click(STOP);
  await act(settle);
  await click(CONFIRM);
  expect(posted).toHaveLength(1);
});
