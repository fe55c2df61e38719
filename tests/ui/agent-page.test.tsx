// @vitest-environment happy-dom

import type { AgentDetail } from '@interlude/protocol/read-models';
import { noSessions } from '@interlude/protocol/session-states';
import { API_BASE } from '@interlude/protocol/version';
import { noItems } from '@interlude/protocol/vocabulary';
import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RequestsOfAgent } from '@/app/(console)/agents/[agentId]/agent-requests';
import { useOpenRequests } from '@/app/(console)/open-requests';
import { MayActProvider } from '@/components/access/may-act';
import { AgentPage } from '@/components/agents/agent-page';
import { MarkAsSeen } from '@/components/agents/insight-list';
import { LiveProvider } from '@/components/live/live-provider';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { layOut, settle } from './laid-out';
import { anAgent, anInboxItem, anInsight, aRequest, aSession } from './rows';
import { scriptedFetch } from './scripted-stream';

let script: ReturnType<typeof scriptedFetch>;
beforeEach(() => {
  script = scriptedFetch();
  vi.stubGlobal('fetch', script.fetch);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show(detail: Partial<AgentDetail>) {
  const initial: AgentDetail = {
    agent: anAgent(),
    sessions: [],
    nextSessions: null,
    producers: [],
    producerCount: 0,
    quarantine: [],
    parked: [],
    insights: [],
    position: '1',
    ...detail,
  };
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <MayActProvider may why={null} answersHere>
            <AgentPage initial={initial} requests={<RequestsOfAgent agentId="agent-1" />} />
          </MayActProvider>
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
}
const section = (name: RegExp) => screen.getByRole('heading', { name }).closest('section') as HTMLElement;

it('lists signals apart from failures, with direction marks made visible', () => {
  const failure = { signal: 'outbox_poisoned', value: 7, outcome: 'failed', source: 'outbox', detail: 'too large' };
  show({
    agent: anAgent({ insightCount: 1, otherFailureCount: 1 }),
    insights: [
      anInsight({ position: '3', ...failure }),
      anInsight({ position: '2', signal: 'context_ratio', value: 0.4, source: 'context', isFailure: false }),
      anInsight({ position: '1', signal: '\u202Eevil\n', detail: '\u202Etxet', source: '', isFailure: false }),
    ],
  });
  const signals = section(/^Signals/);
  expect(within(signals).getAllByRole('listitem')).toHaveLength(2);
  expect(signals.textContent).toContain('context_ratio 0.4');
  expect(signals.textContent).not.toMatch(/\u202E/);
  const failures = section(/^Failures/);
  expect(within(failures).getAllByRole('listitem')).toHaveLength(1);
  expect(failures.textContent).toContain('outbox_poisoned 7');
  expect(failures.textContent).toContain('too large');
});

it('shows no failures for an agent with signals only', () => {
  show({ insights: [anInsight({ signal: 'context_ratio', value: 0.4, source: 'context', isFailure: false })] });
  expect(screen.queryByRole('heading', { name: /^Failures/ })).toBeNull();
});

it('shows versions of runner, protocol and provider, with direction marks made visible', () => {
  const versions = { runner: '0.1.0', protocol: '1', provider: 'Claude \u202ECode 2.1.329' };
  show({ agent: anAgent({ status: { versions } }) });
  const runner = section(/^Runner/);
  expect(runner.textContent).toMatch(/ProviderClaude ⟨RLO⟩Code 2\.1\.329.*Versionsrunner 0\.1\.0 · protocol 1/);
  expect(runner.textContent).not.toMatch(/\u202E/);
});

it.each([
  ['claude', 'Claude Code'],
  ['constructor', 'constructor'],
])('names the provider of a runner of kind %s that reports no version', (kind, name) => {
  show({ agent: anAgent({ kind, status: {} }) });
  expect(section(/^Runner/).textContent).toContain(`Provider${name}`);
});

it('marks all unseen failures as seen on a press, and shows why it failed', async () => {
  const posted: [string, unknown][] = [];
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    if (typeof init?.body !== 'string') return script.fetch(url, init);
    posted.push([url.replace(API_BASE, ''), JSON.parse(init.body)]);
    return Response.json({ error: { code: 'busy', message: 'Busy.' } }, { status: 503 });
  });
  show({
    agent: anAgent({ insightCount: 2 }),
    insights: [anInsight({ position: '100' }), anInsight({ position: '99' }), anInsight({ position: '9', seenAt: 5 })],
  });
  fireEvent.click(screen.getByRole('button', { name: 'Mark as seen' }));
  expect(await screen.findByText('Could not mark as seen: Busy.')).toBeDefined();
  expect(posted).toEqual([['/agents/agent-1/insights/seen', { upTo: '100' }]]);
});

it('hides the button once the count is zero, before the list is read again', () => {
  show({ agent: anAgent({ insightCount: 0 }), insights: [anInsight({ position: '100' })] });
  expect(section(/^Failures/).querySelector('h2')?.textContent).toBe('Failures');
  expect(screen.queryByRole('button', { name: 'Mark as seen' })).toBeNull();
});

