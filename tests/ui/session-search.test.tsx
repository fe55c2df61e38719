// @vitest-environment happy-dom

import type { SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { noSessions } from '@interlude/protocol/session-states';
import { act, cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LiveProvider } from '@/components/live/live-provider';
import { useFleetStores, useInitialData } from '@/components/live/use-fleet';
import { SessionNav } from '@/components/sessions/session-nav';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { aSession, countsOf } from './rows';
import { scriptedFetch } from './scripted-stream';

/** Idle sessions on the server, more than two pages. */
const SESSIONS = 23;
const PAGE = 10;

let all: SessionSummary[];
let asked: URLSearchParams[];
/** HTTP status that fails every search; null: none. */
let refusal: number | null;

beforeEach(() => {
  history.replaceState(null, '', '/');
  localStorage.clear();
  all = Array.from({ length: SESSIONS }, (_, index) =>
    aSession({ id: `crowd-${index}`, agentId: 'crowd', title: 'Errand' }),
  );
  all.push(aSession({ id: 'broken', agentId: 'loner', title: 'Survey', state: 'failed', stateReason: 'Flooded' }));
  asked = [];
  refusal = null;
  const script = scriptedFetch();
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const { pathname, searchParams } = new URL(url, 'http://interlude.test');
    if (!pathname.endsWith('/sessions')) return script.fetch(url, init);
    asked.push(searchParams);
    if (refusal !== null) return Response.json({ error: { code: 'busy', message: 'Busy.' } }, { status: refusal });
    return Response.json(answerOf(searchParams));
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** The server's page of the list. */
function answerOf(params: URLSearchParams): SessionList {
  const [states, agent, words] = [params.getAll('listed'), params.get('agent'), params.get('q')?.toLowerCase() ?? ''];
  const found = all.filter(
    ({ state, agentId, title, stateReason }) =>
      (states.length === 0 || states.includes(state)) &&
      (agent === null || agent === agentId) &&
      `${title} ${stateReason}`.toLowerCase().includes(words),
  );
  const counts = noSessions();
  for (const { state } of found) counts[state] += 1;
  const from = Number(params.get('after') ?? 0);
  const next = from + PAGE < found.length ? String(from + PAGE) : null;
  return { sessions: found.slice(from, from + PAGE), position: '10', next, hasMore: next !== null, counts };
}

let fleet: ReturnType<typeof useFleetStores>['fleet'];
function Page({ shown }: { shown: SessionSummary | null }) {
  fleet = useFleetStores().fleet;
  useInitialData((fleet) => {
    fleet.putSessions(answerOf(new URLSearchParams()));
    fleet.putCounts(countsOf({ sessions: all }));
    if (shown !== null) fleet.putSession({ session: shown, position: '10' });
  });
  return <SessionNav currentId={shown?.id ?? null} keysEverywhere={shown === null} empty={null} />;
}
/** @param shown the session of the page; null on the start page */
const open = (search = '', shown: SessionSummary | null = null) => {
  history.replaceState(null, '', `/${search}`);
  return render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <Page shown={shown} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
};

const ids = () =>
  [...document.querySelectorAll<HTMLElement>('[data-session-row]')].map((row) => row.dataset.sessionRow);
const field = () => screen.getByRole<HTMLInputElement>('searchbox', { name: 'Search sessions' });
const search = (text: string) => fireEvent.change(field(), { target: { value: text } });
const state = (name: RegExp) => screen.getByRole<HTMLInputElement>('checkbox', { name });
const more = () => fireEvent.click(screen.getByRole('button', { name: 'Show more' }));

it('loads further pages on a press, without duplicates', async () => {
  open();
  expect(ids()).toHaveLength(PAGE);
  expect(await screen.findByText(`${PAGE} of ${SESSIONS + 1} sessions`)).toBeDefined();
  expect(screen.getByRole('heading', { name: `Idle ${SESSIONS}` })).toBeDefined();
  more();
  await waitFor(() => expect(ids()).toHaveLength(2 * PAGE));
  more();
  await waitFor(() => expect(ids()).toHaveLength(SESSIONS + 1));
  expect(new Set(ids()).size).toBe(SESSIONS + 1);
  expect(screen.queryByRole('button', { name: 'Show more' })).toBeNull();
});

it('finds a session that is not loaded by the query in the address', async () => {
  open('?q=flooded');
  expect(field().value).toBe('flooded');
  await waitFor(() => expect(ids()).toEqual(['broken']));
  search('');
  await waitFor(() => expect(ids()).toHaveLength(PAGE + 1));
  expect(location.search).toBe('');
});

it('asks the server once typing pauses, and keeps the words in the address', async () => {
  open();
  for (const words of ['f', 'fl', 'FLOODED']) search(words);
  await waitFor(() => expect(ids()).toEqual(['broken']));
  expect(location.search).toBe('?q=FLOODED');
  expect(asked.map((params) => params.get('q'))).toEqual(['FLOODED']);
});

it('filters by state, and Back undoes a state but not each letter', async () => {
  open();
  fireEvent.click(state(/^Failed/));
  expect(location.search).toBe('?state=failed');
  await waitFor(() => expect(ids()).toEqual(['broken']));
  expect(state(/^Failed/).checked).toBe(true);
  const steps = history.length;
  search('flooded');
  await waitFor(() => expect(location.search).toBe('?q=flooded&state=failed'));
  expect(history.length).toBe(steps);
  fireEvent.click(state(/^Failed/));
  fireEvent.click(state(/^Idle/));
  expect(await screen.findByText('No sessions match “flooded”.')).toBeDefined();
  expect(history.length).toBe(steps + 2);

  // Back changes the address and fires popstate.
  history.replaceState(null, '', '/?q=flooded&state=failed');
  fireEvent.popState(window);
  await waitFor(() => expect(ids()).toEqual(['broken']));
  expect([state(/^Failed/).checked, state(/^Idle/).checked, field().value]).toEqual([true, false, 'flooded']);
});

it('filters seen failures by their own chip, with the numbers of the headings', async () => {
  all = [1, 2, 3].map((at) => aSession({ id: `broken-${at}`, state: 'failed' }));
  const seen = { ...(all[0] as SessionSummary).arrangement, seenState: (all[0] as SessionSummary).stateSince };
  all[0] = { ...(all[0] as SessionSummary), arrangement: seen };
  open();
  const chip = (name: RegExp) => state(name).labels?.[0]?.textContent;
  expect([chip(/^Failed\b(?!,)/), chip(/^Failed, seen/)]).toEqual(['Failed2', 'Failed, seen1']);
  expect(screen.getByRole('heading', { name: 'Failed 2' })).toBeDefined();
  fireEvent.click(state(/^Failed\b(?!,)/));
  expect(ids()).toEqual(['broken-2', 'broken-3']);
  fireEvent.click(state(/^Failed\b(?!,)/));
  fireEvent.click(state(/^Failed, seen/));
  expect(location.search).toBe('?state=seen');
  await waitFor(() => expect(ids()).toEqual(['broken-1']));
  await waitFor(() => expect(asked.at(-1)?.getAll('listed')).toEqual(['failed', 'lost']));
});

it('counts a held row that has left its group only where it belongs now', async () => {
  all = [1, 2, 3].map((at) => aSession({ id: `asks-${at}`, state: 'needs-input' }));
  open();
  fireEvent.pointerMove(screen.getByRole('navigation', { name: 'Sessions' }));
  all[0] = { ...(all[0] as SessionSummary), state: 'working' };
  act(() => {
    fleet.putSession({ session: all[0] as SessionSummary, position: '11' });
    fleet.putCounts({ ...countsOf({ sessions: all }), position: '11' });
  });
  await waitFor(() => expect(state(/^Needs input/).labels?.[0]?.textContent).toBe('Needs input2'));
  screen.getByRole('heading', { name: 'Needs input 2' });
  expect(ids()).toHaveLength(3);
});

it('shows that no session matches, and clears the search on a press', async () => {
  open('?q=zanzibar');
  fireEvent.click(await screen.findByText('Clear search'));
  await waitFor(() => expect(ids().length).toBeGreaterThan(2));
  expect([location.search, field().value]).toEqual(['', '']);
});

it('loads search results page by page with the server’s count', async () => {
  open('?q=errand');
  expect(await screen.findByText(`${PAGE} of ${SESSIONS} sessions found`)).toBeDefined();
  more();
  await waitFor(() => expect(ids()).toHaveLength(2 * PAGE));
  more();
  await waitFor(() => expect(ids()).toHaveLength(SESSIONS));
  expect(screen.queryByText(/sessions found/)).toBeNull();
});

it('hides counts during a search until all sessions are loaded, then counts the hits', async () => {
  open();
  expect(state(/^Idle/).labels?.[0]?.textContent).toBe(`Idle${SESSIONS}`);
  search('errand');
  expect(await screen.findByText(`${PAGE} of ${SESSIONS} sessions found`)).toBeDefined();
  expect(state(/^Idle/).labels?.[0]?.textContent).toBe('Idle');
  expect(screen.getByRole('heading', { name: `Idle ${PAGE}+` })).toBeDefined();
  more();
  await waitFor(() => expect(ids()).toHaveLength(2 * PAGE));
  more();
  expect(await screen.findByRole('heading', { name: `Idle ${SESSIONS}` })).toBeDefined();
  expect(state(/^Idle/).labels?.[0]?.textContent).toBe(`Idle${SESSIONS}`);
  expect(state(/^Failed/).labels?.[0]?.textContent).toBe('Failed0');
});

it('lists an agent’s sessions with counts until the filter is removed', async () => {
  open('?agent=loner');
  await waitFor(() => expect(ids()).toEqual(['broken']));
  // Without states, the server sends no counts.
  expect(asked[0]?.getAll('listed')).toContain('idle');
  fireEvent.click(screen.getByRole('button', { name: 'Only sessions of “loner”: show all agents' }));
  await waitFor(() => expect(ids().length).toBeGreaterThan(2));
  expect(location.search).toBe('');
});

it('shows why a search failed and retries on a press', async () => {
  refusal = 503;
  open('?q=flooded');
  expect(await screen.findByText('Busy.')).toBeDefined();
  refusal = null;
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await waitFor(() => expect(ids()).toEqual(['broken']));
  expect(screen.queryByText('Busy.')).toBeNull();
});

it('folds a group, and keeps it folded on the next visit', async () => {
  all = [aSession({ id: 'quiet' }), aSession({ id: 'broken', state: 'failed', stateSince: Date.now() })];
  open();
  const idle = () => screen.getByRole('button', { name: /^Idle/ });
  expect(ids()).toEqual(['broken', 'quiet']);
  fireEvent.click(idle());
  expect(ids()).toEqual(['broken']);
  cleanup();
  open();
  expect([idle().getAttribute('aria-expanded'), ...ids()]).toEqual(['false', 'broken']);
  fireEvent.click(idle());
  expect(ids()).toEqual(['broken', 'quiet']);
});

/** The rows of a section, by its heading. */
const idsOf = (heading: RegExp) =>
  within(screen.getByRole('region', { name: heading }))
    .queryAllByRole('link')
    .map((row) => row.dataset.sessionRow);

it('shows the open session in its folded group', () => {
  all = [aSession({ id: 'quiet' }), aSession({ id: 'shown' }), aSession({ id: 'busy', state: 'working' })];
  open('', all[1]);
  fireEvent.click(screen.getByRole('button', { name: /^Idle/ }));
  expect(idsOf(/^Idle/)).toEqual(['shown']);
  expect(screen.queryByRole('region', { name: 'Open session' })).toBeNull();
});

it('shows the open session above the groups while it is filtered out or not loaded', async () => {
  open('', all[SESSIONS - 1]);
  expect(idsOf(/^Open session/)).toEqual([`crowd-${SESSIONS - 1}`]);
  search('flooded');
  await waitFor(() => expect(ids()).toEqual([`crowd-${SESSIONS - 1}`, 'broken']));
  search('');
  more();
  await waitFor(() => expect(ids()).toHaveLength(2 * PAGE + 2));
  more();
  await waitFor(() => expect(screen.queryByRole('region', { name: 'Open session' })).toBeNull());
  expect(new Set(ids()).size).toBe(ids().length);
});

it('is one stop of Tab beside a page, and a stop for each row on the start page', () => {
  const stops = () => screen.getAllByRole('link').filter(({ tabIndex }) => tabIndex >= 0);
  open('', all[2]);
  expect(screen.getAllByRole('link').length).toBeGreaterThan(5);
  expect(stops().map(({ dataset }) => dataset.sessionRow)).toEqual(['crowd-2']);
  cleanup();
  open();
  expect(stops().length).toBeGreaterThan(5);
});
