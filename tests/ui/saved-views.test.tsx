// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AgentBoard } from '@/components/agents/agent-board';
import { SavedViews } from '@/components/agents/saved-views';
import { LiveProvider } from '@/components/live/live-provider';
import { CurrentCounts } from '@/components/live/use-counts';
import { setPerson } from '@/components/ui/browser-storage';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anAgent, countsOf } from './rows';
import { scriptedFetch } from './scripted-stream';

beforeEach(() => {
  setPerson('ada');
  vi.stubGlobal('fetch', scriptedFetch().fetch);
});
afterEach(() => {
  cleanup();
  localStorage.clear();
  setPerson(null);
  vi.unstubAllGlobals();
});

async function open(search = '') {
  history.replaceState(null, '', `/agents${search}`);
  const agents = ['a', 'b'].map((id) => anAgent({ id, status: { host: id } }));
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <SavedViews />
          <CurrentCounts initial={countsOf({ agents })} />
          <AgentBoard initial={{ agents, position: '1', next: null, count: 2 }} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
  await screen.findByText(/^(1 of )?2 agents$/);
}
const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }));
const board = () => within(screen.getByRole('dialog', { name: 'Saved views' }));
const names = () => screen.getAllByRole('rowheader').map((one) => within(one).getByRole('link').textContent);
const headers = () => screen.getAllByRole('columnheader').map(({ textContent }) => textContent);

async function save(name: string) {
  press('Save view');
  const field = await screen.findByRole('textbox', { name: 'Name of the view' });
  expect(document.activeElement).toBe(field);
  fireEvent.change(field, { target: { value: name } });
  fireEvent.submit(field);
  await screen.findByRole('button', { name: 'Views' });
}

it('explains how to save a view, and saves the filter, sort and columns under a name with links to them', async () => {
  await open();
  press('Views');
  expect(await screen.findByText(/^No saved views yet\. Filter, sort or choose columns/)).toBeDefined();
  cleanup();
  await open('?host=b&sort=name&columns=host.seen');
  await save('Host b');
  fireEvent.click(screen.getByRole('button', { name: 'Agent' }));
  const [inNavigation] = screen.getAllByRole('link', { name: 'Host b' });
  expect(inNavigation?.getAttribute('href')).toBe('/agents?host=b&sort=name&columns=host.seen');
  expect(inNavigation?.getAttribute('aria-current')).toBe(null);
  history.replaceState(null, '', '/agents');
  fireEvent.popState(window);
  await waitFor(() => expect(names()).toEqual(['a', 'b']));

  fireEvent.click(inNavigation as HTMLElement);
  await waitFor(() => expect(names()).toEqual(['b']));
  expect(headers()).toEqual(['', 'Agent ↑', 'Host', 'Last seen']);
  expect(inNavigation?.getAttribute('aria-current')).toBe('page');
});

it('renames a view, deletes it, and restores it in its place', async () => {
  await open('?host=a');
  await save('First');
  fireEvent.change(screen.getByLabelText('Host'), { target: { value: 'b' } });
  await save('Second');
  press('Views');
  fireEvent.click(await board().findByRole('link', { name: 'First' }));
  await waitFor(() => expect(names()).toEqual(['a']));
  expect(screen.queryByRole('dialog')).toBe(null);
  press('Views');
  const field = board().getByRole('textbox', { name: 'Name of the view' });
  fireEvent.change(field, { target: { value: 'On host a' } });
  fireEvent.submit(field);
  const views = () =>
    board()
      .queryAllByRole('link')
      .map(({ textContent }) => textContent);
  expect(screen.queryByRole('dialog')).toBe(null);
  press('Views');
  expect(views()).toEqual(['On host a', 'Second']);
  press('Delete view');
  expect(views()).toEqual(['Second']);
  press('Undo');
  expect(screen.queryByRole('dialog')).toBe(null);
  press('Views');
  expect(views()).toEqual(['On host a', 'Second']);
});

it('keeps views and columns for one person', async () => {
  await open('?host=a');
  await save('Mine');
  cleanup();
  setPerson('bob');
  await open();
  expect(screen.queryByRole('link', { name: 'Mine' })).toBe(null);
});

it('shows the chosen columns, keeps them, and resets them', async () => {
  await open();
  expect(headers()).toEqual(['', 'Agent', 'State ↑', 'Host', 'Sessions', 'Running tasks', 'Last seen']);
  press('Columns');
  const chooser = await screen.findByRole('dialog', { name: 'Columns' });
  fireEvent.click(within(chooser).getByRole('checkbox', { name: 'Missing records' }));
  fireEvent.click(within(chooser).getByRole('checkbox', { name: 'Host' }));
  const chosen = ['', 'Agent', 'State ↑', 'Sessions', 'Running tasks', 'Missing records', 'Last seen'];
  expect(headers()).toEqual(chosen);
  cleanup();
  await open();
  expect(headers()).toEqual(chosen);
  press('Columns');
  fireEvent.click(await screen.findByRole('button', { name: 'Reset columns' }));
  expect(headers()).toContain('Host');
});
