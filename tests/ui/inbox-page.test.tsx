// @vitest-environment happy-dom

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { InboxPage } from '@/components/inbox/inbox-page';
import type { RequestedItem } from '@/components/inbox/item-request';
import { LiveProvider } from '@/components/live/live-provider';
import { CurrentCounts } from '@/components/live/use-counts';
import { useCardKeys, useOfferAnswers } from '@/components/requests/request-board';
import { NowProvider } from '@/components/ui/clock';
import { CodeOnDemand } from '@/components/ui/on-demand';
import { NextPage } from '../support/next-page';
import { layOut } from './laid-out';
import { anInboxItem, someCounts } from './rows';
import { scriptedFetch } from './scripted-stream';

let asked: URLSearchParams[];
/** Response of the server. */
let answer: (asked: URLSearchParams) => InboxList | Promise<InboxList>;

beforeEach(() => {
  const script = scriptedFetch();
  history.replaceState(null, '', '/inbox');
  asked = [];
  pressed = [];
  isSeen = true;
  answer = () => ({ items: [], position: '10', next: null, counts: noItems() });
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    if (!url.includes('/inbox')) return script.fetch(url, init);
    const { searchParams } = new URL(url, 'http://interlude.test');
    asked.push(searchParams);
    return Response.json(await answer(searchParams));
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const some = (kind: InboxKind, count: number, fields: Partial<InboxItem> = {}) =>
  Array.from({ length: count }, (_, index) =>
    anInboxItem({
      id: `${kind} ${index}`,
      kind,
      sessionId: `of ${kind} ${index}`,
      title: `${kind} ${index}`,
      ...fields,
    }),
  );
/** A card that records its presses. */
function Card({ item }: { item: RequestedItem }) {
  useCardKeys(item.request.digest, {
    allow: () => pressed.push(`allow ${item.id}`),
    deny: () => pressed.push(`deny ${item.id}`),
  });
  const [isGiven, setGiven] = useState(false);
  const give = (what: string) => {
    pressed.push(`together: ${what} ${item.id}`);
    setGiven(true);
  };
  useOfferAnswers(isGiven ? null : item.request.digest, isSeen, {
    allow: () => give('allow'),
    deny: () => give('deny'),
  });
  return <p>What it asks</p>;
}
const requestCode = new CodeOnDemand<{ item: RequestedItem }>(async () => Card);
let pressed: string[];
/** True if the whole input of each card was in sight. */
let isSeen: boolean;
const counts = { ...noItems(), permission: 230, 'delivery-gap': 6 };
/** The first page of many items. */
const first: InboxList = { items: some('permission', 3), position: '10', next: 'permission.1.i', counts };

function open(initial: InboxList, agents = 3) {
  return render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <CurrentCounts
            initial={someCounts({
              position: '10',
              needsYou: 231,
              inbox: { all: 236, kinds: counts, requests: 240 },
              agents,
            })}
          />
          <InboxPage initial={initial} requestCode={requestCode} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
}
const kinds = () =>
  within(screen.getByRole('navigation', { name: 'Kinds' }))
    .getAllByRole('link')
    .map(({ textContent }) => textContent);

it('lists every kind with the server’s counts, whatever is loaded', () => {
  open(first);
  expect(kinds()).toEqual(['All', 'Permissions230', 'Missing records6']);
  expect(screen.getByRole('heading', { name: 'Needs you 231' })).toBeDefined();
});

it('distinguishes a new installation from an empty inbox', () => {
  const empty: InboxList = { items: [], position: '10', next: null, counts: noItems() };
  open(empty);
  expect(screen.getByText(/^You’re all caught up/)).toBeDefined();
  cleanup();
  open(empty, 0);
  expect(screen.getByRole('heading', { name: 'No agents yet' })).toBeDefined();
  expect(screen.getByRole('link', { name: 'Connect an agent' }).getAttribute('href')).toBe('/');
});

it('reads the kind in the address, and shows nothing as empty before the response', async () => {
  history.replaceState(null, '', '/inbox?kind=delivery-gap');
  let answered = (_list: InboxList) => {};
  answer = () =>
    new Promise((resolve) => {
      answered = resolve;
    });
  open(first);
  await vi.waitFor(() => expect(asked.map((params) => params.getAll('kind'))).toEqual([['delivery-gap']]));
  expect(screen.queryByText(/needs you/)).toBeNull();
  await act(async () =>
    answered({
      items: some('delivery-gap', 4),
      position: '10',
      next: 'delivery-gap.1.i',
      counts: { ...noItems(), 'delivery-gap': 6 },
    }),
  );
  // Of a kind that is partly loaded, the server does not know the number in each group.
  expect(await screen.findByRole('heading', { name: 'Needs you' })).toBeDefined();
  expect(screen.queryByRole('link', { name: /permission/ })).toBeNull();
  expect(screen.getByRole('button', { name: 'Show more' })).toBeDefined();
  expect(screen.getByText('4+ rows')).toBeDefined();
  expect(kinds()).toContain('Permissions230');
});

it('shows that a kind is empty once the server has responded', async () => {
  history.replaceState(null, '', '/inbox?kind=failure');
  open(first);
  expect(screen.queryByText('No items of this kind.')).toBeNull();
  expect(await screen.findByText('No items of this kind.')).toBeDefined();
});

it('doesn’t show an empty inbox while more items exist', () => {
  open({ ...first, items: [] });
  expect(screen.queryByText(/caught up/)).toBeNull();
  expect(screen.getByRole('button', { name: 'Show more' })).toBeDefined();
});

const asks = (id: string) =>
  anInboxItem({
    id,
    sessionId: `of ${id}`,
    title: id,
    request: { id, digest: `of ${id}`, openedPosition: '1', answerBy: null },
  });

it('keys on a request’s row unfold it, then act on its card only', async () => {
  open({ ...first, items: [asks('one'), asks('two')], next: null });
  const key = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
  key('r');
  await screen.findByText('What it asks');
  await act(async () => {});
  key('d');
  expect(pressed).toEqual(['deny one']);
  key('j');
  key('a');
  expect(pressed).toHaveLength(1);
  await vi.waitFor(() => expect(screen.getAllByText('What it asks')).toHaveLength(2));
  await act(async () => {});
  key('a');
  expect(pressed).toEqual(['deny one', 'allow two']);
  screen.getByRole('checkbox', { name: 'Select “one”, builder' }).focus();
  key('a');
  expect(pressed).toEqual(['deny one', 'allow two', 'allow one']);
});

it.each([true, false])('keys answer the selected requests together once they are shown in full: %s', async (seen) => {
  layOut();
  isSeen = seen;
  open({ ...first, items: [asks('one'), asks('two'), asks('three')], next: null });
  const key = (key: string) => fireEvent.keyDown(document.body, { key });
  for (const id of ['one', 'two']) fireEvent.click(screen.getByRole('checkbox', { name: `Select “${id}”, builder` }));
  await screen.findByText('2 are not shown in full.');
  key('a');
  await vi.waitFor(() => expect(screen.getAllByText('What it asks')).toHaveLength(2));
  const allow = await screen.findByRole('button', { name: 'Allow these 2' });
  expect([allow.getAttribute('aria-disabled'), pressed]).toEqual(['true', []]);
  const deny = screen.getByRole('button', { name: 'Deny these 2' });
  await vi.waitFor(() => expect(deny.getAttribute('aria-disabled')).toBe('false'), { timeout: 5_000 });
  key('a');
  expect(pressed).toHaveLength(seen ? 2 : 0);
  if (!seen) key('d');
  expect(pressed).toEqual(['one', 'two'].map((id) => `together: ${seen ? 'allow' : 'deny'} ${id}`));
  await screen.findByText(seen ? /^Allowed\. Sending/ : /^Denied\. Sending/);
});

it('offers to review a permission and to answer a question', () => {
  open({ ...first, items: [asks('one'), { ...asks('two'), kind: 'question' }], next: null });
  const labels = screen
    .getAllByRole('button', { name: /: “(one|two)”, builder$/ })
    .map(({ textContent }) => textContent);
  expect(labels).toEqual(expect.arrayContaining(['Review', 'Answer']));
});

it('names controls by the whole input and the agent, and by the title unless it repeats the input', () => {
  const of = (id: string, title: string, command: string, line = command) => {
    const preview = { tool: 'Bash', line, input: { command } };
    const { request, ...item } = asks(id);
    return { ...item, title, agentId: `agent-${id}`, request: { ...request, preview } as InboxItem['request'] };
  };
  const cut = 'Bash: rm -rf build && …';
  const items = [of('1', cut, 'rm -rf build && a'), of('2', cut, 'rm -rf build && b'), of('3', 'Look', 'ls')];
  open({ ...first, items, next: null });
  const boxes = screen.getAllByRole('checkbox', { name: /agent-/ });
  expect(boxes.map((box) => box.getAttribute('aria-label'))).toEqual([
    'Select “Bash: rm -rf build && a”, agent-1',
    'Select “Bash: rm -rf build && b”, agent-2',
    'Select “Look”, “Bash: ls”, agent-3',
  ]);
  expect(screen.getByRole('button', { name: 'Review: “Bash: rm -rf build && b”, agent-2' })).toBeDefined();
});

it('Enter opens the focused row', async () => {
  open({ ...first, next: null });
  const link = screen.getByRole('link', { name: '“permission 0”' });
  const opened = vi.fn((event: Event) => event.preventDefault());
  link.addEventListener('click', opened);
  const key = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
  key('j');
  key('Enter');
  expect(opened).toHaveBeenCalledOnce();
});

it('a review names the server’s number of requests, loads missing ones, and leaves out snoozed ones', async () => {
  // happy-dom has no modal dialogs
  HTMLDialogElement.prototype.showModal ??= () => {};
  answer = (params) => ({
    ...{ items: [asks(`after ${params.get('after')}`)], position: '10', counts },
    next: params.get('after') === 'page 2' ? 'page 3' : null,
  });
  const snoozed = { ...asks('later'), sessionId: asks('one').sessionId, snoozedUntil: Date.now() + 60_000 };
  open({ ...first, items: [asks('one'), asks('two'), snoozed], next: 'page 2' });
  fireEvent.click(screen.getByRole('button', { name: 'Review 240 requests' }));
  expect(await screen.findByText('Request 1 of 4')).toBeDefined();
  expect(asked.map((params) => params.get('after'))).toEqual(['page 2', 'page 3']);
});

it('shows the review button beside the page title', () => {
  const place = document.body.appendChild(document.createElement('span'));
  place.id = 'page-actions';
  open({ ...first, items: [asks('one'), asks('two')], next: null });
  expect(place.textContent).toMatch(/^Review \d+ requests$/);
  place.remove();
});

it('the head of a group selects it and shows none, some or all', () => {
  open({ ...first, items: some('permission', 2), next: null });
  const all = () => screen.getByRole<HTMLInputElement>('checkbox', { name: 'Select all of Needs you' });
  const stands = () => [all().checked, all().indeterminate];
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select “permission 0”, builder' }));
  expect(stands()).toEqual([false, true]);
  fireEvent.click(all());
  expect([...stands(), screen.getByRole('region', { name: '2 items selected' })]).toHaveLength(3);
  expect(stands()).toEqual([true, false]);
  fireEvent.click(all());
  expect(stands()).toEqual([false, false]);
});
