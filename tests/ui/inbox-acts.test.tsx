// @vitest-environment happy-dom

import type { MarkInbox } from '@interlude/protocol/commands';
import type {
  FleetCounts,
  InboxItem,
  InboxList,
  InboxMarked,
  WebhookDeliveries,
  WebhookStatus,
} from '@interlude/protocol/inbox';
import type {
  Obligation,
  SessionDetail,
  SessionObligations,
  SessionSummary,
  TranscriptPage,
} from '@interlude/protocol/read-models';
import { API_BASE } from '@interlude/protocol/version';
import { noItems } from '@interlude/protocol/vocabulary';
import { act, cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { InboxPage } from '@/components/inbox/inbox-page';
import { AnswerStoresProvider, DoneWord, type RequestedItem, useAnswer } from '@/components/inbox/item-request';
import { LiveProvider } from '@/components/live/live-provider';
import { CurrentCounts } from '@/components/live/use-counts';
import { useInitialData } from '@/components/live/use-fleet';
import { SELECTION, useCardKeys } from '@/components/requests/request-board';
import { WebhookPanel } from '@/components/settings/webhook-panel';
import { NowProvider } from '@/components/ui/clock';
import { CodeOnDemand } from '@/components/ui/on-demand';
import { NextPage } from '../support/next-page';
import { layOut } from './laid-out';
import { aMessage, anAgent, anInboxItem, aSession, aTask, aTurn, someCounts } from './rows';
import { scriptedFetch } from './scripted-stream';

/** Posted bodies by path. */
let posted: { path: string; body: Record<string, unknown> }[];
/** Responses by path. */
let answers: Record<string, object | ((body: never) => object)>;

beforeEach(() => {
  posted = [];
  answers = {};
  localStorage.clear();
  const script = scriptedFetch();
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const path = url.replace(API_BASE, '').replace(/\?.*/, '');
    if (path === '/stream') return script.fetch(url, init);
    const body = typeof init?.body === 'string' ? JSON.parse(init.body) : null;
    if (body !== null) posted.push({ path, body });
    const answer = answers[path];
    if (answer === undefined) return Response.json({ error: { code: 'not_found', message: path } }, { status: 404 });
    return Response.json(typeof answer === 'function' ? answer(body as never) : answer);
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** The response to an answer. */
const COMMAND = { commandId: 'c', state: 'queued' };

const nothingAsked = new CodeOnDemand<{ item: RequestedItem }>(async () => () => null);

const countsOf = (needsYou: number, position: string) =>
  someCounts({ position, needsYou, inbox: { all: needsYou, kinds: noItems(), requests: 0 } });

/** Puts sessions into the page's store. */
function Sessions({ sessions }: { sessions: SessionSummary[] }) {
  useInitialData((fleet) => {
    for (const session of sessions) fleet.putSession({ session, position: '10' } as SessionDetail);
  });
  return null;
}

function open(items: InboxItem[], shownCounts?: FleetCounts, sessions?: SessionSummary[]) {
  const counts = noItems();
  for (const { kind } of items) counts[kind] += 1;
  const initial: InboxList = { items, position: '10', next: null, counts };
  answers['/inbox'] ??= initial;
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          {shownCounts && <CurrentCounts initial={shownCounts} />}
          {sessions && <Sessions sessions={sessions} />}
          <InboxPage initial={initial} requestCode={nothingAsked} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
}
const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }));
const failure = anInboxItem({ id: 'f', kind: 'failure', title: 'Out of credit', sessionId: 's1' });
const permissions = [0, 1, 2, 3].map((at) =>
  anInboxItem({ id: `p${at}`, sessionId: `of p${at}`, title: `Permission ${at}`, updatedPosition: `${at + 5}` }),
);

