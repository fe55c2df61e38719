// @vitest-environment happy-dom

import type { FleetCounts } from '@interlude/protocol/inbox';
import type { AgentList, AgentSummary } from '@interlude/protocol/read-models';
import { noSessions } from '@interlude/protocol/session-states';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AgentBoard } from '@/components/agents/agent-board';
import { LiveProvider } from '@/components/live/live-provider';
import { CurrentCounts } from '@/components/live/use-counts';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anAgent, countsOf } from './rows';
import { scriptedFetch } from './scripted-stream';

/** More than a page, but few enough to render at once. */
const AGENTS = 24;
const PAGE = 10;
const ROW_PX = 49;

let all: AgentSummary[];
/** The server's counts, if they are not those of `all`. */
let counted: FleetCounts | null;
beforeEach(() => {
  history.replaceState(null, '', '/agents');
  counted = null;
  // Rows without a height would overlap.
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(ROW_PX);
  all = Array.from({ length: AGENTS }, (_, index) =>
    anAgent({
      id: `runner-${index}`,
      status: { host: `build-${index % 3}`, versions: { provider: `Claude Code 2.1.${index % 2}` } },
      sessionStates: index === 7 ? { ...noSessions(), idle: 1, working: 1 } : { ...noSessions(), idle: 1 },
    }),
  );
  const script = scriptedFetch();
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const { pathname, searchParams } = new URL(url, 'http://interlude.test');
    if (!pathname.endsWith('/agents')) return script.fetch(url, init);
    return Response.json(pageFrom(Number(searchParams.get('after') ?? 0)));
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function pageFrom(from: number): AgentList {
  const next = from + PAGE < all.length ? String(from + PAGE) : null;
  return { agents: all.slice(from, from + PAGE), position: '1', next, count: all.length };
}

async function open(search = '') {
  history.replaceState(null, '', `/agents${search}`);
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <CurrentCounts initial={counted ?? countsOf({ agents: all })} />
          <AgentBoard initial={pageFrom(0)} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
  await screen.findByText(/ agents$/, { selector: '[role=status]' });
  await waitFor(() => expect(screen.queryByText(/^Loading/)).toBeNull());
}
const names = () => screen.getAllByRole('rowheader').map((one) => within(one).getByRole('link').textContent);
const header = (name: string) => screen.getByRole('columnheader', { name: new RegExp(`^${name}`) });
const working = () => screen.getByRole<HTMLInputElement>('checkbox', { name: /^Working/ });

it('loads all agents and sorts names in natural order, after urgent agents', async () => {
  await open();
  expect(screen.getByText('24 agents')).toBeDefined();
  expect([names()[0], names()[1], names()[11]]).toEqual(['runner-7', 'runner-0', 'runner-11']);
});

it('sorts by a column on a press, reverses on the next, and updates the address', async () => {
  await open();
  fireEvent.click(within(header('Sessions')).getByRole('button'));
  await waitFor(() => expect(names().slice(0, 2)).toEqual(['runner-7', 'runner-0']));
  expect([header('Sessions').getAttribute('aria-sort'), location.search]).toEqual(['descending', '?sort=sessions']);
  fireEvent.click(within(header('Sessions')).getByRole('button'));
  await waitFor(() => expect(names().at(-1)).toBe('runner-7'));
  expect([header('Sessions').getAttribute('aria-sort'), location.search]).toEqual(['ascending', '?sort=-sessions']);
});

it('filters by state, host and provider, and Back undoes one at a time', async () => {
  await open();
  fireEvent.change(screen.getByLabelText('Host'), { target: { value: 'build-1' } });
  expect(await screen.findByText('8 of 24 agents')).toBeDefined();
  fireEvent.click(working());
  expect(await screen.findByText('1 of 24 agents')).toBeDefined();
  expect([names(), location.search]).toEqual([['runner-7'], '?state=working&host=build-1']);
  expect(screen.getByRole('checkbox', { name: 'Idle 7' })).toBeDefined();

  // Back changes the address and fires popstate.
  history.replaceState(null, '', '/agents?host=build-1');
  fireEvent.popState(window);
  expect(await screen.findByText('8 of 24 agents')).toBeDefined();
  expect(working().checked).toBe(false);
});

it('shows the server’s counts, and how many of all agents a filter lists', async () => {
  const counts = countsOf({ agents: all });
  const idle = { ...counts.agentStates, idle: 1_010, working: 4 };
  counted = { ...counts, agents: 1_024, agentStates: idle, retiredStates: { ...counts.retiredStates, idle: 10 } };
  await open('?state=idle');
  expect(screen.getByText('1,010 of 1,024 agents')).toBeDefined();
  expect(screen.getByRole('checkbox', { name: 'Idle 1,010' })).toBeDefined();
  fireEvent.click(screen.getByRole('checkbox', { name: '10 retired' }));
  expect(await screen.findByText('1,020 of 1,024 agents')).toBeDefined();
  fireEvent.change(screen.getByLabelText('Host'), { target: { value: 'build-0' } });
  expect(await screen.findByText('8 of 1,024 agents')).toBeDefined();
});

it('“Failed” counts apart, and lists, agents that also need input', async () => {
  const of = (id: string, sessionStates: object) =>
    anAgent({ id, sessionStates: { ...noSessions(), ...sessionStates }, sessionCount: 3 });
  all = [of('both', { 'needs-input': 1, failed: 2 }), of('failing', { failed: 1 }), of('asking', { 'needs-input': 1 })];
  await open('?state=failed');
  expect(screen.getByText('2 of 3 agents')).toBeDefined();
  expect(names()).toEqual(['both', 'failing']);
  const chip = screen.getByRole('checkbox', { name: 'Failed 1+1' });
  expect(chip.closest('label')?.title).toBe('1 failed, 1 more also need input');
  fireEvent.click(screen.getByRole('checkbox', { name: 'Needs input 2' }));
  expect(await screen.findByText('3 agents')).toBeDefined();
  fireEvent.change(screen.getByRole('searchbox', { name: 'Search agents' }), { target: { value: 'both' } });
  expect(await screen.findByRole('checkbox', { name: 'Failed 0+1' })).toBeDefined();
});

it('shows the view in the address', async () => {
  await open('?state=working&host=build-1&sort=sessions');
  expect(screen.getByText('1 of 24 agents')).toBeDefined();
  expect([names(), working().checked]).toEqual([['runner-7'], true]);
});

it('counts the sessions of an agent by state', async () => {
  all = [anAgent({ id: 'crowd', sessionStates: { ...noSessions(), failed: 1, idle: 230 } }), anAgent({ id: 'loner' })];
  await open();
  expect(screen.getByText('231 sessions: 1 failed · 230 idle')).toBeDefined();
});

it('finds agents by name, and clears a search without matches', async () => {
  all = [anAgent({ id: 'crowd' }), anAgent({ id: 'loner' })];
  await open();
  const search = (value: string) =>
    fireEvent.change(screen.getByRole('searchbox', { name: 'Search agents' }), { target: { value } });
  search('LON');
  await waitFor(() => expect(names()).toEqual(['loner']));
  search('nobody');
  fireEvent.click(await screen.findByText('Clear search'));
  await waitFor(() => expect(names()).toEqual(['crowd', 'loner']));
});

it('moves through the rows by keys, selects, searches, and leaves in steps', async () => {
  await open();
  const press = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key, bubbles: true });
  const focused = () => document.activeElement?.getAttribute('data-agent-row');
  const field = screen.getByRole<HTMLInputElement>('searchbox', { name: 'Search agents' });
  press('j');
  expect(focused()).toBe('runner-7');
  press('j');
  press('j');
  press('k');
  expect(focused()).toBe('runner-0');
  press('x');
  const box = screen.getByRole<HTMLInputElement>('checkbox', { name: 'Select “runner-0”' });
  expect(box.checked).toBe(true);
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select “runner-2”' }), { shiftKey: true });
  expect(await screen.findByText('3 selected')).toBeDefined();
  press('/');
  expect(document.activeElement).toBe(field);
  fireEvent.change(field, { target: { value: 'runner-0' } });
  press('j');
  expect(document.activeElement).toBe(field);
  press('Escape');
  expect(document.activeElement).not.toBe(field);
  press('Escape');
  expect([box.checked, field.value]).toEqual([false, 'runner-0']);
  press('Escape');
  expect(field.value).toBe('');
});