it('shows a failed mark only until the failure is seen', async () => {
  vi.stubGlobal('fetch', async () => Response.json({ error: { code: 'busy', message: 'Busy.' } }, { status: 503 }));
  const marks = (seenAt: number | null, position: string) => (
    <MarkAsSeen agentId="agent-1" insights={[anInsight({ position, seenAt })]} />
  );
  const { rerender } = render(marks(null, '1'));
  fireEvent.click(screen.getByRole('button', { name: 'Mark as seen' }));
  await screen.findByText('Could not mark as seen: Busy.');
  rerender(marks(5, '1'));
  rerender(marks(null, '2'));
  expect(screen.getByRole('button', { name: 'Mark as seen' })).toBeDefined();
  expect(screen.queryByText('Could not mark as seen: Busy.')).toBeNull();
});

/** A server that accepts commands. @returns the posted paths */
function acceptCommands(read: Record<string, unknown>): string[] {
  const posted: string[] = [];
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const path = url.replace(API_BASE, '');
    if (init?.method === 'POST') {
      posted.push(path);
      return Response.json({ commandId: 'c', state: 'queued' }, { status: 202 });
    }
    const found = Object.keys(read).find((start) => path.startsWith(start));
    return found === undefined ? script.fetch(url, init) : Response.json(read[found]);
  });
  return posted;
}

it('interrupts or ends the agent’s sessions after a question', async () => {
  const session = aSession({ state: 'working', openTurnId: 'r1' });
  const posted = acceptCommands({ '/sessions?': { sessions: [session], next: null } });
  vi.useFakeTimers({ shouldAdvanceTime: true });
  layOut();
  show({
    agent: anAgent({ sessionStates: { ...noSessions(), working: 1, exited: 2 } }),
    sessions: [session],
  });
  fireEvent.click(screen.getByRole('button', { name: 'Stop…' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Stop “agent-1”?' }));
  await act(settle);
  expect(dialog.getByRole('button', { name: /^End 1 session Agents and runners exit/ })).toBeDefined();
  expect(posted).toEqual([]);
  fireEvent.click(dialog.getByRole('button', { name: /^Interrupt 1 session / }));
  await screen.findByText('Interrupt: 1 of 1 agent done');
  expect(posted).toEqual(['/sessions/s/interrupt']);
  vi.useRealTimers();
});

it('answers the agent’s open requests in place', async () => {
  const request = aRequest({ id: 'q1', digest: 'd'.repeat(64) });
  const item = anInboxItem({
    agentId: 'agent-1',
    request: { ...request, answerBy: null, preview: { tool: 'Bash', line: 'ls' } } as never,
  });
  const posted = acceptCommands({
    '/inbox?agent=agent-1': { items: [item], position: '2', next: null, counts: { ...noItems(), permission: 1 } },
    '/sessions/s/requests/': { position: '2', request, turnId: null },
  });
  vi.useFakeTimers({ shouldAdvanceTime: true });
  layOut();
  show({
    agent: anAgent({ sessionStates: { ...noSessions(), 'needs-input': 1 } }),
    sessions: [aSession({ state: 'needs-input', pendingRequestCount: 1 })],
  });
  fireEvent.click(screen.getByRole('button', { name: 'Answer here' }));
  const requests = within((await screen.findByRole('list', { name: 'Requests' })).closest('section') as HTMLElement);
  await vi.waitFor(() => expect(document.activeElement).toBe(requests.getByRole('list', { name: 'Requests' })));
  const deny = await requests.findByRole('button', { name: 'Deny' });
  expect(requests.getByRole('link', { name: 'Do it' }).getAttribute('href')).toBe('/sessions/s');
  await act(settle);
  fireEvent.click(deny);
  await vi.waitFor(() => expect(posted).toEqual(['/sessions/s/requests/q1']));
  vi.useRealTimers();
});

function Requests({ revision }: { revision: string }) {
  const { requests, openCount } = useOpenRequests({ agent: 'agent-1' }, revision, 5);
  return `${requests.length} of ${openCount}`;
}

it('reads the open requests again whenever they change', async () => {
  const itemOf = (id: string, since: number) => ({
    ...anInboxItem({ id, agentId: 'agent-1', since }),
    request: { ...aRequest({ id, title: `Run ${id}` }), answerBy: null, preview: null },
  });
  const read = {
    '/inbox?agent=agent-1': {},
    '/sessions/s/requests/': { position: '2', request: aRequest(), turnId: null },
  };
  acceptCommands(read);
  const ofAgent = (revision: string, ...ids: string[]) => {
    const items = ids.map((id, index) => itemOf(id, index));
    const counts = { ...noItems(), permission: 7 };
    Object.assign(read, { '/inbox?agent=agent-1': { items, position: '2', next: null, counts } });
    return (
      <LiveProvider>
        <Requests revision={revision} />
      </LiveProvider>
    );
  };
  const { rerender } = render(ofAgent('1@1', 'a'));
  await screen.findByText('1 of 1');
  rerender(ofAgent(''));
  // As many requests as before.
  rerender(ofAgent('1@2', 'a', 'b', 'c', 'd', 'e'));
  await screen.findByText('5 of 7');
});