it('marks all selected items as shown', async () => {
  answers['/inbox/marks'] = ({ items = [] }: MarkInbox): InboxMarked => ({
    items: permissions
      .filter(({ id }) => items.some((one) => one.id === id))
      .map((item) => ({ ...item, seenAt: 9, updatedPosition: '20' })),
    changed: [],
    applied: ['p0', 'p1', 'p2'],
    position: '20',
  });
  open([...permissions, failure]);
  const box = (at: number) => screen.getByRole('checkbox', { name: `Select “Permission ${at}”, builder` });
  fireEvent.click(box(2));
  fireEvent.click(box(0), { shiftKey: true });
  fireEvent.click(await screen.findByRole('button', { name: 'Seen: 3 items selected' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Seen, snoozed or claimed' }));
  expect(screen.getAllByRole('button', { name: /^Unseen: / })).toHaveLength(3);
  const items = [0, 1, 2].map((at) => ({ id: `p${at}`, updatedPosition: `${at + 5}` }));
  expect(posted).toEqual([{ path: '/inbox/marks', body: { items, mark: 'seen' } }]);
  expect(screen.getByRole('button', { name: 'Seen: “Permission 3”, builder' })).toBeDefined();
});

it('undoes a mark', async () => {
  const [item] = permissions as [InboxItem];
  answers['/inbox/marks'] = ({ mark }: MarkInbox): InboxMarked => {
    const position = mark === 'seen' ? '20' : '21';
    return {
      items: [{ ...item, seenAt: mark === 'seen' ? 9 : null, updatedPosition: position }],
      changed: [],
      applied: ['p0'],
      position,
    };
  };
  open([item]);
  press('Seen: “Permission 0”, builder');
  expect(await screen.findByText('1 item marked as seen.')).toBeDefined();
  press('Undo');
  expect(await screen.findByText('1 item marked as unseen.')).toBeDefined();
  expect(posted.map(({ body }) => body)).toEqual([
    { items: [{ id: 'p0', updatedPosition: '5' }], mark: 'seen' },
    { items: [{ id: 'p0', updatedPosition: '20' }], mark: 'unseen' },
  ]);
});

/** A request, with a button that denies it. */
function Denying({ item }: { item: RequestedItem }) {
  const { actions, key } = useAnswer(item);
  return (
    <>
      <button type="button" onClick={() => void actions.request(key, '/requests/q', { behavior: 'deny' })}>
        Deny
      </button>
      <DoneWord item={item} />
    </>
  );
}

it('shows the answer given on this page once its request is done', async () => {
  const request = { id: 'q', digest: 'd', openedPosition: '1', answerBy: null };
  const item = { ...failure, sessionId: 's1', request };
  render(
    <AnswerStoresProvider>
      <Denying item={item} />
    </AnswerStoresProvider>,
  );
  expect(screen.getByText('Done')).toBeDefined();
  press('Deny');
  expect(await screen.findByText('Denied')).toBeDefined();
});

it('does not count rows that are done but keep their place', async () => {
  const done = { ...failure, doneAt: 9, updatedPosition: '20' };
  answers['/inbox/marks'] = { items: [done], changed: [], applied: ['f'], position: '20' };
  answers['/counts'] = countsOf(1, '20');
  open([permissions[0] as InboxItem, failure], countsOf(2, '10'));
  expect(screen.getByRole('heading', { name: 'Needs you 2' })).toBeDefined();
  screen.getByRole('button', { name: 'Seen: “Out of credit”, builder' }).focus();
  press('Seen: “Out of credit”, builder');
  expect(await screen.findByRole('heading', { name: 'Needs you 1' })).toBeDefined();
  expect(screen.getByText('Done')).toBeDefined();
});

it('reopens a failure that was done by being seen', async () => {
  answers['/inbox/marks'] = ({ mark }: MarkInbox): InboxMarked => {
    const [doneAt, position] = mark === 'seen' ? [9, '20'] : [null, '21'];
    return { items: [{ ...failure, doneAt, updatedPosition: position }], changed: [], applied: ['f'], position };
  };
  open([failure]);
  press('Seen: “Out of credit”, builder');
  expect(await screen.findByText('1 item marked as seen.')).toBeDefined();
  press('Undo');
  expect(await screen.findByRole('button', { name: 'Seen: “Out of credit”, builder' })).toBeDefined();
  expect(posted.at(-1)?.body).toEqual({ items: [{ id: 'f', updatedPosition: '20' }], mark: 'unseen' });
});

it('undoes only what the mark changed', async () => {
  const [mine, other] = permissions as [InboxItem, InboxItem];
  const theirs = { ...other, sessionId: mine.sessionId, claim: { by: { id: 'm2', name: 'Ada' }, at: 3 } };
  const claimed = { ...mine, claim: { by: { id: 'local', name: 'Local admin' }, at: 9 }, updatedPosition: '20' };
  answers['/inbox/marks'] = ({ mark }: MarkInbox): InboxMarked => ({
    items: mark === 'claimed' ? [claimed, theirs] : [mine],
    changed: [],
    applied: ['p0'],
    position: mark === 'claimed' ? '20' : '21',
  });
  open([mine, theirs]);
  press('Claim: “Permission 0”, builder');
  fireEvent.click(await screen.findByRole('button', { name: 'Undo' }));
  await screen.findByText('1 item released.');
  expect(posted.at(-1)?.body).toEqual({ items: [{ id: 'p0', updatedPosition: '20' }], mark: 'released' });
});

it('offers no undo for an item that another person has closed meanwhile', async () => {
  const closed = { ...failure, doneAt: 8, updatedPosition: '19' };
  answers['/inbox/marks'] = { items: [closed], changed: [], applied: [], position: '20' } satisfies InboxMarked;
  open([failure]);
  press('Seen: “Out of credit”, builder');
  expect(await screen.findByText('Nothing changed.')).toBeDefined();
  expect(screen.queryByRole('button', { name: 'Undo' })).toBeNull();
});

it('offers no undo once another person has changed the item', async () => {
  const [item] = permissions as [InboxItem];
  const seen = { ...item, seenAt: 9, updatedPosition: '20' };
  answers['/inbox/marks'] = { items: [seen], changed: [], applied: ['p0'], position: '20' } satisfies InboxMarked;
  open([item]);
  press('Seen: “Permission 0”, builder');
  await screen.findByRole('button', { name: 'Undo' });
  const theirs = { ...seen, claim: { by: { id: 'm2', name: 'Ada' }, at: 30 }, updatedPosition: '30' };
  answers['/inbox'] = { items: [theirs], position: '30', next: null, counts: { ...noItems(), permission: 1 } };
  fireEvent.change(screen.getByRole('searchbox', { name: 'Search the inbox' }), { target: { value: 'Permission' } });
  await screen.findByText('Claimed by Ada');
  expect(screen.queryByRole('button', { name: 'Undo' })).toBeNull();
});

it('keys act on the selected rows instead of the focused one', async () => {
  answers['/inbox/marks'] = { items: [], changed: [], applied: [], position: '20' } satisfies InboxMarked;
  open(permissions);
  const key = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
  for (const at of [1, 2])
    fireEvent.click(screen.getByRole('checkbox', { name: `Select “Permission ${at}”, builder` }));
  key('j');
  key('s');
  await waitFor(() => expect(posted).toHaveLength(1));
  key('c');
  await waitFor(() => expect(posted).toHaveLength(2));
  const items = [1, 2].map((at) => ({ id: `p${at}`, updatedPosition: `${at + 5}` }));
  expect(posted.map(({ body }) => body)).toEqual([
    { items, mark: 'seen' },
    { items, mark: 'claimed' },
  ]);
});

function SelectionKeys({ onAnswer }: { onAnswer: (key: string) => void }) {
  useCardKeys(SELECTION, { allow: () => onAnswer('allow'), deny: () => onAnswer('deny') });
  return null;
}

it('answers the selected rows with the focus on the page, and not beside it', () => {
  const answered: string[] = [];
  render(<SelectionKeys onAnswer={(key) => answered.push(key)} />);
  open(permissions);
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select “Permission 1”, builder' }));
  const page = document.querySelector('[data-inbox]')?.parentElement as HTMLElement;
  const sidebar = document.body.appendChild(document.createElement('aside'));
  for (const [at, key] of [
    [page, 'a'],
    [sidebar, 'd'],
  ] as const) {
    at.tabIndex = -1;
    at.focus();
    fireEvent.keyDown(at, { key });
  }
  sidebar.remove();
  expect(answered).toEqual(['allow']);
});

it('moves the focus from a row that is done to the next one, whose permission a second press does not answer', async () => {
  const second = { ...failure, id: 'g', sessionId: 's2', title: 'Out of luck', since: 2_000, updatedPosition: '6' };
  answers['/inbox/marks'] = ({ items = [] }: MarkInbox): InboxMarked => ({
    items: [failure, second]
      .filter(({ id }) => id === items[0]?.id)
      .map((item) => ({ ...item, doneAt: 9, updatedPosition: '20' })),
    changed: [],
    applied: ['f'],
    position: '20',
  });
  open([failure, second]);
  const focused = () => document.activeElement?.getAttribute('data-inbox-row');
  const key = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
  key('j');
  expect(focused()).toBe('session s1');
  key('s');
  await waitFor(() => expect(focused()).toBe('session s2'));
  // `false`: swallowed
  expect(key('a')).toBe(false);
  key('s');
  // The last row keeps the focus.
  await waitFor(() => expect(screen.getAllByText('Done')).toHaveLength(2));
  expect(focused()).toBe('session s2');
});

const asking = (at: number, digest: string) => {
  const preview = { tool: 'Bash', line: 'ls', input: { command: 'ls' } };
  const request = { id: `q${at}`, digest, openedPosition: '1', answerBy: null, preview };
  return anInboxItem({ id: `q${at}`, sessionId: `of q${at}`, title: `Ask ${at}`, since: at, request });
};

it('answers one row after another as fast as the keys are pressed', async () => {
  const items = [0, 1, 2, 3, 4].map((at) => asking(at, `d${at}`));
  for (const at of [0, 1, 2, 3, 4]) answers[`/sessions/of q${at}/requests/q${at}`.replaceAll(' ', '%20')] = COMMAND;
  open(items);
  const key = (key: string) => act(async () => fireEvent.keyDown(document.activeElement ?? document.body, { key }));
  await key('j');
  for (const _ of items) await key('d');
  expect(posted.map(({ body }) => body.digest)).toEqual(['d0', 'd1', 'd2', 'd3', 'd4']);
});

it('does not answer a request that has just taken the place of the one under the focus', async () => {
  const changed = { ...asking(0, 'other'), updatedPosition: '20' };
  answers['/inbox/marks'] = { items: [changed], changed: [], applied: [], position: '20' } satisfies InboxMarked;
  answers['/sessions/of%20q0/requests/q0'] = COMMAND;
  open([asking(0, 'd0'), asking(1, 'd1')]);
  const key = (key: string) => act(async () => fireEvent.keyDown(document.activeElement ?? document.body, { key }));
  await key('j');
  await key('s');
  await key('d');
  expect(posted.map(({ path }) => path)).toEqual(['/inbox/marks']);
});

it('Esc clears the selection, then the search', async () => {
  answers['/inbox'] = { items: permissions, position: '10', next: null, counts: noItems() };
  open(permissions);
  const key = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
  const field = screen.getByRole<HTMLInputElement>('searchbox', { name: 'Search the inbox' });
  fireEvent.keyDown(document.body, { key: '/' });
  expect(document.activeElement).toBe(field);
  fireEvent.change(field, { target: { value: 'Permission' } });
  for (const at of [1, 2])
    fireEvent.click(screen.getByRole('checkbox', { name: `Select “Permission ${at}”, builder` }));
  const chosen = () => screen.getAllByRole<HTMLInputElement>('checkbox', { checked: true }).length;
  expect(chosen()).toBe(2);
  // `false`: handled
  expect([key('Escape'), document.activeElement === field, chosen()]).toEqual([false, false, 2]);
  expect(key('Escape')).toBe(false);
  expect([screen.queryAllByRole('checkbox', { checked: true }), field.value]).toEqual([[], 'Permission']);
  const other = document.body.appendChild(document.createElement('textarea'));
  other.focus();
  expect([key('Escape'), field.value]).toEqual([true, 'Permission']);
  other.remove();
  expect([key('Escape'), field.value]).toEqual([false, '']);
  expect(key('Escape')).toBe(true);
});

it('folds equal items of a session into one line with their number', () => {
  const ended = (id: string) => anInboxItem({ id, kind: 'undelivered', title: 'npm test: failed, exit code 1' });
  open([ended('1'), ended('2'), ended('3'), anInboxItem({ id: 'f', kind: 'failure', title: 'Out of credit' })]);
  const row = screen.getByRole('listitem').textContent;
  expect(row).toContain('“Out of credit”');
  expect(row).toContain('also a result not delivered');
  press('Retry: “Out of credit”, builder');
  expect(screen.getAllByRole('link', { name: '“npm test”: failed, exit code 1, 3 times' })).toHaveLength(1);
  expect(screen.getByRole('button', { name: 'Collapse: “Out of credit”, builder' })).toBeDefined();
});

it('retries all selected failures on the second press, and reports the result', async () => {
  layOut();
  const message = aMessage({ role: 'user', text: 'Mend the login test' });
  const page = (items: object[]) => ({ turns: [aTurn({ items: items as never })], position: '10', hasMore: false });
  answers['/sessions/s1/transcript'] = page([message]);
  answers['/sessions/s2/transcript'] = page([
    aMessage({ role: 'user', attachments: [{ id: 'a1', name: 'log.txt', mediaType: 'text/plain', size: 3 }] as never }),
  ]);
  answers['/sessions/s1/messages'] = {
    messageId: 'm9',
    delivery: 'queued',
    sending: { kind: 'allowed', reason: null },
  };
  open([failure, { ...failure, id: 'f2' }, { ...failure, id: 'g', sessionId: 's2', title: 'Out of luck' }]);
  for (const box of screen.getAllByRole('checkbox', { name: /^Select “Out/ })) fireEvent.click(box);
  expect(screen.getByRole('region', { name: '3 items selected' })).toBeDefined();
  const settled = async (name: string) => {
    const button = await screen.findByRole('button', { name });
    await waitFor(() => expect(button.getAttribute('aria-disabled')).not.toBe('true'));
    fireEvent.click(button);
  };
  await settled('Retry these 2');
  expect(posted).toEqual([]);
  await settled('Press again to resend 2 messages');
  expect(await screen.findByText(/^1 message sent again\. 1 not sent: The last message has attachments/)).toBeDefined();
  expect(posted.map(({ path }) => path)).toEqual(['/sessions/s1/messages']);
});

describe('equal failures of several sessions', () => {
  const equal = [1, 2, 3].map((at) =>
    anInboxItem({
      id: `e${at}`,
      kind: 'failure',
      title: 'exit code 137',
      sessionId: `s${at}`,
      since: at,
      updatedPosition: `${at}`,
    }),
  );
  const rows = () => screen.getAllByRole('listitem').map((row) => row.getAttribute('data-inbox-row'));

  it('share one row that lists them, and acts on all of them', async () => {
    answers['/inbox/marks'] = { items: [], changed: [], applied: [], position: '20' } satisfies InboxMarked;
    open([...equal, { ...failure, sessionId: 's9' }]);
    expect(rows()).toHaveLength(2);
    press('Exit code 137 3 sessions');
    expect(rows().slice(1, 4)).toEqual(['session s1', 'session s2', 'session s3']);
    expect(screen.getByRole('button', { name: 'Retry: “Session s2”, builder' })).toBeDefined();
    press('Exit code 137 3 sessions');
    press('Seen: Exit code 137');
    await waitFor(() => expect(posted).toHaveLength(1));
    const items = equal.map(({ id, updatedPosition }) => ({ id, updatedPosition }));
    expect(posted[0]?.body).toEqual({ items, mark: 'seen' });
    fireEvent.click(screen.getByRole('checkbox', { name: 'Select all with Exit code 137' }));
    expect(await screen.findByRole('region', { name: '3 items selected' })).toBeDefined();
  });

  it('are retried together on the second press', async () => {
    layOut();
    const items = [aMessage({ role: 'user', text: 'Mend the login test' })];
    for (const { sessionId } of equal) {
      answers[`/sessions/${sessionId}/transcript`] = { turns: [aTurn({ items })], position: '10', hasMore: false };
      const sending = { kind: 'allowed', reason: null };
      answers[`/sessions/${sessionId}/messages`] = { messageId: 'm9', delivery: 'queued', sending };
    }
    open(equal);
    const settled = async (name: string) => {
      const button = await screen.findByRole('button', { name });
      await waitFor(() => expect(button.getAttribute('aria-disabled')).not.toBe('true'));
      fireEvent.click(button);
    };
    await settled('Retry all with Exit code 137');
    expect(posted).toEqual([]);
    await settled('Press again to resend 3 messages');
    expect(await screen.findByText('3 messages sent again.')).toBeDefined();
    expect(posted).toHaveLength(3);
  });

  it('offer no retry for sessions whose process has ended', () => {
    const process = { observedAt: 1, turnId: null, value: { code: 137, signal: null, reason: null } };
    const ended = equal.map(({ sessionId }) =>
      aSession({ id: sessionId ?? '', observations: { ...aSession().observations, process } }),
    );
    open(equal, undefined, ended);
    press('Exit code 137 3 sessions');
    expect(rows()).toHaveLength(4);
    expect(screen.queryByRole('button', { name: /^Retry/ })).toBeNull();
  });

  it('are listed one by one if there are two', () => {
    open(equal.slice(0, 2));
    expect(rows()).toEqual(['session s1', 'session s2']);
  });
});

it('offers no undo for hook failures, which stay seen', async () => {
  const hook = anInboxItem({ id: 'h', kind: 'hook-failure', title: 'Stop: exit 3', sessionId: null });
  const items = [{ ...hook, doneAt: 9, updatedPosition: '20' }];
  answers['/inbox/marks'] = { items, changed: [], applied: ['h'], position: '20' } satisfies InboxMarked;
  open([hook]);
  press('Seen: “Stop: exit 3”, builder');
  expect(await screen.findByText('1 item marked as seen.')).toBeDefined();
  expect(screen.queryByRole('button', { name: 'Undo' })).toBeNull();
});

it('shows how many items stayed unmarked because new items arrived', async () => {
  answers['/inbox/marks'] = { items: [], changed: ['p0'], applied: [], position: '20' } satisfies InboxMarked;
  open(permissions);
  press('Seen: “Permission 0”, builder');
  expect(await screen.findByText(/^Could not update the items: 1 item changed meanwhile/)).toBeDefined();
});

it('retries a failed session with its last message, and shows the delivery', async () => {
  const said = [aMessage({ role: 'user', text: 'Mend the login test' }), aMessage({ id: 'm2', text: 'Trying.' })];
  answers['/sessions/s1/transcript'] = {
    turns: [aTurn({ items: [aMessage({ role: 'user', text: 'Before that' })] }), aTurn({ id: 'r2', items: said })],
    position: '10',
    hasMore: false,
  } satisfies TranscriptPage;
  const reason = 'Agent offline. Your message will be sent when it reconnects.';
  answers['/sessions/s1/messages'] = { messageId: 'm9', delivery: 'queued', sending: { kind: 'queued', reason } };
  open([failure]);
  press('Retry: “Out of credit”, builder');
  expect((await screen.findByLabelText<HTMLTextAreaElement>('Send again:')).value).toBe('Mend the login test');
  press('Send');
  expect(await screen.findByText(`Sent to “builder”. ${reason}`)).toBeDefined();
  expect(posted).toEqual([
    { path: '/sessions/s1/messages', body: { text: 'Mend the login test', clientId: expect.any(String) } },
  ]);
});

describe('a result that was not delivered', () => {
  const task = { id: 'b1', runId: null, position: '10' };
  const item = anInboxItem({
    id: 'u',
    kind: 'undelivered',
    sessionId: 's1',
    title: 'npm test: failed, exit code 3',
    task,
  });
  const ended = aTask({ ...task, sessionId: 's1', description: 'npm test', status: 'failed', exitCode: 3 });
  const part = { from: 0, text: '1 failing\n', isCut: false };
  beforeEach(() => {
    answers['/sessions/s1/tasks/b1'] = { position: '10', task: ended, items: [] };
    const output = { parts: [part], redacted: 0, lastAt: 1, hasEnded: true, error: null };
    answers['/sessions/s1/tasks/b1/output'] = { position: '10', taskPosition: '10', output };
    answers['/agents/builder'] = { position: '10', agent: anAgent({ connection: 'connected', connectedSince: 1 }) };
  });
  const here = (fields: Partial<SessionSummary>) => {
    answers['/sessions/s1'] = { position: '10', session: aSession({ id: 's1', state: 'idle', ...fields }) };
  };

  it('becomes a message that wakes the agent and names the task', async () => {
    here({});
    answers['/sessions/s1/messages'] = {
      messageId: 'm9',
      delivery: 'queued',
      sending: { kind: 'allowed', reason: null },
    };
    open([item]);
    press('Wake the agent: “npm test”: failed, exit code 3, builder');
    const text = await screen.findByLabelText<HTMLTextAreaElement>('Send the result to the agent:');
    const said =
      'The background task “npm test” (b1) has ended: failed, exit code 3.\n\nThe end of its output:\n1 failing';
    expect(text.value).toBe(said);
    press('Send');
    expect(await screen.findByText('Sent to “builder”.')).toBeDefined();
    const results = [{ taskId: 'b1', position: '10' }];
    expect(posted).toEqual([
      { path: '/sessions/s1/messages', body: { text: said, results, clientId: expect.any(String) } },
    ]);
  });

  it('can’t be sent to an exited session', async () => {
    here({
      state: 'exited',
      observations: {
        session: { observedAt: 1, turnId: null, value: null },
        process: { observedAt: 5, turnId: null, value: { code: 0, signal: null, reason: 'quit' } },
      },
    });
    open([item]);
    press('Wake the agent: “npm test”: failed, exit code 3, builder');
    const reason = await screen.findByText(/^The agent of this session has ended \(quit\)/);
    expect(reason.parentElement?.textContent).toMatch(/^The agent can’t be woken\. The agent/);
    expect(screen.queryByRole('button', { name: 'Send' })).toBeNull();
  });

  it('lets the runner start a turn if it can', async () => {
    here({});
    const agent = anAgent({ connection: 'connected', connectedSince: 1, status: { takes: ['message', 'task.wake'] } });
    answers['/agents/builder'] = { position: '10', agent };
    answers['/sessions/s1/tasks/b1/wake'] = { commandId: 'c', state: 'queued' };
    open([item]);
    press('Wake the agent: “npm test”: failed, exit code 3, builder');
    fireEvent.click(await screen.findByRole('button', { name: 'Start a turn' }));
    expect(await screen.findByText('Requested a turn with the result.')).toBeDefined();
    expect(posted).toEqual([{ path: '/sessions/s1/tasks/b1/wake', body: { clientId: expect.any(String) } }]);
  });

  it('warns if an idle agent is not connected', async () => {
    here({ wakeable: false });
    open([item]);
    press('Wake the agent: “npm test”: failed, exit code 3, builder');
    expect(await screen.findByText(/^The agent is idle and can’t receive messages/)).toBeDefined();
  });
});

it('shows only search results until the search is cleared', async () => {
  open([...permissions, failure]);
  const search = screen.getByRole('searchbox', { name: 'Search the inbox' });
  answers['/inbox'] = { items: [failure], position: '10', next: null, counts: { ...noItems(), failure: 1 } };
  fireEvent.change(search, { target: { value: 'credit out' } });
  await waitFor(() => expect(screen.queryByRole('link', { name: '“Permission 1”' })).toBeNull());
  expect(screen.getByRole('link', { name: '“Out of credit”' })).toBeDefined();
  fireEvent.change(search, { target: { value: '' } });
  expect(await screen.findByRole('link', { name: '“Permission 1”' })).toBeDefined();
});

it('folds a group, and keeps it folded on the next visit', () => {
  const fold = () => screen.getByRole('button', { name: /^Needs you/ });
  const links = () => within(screen.getByRole('region', { name: /^Needs you/ })).queryAllByRole('listitem').length;
  open(permissions);
  expect(links()).toBe(4);
  fireEvent.click(fold());
  cleanup();
  open(permissions);
  expect([fold().getAttribute('aria-expanded'), links()]).toEqual(['false', 0]);
});

it('shows who waits for an overdue reply, and settles it with the agent’s text', async () => {
  layOut();
  const from = { kind: 'person' as const, id: 'Grace' };
  const title = 'Which **port** is it?';
  const obligation: Obligation = {
    ...{ messageId: 'w1', sessionId: 's1', agentId: 'builder', from, text: title, sentAt: 1, owedSince: 1 },
    ...{ isOverdue: true, state: 'owed', settledAt: null, clearedBy: null, answeredInTurnId: null, reason: null },
    candidate: { messageId: 'm9', turnId: 'r2', position: '7', text: 'It listens on port 8080.' },
    position: '5',
  };
  answers['/sessions/s1/obligations'] = {
    position: '10',
    owed: [obligation],
    settled: [],
  } satisfies SessionObligations;
  answers['/sessions/s1/obligations/w1/accept'] = { messageId: 'w1', position: '11' };
  open([anInboxItem({ id: 'o', kind: 'overdue-reply', sessionId: 's1', messageId: 'w1', from, title })]);
  expect(screen.getByRole('listitem').textContent).toContain('Session s1builder“Grace” is waiting for a reply');
  press('Review reply: “Which port is it?”, builder');
  expect(await screen.findByText('It listens on port 8080.')).toBeDefined();
  const accept = screen.getByRole('button', { name: 'Accept as reply' });
  await waitFor(() => expect(accept.getAttribute('aria-disabled')).not.toBe('true'));
  fireEvent.click(accept);
  await waitFor(() => expect(posted.map(({ path }) => path)).toEqual(['/sessions/s1/obligations/w1/accept']));
  expect(posted[0]?.body).toMatchObject({ candidateId: 'm9', candidatePosition: '7' });
});

it('shows a message that is also the title of its session once', () => {
  const [from, title] = [{ kind: 'person' as const, id: 'user' }, 'Port the table'];
  open([anInboxItem({ kind: 'overdue-reply', messageId: 'w1', from, title, session: { title, name: null } })]);
  expect(screen.getByRole('listitem').textContent).toContain('“Port the table”');
  expect(screen.queryByText('Port the table')).toBeNull();
  expect(screen.getByText('A person is waiting for a reply')).toBeDefined();
});

it('explains how to set a webhook', async () => {
  const nothing = { webhook: null, problem: null, waiting: 0, last: null, position: '10' };
  answers['/webhook'] = nothing satisfies WebhookStatus;
  answers['/webhook/deliveries'] = { deliveries: [], next: null, position: '10' } satisfies WebhookDeliveries;
  render(
    <LiveProvider>
      <WebhookPanel />
    </LiveProvider>,
  );
  const panel = await screen.findByText(/^No webhook is configured\./);
  expect(panel.textContent).toContain('start the server with INTERLUDE_WEBHOOK_URL');
});
