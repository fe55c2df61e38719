// @vitest-environment happy-dom

import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { pageUrl } from '@/app/(console)/sessions/[sessionId]/session-scope';
import {
  SessionTabs,
  TABS,
  type TabId,
  TabPanel,
  useSessionTab,
} from '@/app/(console)/sessions/[sessionId]/session-tabs';
import { setAddressAnchor } from '@/components/ui/jump';
import { publicUrl } from '@/lib/server/access/access-settings';

const ALL = Object.keys(TABS) as TabId[];
let jump: () => void;

function Page({ initial = '', inAddress = true }: { initial?: string; inAddress?: boolean }) {
  const tabs = useSessionTab(initial, inAddress);
  jump = () => {
    tabs.showTranscript();
    setAddressAnchor('task-9', 'push');
  };
  return (
    <>
      <SessionTabs tabs={tabs} of={ALL} counts={{ tasks: 1_200 }} />
      {ALL.map((id) => (
        <TabPanel key={id} tabs={tabs} of={id}>
          <p>{`The ${id}`}</p>
        </TabPanel>
      ))}
    </>
  );
}

const at = (address: string) => history.replaceState(null, '', address);
const address = () => location.pathname + location.search + location.hash;
const tab = (name: string) => screen.getByRole('tab', { name });
const selected = () => screen.getByRole('tab', { selected: true }).textContent;
/** Goes where a browser's Back button would. */
function travel(to: string) {
  at(to);
  act(() => void dispatchEvent(new PopStateEvent('popstate')));
}

beforeEach(() => at('/sessions/s'));
afterEach(cleanup);

it('shows a tab at a click, with its own address, and returns with Back', () => {
  render(<Page />);
  expect(selected()).toBe('Transcript');
  fireEvent.click(tab('Log'));
  expect(address()).toBe('/sessions/s?tab=log');
  expect(screen.getByRole('tabpanel', { name: 'Log' }).textContent).toBe('The log');
  // The transcript keeps its place below.
  expect(screen.getByText('The transcript').closest('[inert]')).not.toBeNull();
  travel('/sessions/s');
  expect(selected()).toBe('Transcript');
  expect(screen.queryByText('The log')).toBeNull();
  expect(screen.getByText('The transcript').closest('[inert]')).toBeNull();
});

it('moves between tabs with the arrow keys, Home and End', () => {
  at('/sessions/s?tab=details');
  render(<Page initial="details" />);
  tab('Details').focus();
  const press = (key: string) => fireEvent.keyDown(document.activeElement as Element, { key });
  press('ArrowRight');
  expect([selected(), document.activeElement]).toEqual(['Transcript', tab('Transcript')]);
  press('ArrowLeft');
  press('ArrowLeft');
  expect([selected(), address()]).toEqual(['Log', '/sessions/s?tab=log']);
  press('Home');
  press('ArrowRight');
  expect(selected()).toBe('Tasks1,200');
  press('End');
  expect([selected(), document.activeElement]).toEqual(['Details', tab('Details')]);
  expect(screen.getAllByRole('tab').map(({ tabIndex }) => tabIndex)).toEqual([-1, -1, -1, 0]);
});

it('opens the tab of its address, and the transcript for a link into it', () => {
  at('/sessions/s?tab=tasks');
  render(<Page initial="tasks" />);
  expect(selected()).toBe('Tasks1,200');
  act(() => jump());
  expect([selected(), address()]).toEqual(['Transcript', '/sessions/s#task-9']);
  travel('/sessions/s?tab=tasks');
  expect(selected()).toBe('Tasks1,200');
  travel('/sessions/s?tab=tasks#request-q1');
  expect(selected()).toBe('Transcript');
  travel('/sessions/s?tab=toString');
  expect(selected()).toBe('Transcript');
});

it('opens the transcript for a link opened from another tab', () => {
  at('/sessions/s?tab=tasks#task-9');
  render(<Page initial="tasks" />);
  expect(selected()).toBe('Transcript');
});

it('copies links at the configured URL, else at the address of the page', () => {
  at('/sessions/s?tab=details&q=1');
  expect(pageUrl(null, 'turn-r 1')).toBe(`${location.origin}/sessions/s?q=1#turn-r%201`);
  const configured = publicUrl({ INTERLUDE_PUBLIC_URL: ' https://name:secret@interlude.example.com/ ' });
  expect(pageUrl(configured, 'turn-r1')).toBe('https://interlude.example.com/sessions/s?q=1#turn-r1');
  expect(pageUrl(configured, '')).toBe('https://interlude.example.com/sessions/s?q=1');
  expect([publicUrl({}), publicUrl({ INTERLUDE_PUBLIC_URL: 'javascript:1' })]).toEqual([null, null]);
});

it('leaves the address of an embedding page alone', () => {
  render(<Page inAddress={false} />);
  fireEvent.click(tab('Details'));
  expect([selected(), address()]).toEqual(['Details', '/sessions/s']);
});
