// @vitest-environment happy-dom
import { noSessions } from '@interlude/protocol/session-states';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MayActProvider } from '@/components/access/may-act';
import { SelectionBar } from '@/components/agents/selection-bar';
import { StopAll } from '@/components/agents/stop-all';
import { NowProvider } from '@/components/ui/clock';
import { layOut, settle } from './laid-out';
import { anAgent, aSession } from './rows';

beforeEach(() => {
  vi.useFakeTimers();
  layOut();
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('ends the open sessions of all selected agents after one confirmation, and shows progress and failures', async () => {
  const agents = ['calm', 'stuck', 'mixed'].map((id) =>
    anAgent({ id, sessionCount: 3, sessionStates: { ...noSessions(), idle: 2, exited: 1 } }),
  );
  const sent: string[] = [];
  let answer = () => {};
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const { pathname, searchParams } = new URL(url, 'http://interlude.test');
    if (init?.method !== 'POST') {
      const agentId = searchParams.get('agent') ?? '';
      expect(searchParams.getAll('state')).not.toContain('exited');
      const sessions = ['1', '2'].map((of) => aSession({ id: `${agentId}-${of}`, agentId }));
      return Response.json({ sessions, next: null });
    }
    sent.push(pathname);
    if (pathname.includes('mixed-1')) return Response.json({ error: { code: 'x', message: 'Busy.' } }, { status: 409 });
    if (!pathname.includes('stuck')) return Response.json({});
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return Response.json({ error: { code: 'conflict', message: 'No runner.' } }, { status: 409 });
  });
  render(
    <NowProvider renderedAt={Date.now()}>
      <QueryClientProvider client={new QueryClient()}>
        <MayActProvider may why={null} answersHere>
          <SelectionBar agents={agents} total={3} onAll={vi.fn()} onNone={vi.fn()} />
        </MayActProvider>
      </QueryClientProvider>
    </NowProvider>,
  );
  expect(screen.getByText('Interrupt turns: none open')).toBeDefined();
  expect(screen.getByText('Log level')).toBeDefined();
  await act(settle);
  fireEvent.click(screen.getByRole('button', { name: 'End sessions' }));
  await act(settle);
  expect(sent).toEqual([]);
  fireEvent.click(screen.getByRole('button', { name: 'Press again to end 6 sessions' }));
  await vi.waitFor(() => screen.getByText('End sessions: 2 of 3 agents done'));
  for (let refusals = 0; refusals < 2; refusals += 1) {
    await vi.waitFor(() => expect(sent.filter((path) => path.includes('stuck'))).toHaveLength(refusals + 1));
    await act(async () => answer());
  }
  await vi.waitFor(() => screen.getByText(', 2 failed'));
  const results = screen.getAllByRole('listitem').map(({ textContent }) => textContent);
  expect(results).toEqual([
    'stuckNo runner.',
    'mixed1 refused: Busy.; ending 1 session: “Do it”',
    'calmending 2 sessions: “Do it”, “Do it”',
  ]);
  expect(screen.getByRole('button', { name: 'Retry failed' })).toBeDefined();
});

it('interrupts all listed agents that are in a turn with one press, and shows progress', async () => {
  const agents = [
    anAgent({ id: 'works', sessionStates: { ...noSessions(), working: 2 } }),
    anAgent({ id: 'asks', sessionStates: { ...noSessions(), 'needs-input': 1, idle: 1 } }),
    anAgent({ id: 'rests', sessionStates: { ...noSessions(), idle: 1 } }),
  ];
  const sent: string[] = [];
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const { pathname, searchParams } = new URL(url, 'http://interlude.test');
    if (init?.method === 'POST') {
      sent.push(pathname);
      return Response.json({});
    }
    const agentId = searchParams.get('agent') ?? '';
    return Response.json({ sessions: [aSession({ id: `${agentId}-1`, agentId, openTurnId: 'r1' })], next: null });
  });
  const onAnswer = vi.fn();
  render(
    <NowProvider renderedAt={Date.now()}>
      <StopAll agents={agents} areAll={false} isAsking onAnswer={onAnswer} />
    </NowProvider>,
  );
  await act(settle);
  const dialog = within(screen.getByRole('dialog', { name: 'Stop the 3 listed agents?' }));
  expect(dialog.getByRole('button', { name: /^End 5 sessions of 3 agents .*can’t be undone\.$/ })).toBeDefined();
  fireEvent.click(
    screen.getByRole('button', {
      name: 'Interrupt 3 sessions of 2 agents Open turns end. Sessions stay open.',
    }),
  );
  expect(onAnswer).toHaveBeenCalledOnce();
  await vi.waitFor(() => screen.getByText('Interrupt: 2 of 2 agents done'));
  expect(sent.map((path) => path.split('/').slice(-2).join('/'))).toEqual(['works-1/interrupt', 'asks-1/interrupt']);
  fireEvent.click(screen.getByRole('button', { name: 'Close' }));
  expect(screen.queryByRole('region', { name: 'Stop' })).toBeNull();
});
