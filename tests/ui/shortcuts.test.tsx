// @vitest-environment happy-dom
import { cleanup, createEvent, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { useRef } from 'react';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keyLabel } from '@/components/ui/shortcuts/bindings';
import { SHORTCUT_LABELS } from '@/components/ui/shortcuts/shortcut-dialog';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { SHORTCUTS, type ShortcutId, useExclusiveKeys, useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const ids = Object.keys(SHORTCUTS) as ShortcutId[];

let acted: ShortcutId[] = [];
beforeEach(() => {
  acted = [];
});
afterEach(cleanup);

const acts = (...ids: ShortcutId[]) => Object.fromEntries(ids.map((id) => [id, () => void acted.push(id)]));

/** A page with a transcript, a list, and a log that contains a box with exclusive keys. */
function Page({ isLogPage = false, isSearched = true }) {
  const list = useRef<HTMLElement>(null);
  const panel = useRef<HTMLElement>(null);
  const log = useRef<HTMLDivElement>(null);
  const quiet = useRef<HTMLDivElement>(null);
  useShortcuts(acts('transcript.leave', 'message.write', 'turn.interrupt'));
  useShortcuts(isLogPage ? {} : acts('transcript.next'));
  useShortcuts(acts('sessions.search', 'sessions.next'), { area: list });
  useShortcuts(acts('log.leave'), { area: panel });
  useShortcuts(
    {
      ...acts('log.search', 'log.next', 'log.unfold'),
      'log.clear-search': isSearched ? () => acted.push('log.clear-search') : null,
    },
    { area: log, leads: isLogPage },
  );
  useExclusiveKeys(quiet);
  const box = useRef<HTMLDivElement>(null);
  useExclusiveKeys(box);
  return (
    <>
      <ShortcutHelp />
      <nav ref={list} aria-label="list" tabIndex={-1} />
      <section ref={panel} aria-label="panel" tabIndex={-1}>
        <div ref={log} role="log" tabIndex={-1}>
          <button type="button">In the log</button>
          <div ref={box} role="log" aria-label="box" tabIndex={-1} />
        </div>
      </section>
      <aside ref={quiet} tabIndex={-1} />
      <input aria-label="field" />
    </>
  );
}

const press = (key: string, on: Element = document.body, more: object = {}) =>
  fireEvent.keyDown(on, { key, cancelable: true, bubbles: true, ...more });

it('the dialog lists every shortcut with its keys', async () => {
  render(<ShortcutHelp />);
  press('?');
  await screen.findByText('Keyboard shortcuts');
  const rows = [...document.querySelectorAll('dl > div')].map((row) => row.textContent);
  expect(rows).toHaveLength(Object.keys(SHORTCUTS).length);
  for (const id of ids) expect(rows).toContain(SHORTCUT_LABELS[id][1] + SHORTCUTS[id].keys.map(keyLabel).join(''));
  expect(rows).toContain('Interrupt the current turnCtrl+.⌘.');
});

it('no key has two shortcuts in one section', () => {
  const stepsOut = ['sessions.first-found', 'log.leave'];
  const taken = ids.flatMap((id) =>
    stepsOut.includes(id) ? [] : SHORTCUTS[id].keys.map((key) => `${SHORTCUT_LABELS[id][0]} ${key}`),
  );
  expect(new Set(taken).size).toBe(taken.length);
});

it('an area with the focus suppresses the page’s shortcuts, except global ones', () => {
  render(<Page />);
  press('j');
  press('j', screen.getByLabelText('list'));
  press('j', screen.getByRole('log', { name: '' }));
  press('j', screen.getByRole('complementary'));
  press('c', screen.getByRole('complementary'));
  expect(acted).toEqual(['transcript.next', 'sessions.next', 'log.next', 'message.write']);
});

it('a key goes to the focused area, then to the leading group, then to global shortcuts', () => {
  const page = render(<Page />);
  press('/');
  press('/', screen.getByRole('log', { name: '' }));
  page.rerender(<Page isLogPage />);
  press('/');
  press('/', screen.getByLabelText('list'));
  expect(acted).toEqual(['sessions.search', 'log.search', 'log.search', 'sessions.search']);
});

it('Esc goes to the innermost area that handles it', () => {
  const page = render(<Page />);
  press('Escape', screen.getByRole('log', { name: '' }));
  page.rerender(<Page isSearched={false} />);
  press('Escape', screen.getByRole('log', { name: '' }));
  press('Escape', screen.getByRole('log', { name: '' }), { repeat: true });
  press('Escape');
  expect(acted).toEqual(['log.clear-search', 'log.leave', 'transcript.leave']);
});

it('shortcuts ignore keys of fields, input methods and controls, and keys with modifiers', () => {
  render(<Page isLogPage />);
  const field = screen.getByLabelText('field');
  press('c', field);
  press('.', field, { ctrlKey: true });
  press('.', field, { ctrlKey: true, isComposing: true });
  press('c', document.body, { ctrlKey: true });
  press('Enter', screen.getByText('In the log'));
  press('Enter', screen.getByRole('log', { name: '' }));
  expect(acted).toEqual(['turn.interrupt', 'log.unfold']);
});

it('an open dialog suppresses shortcuts without overDialogs', async () => {
  render(<Page />);
  press('?');
  await waitFor(() => expect(document.querySelector('dialog')?.open).toBe(true));
  press('j');
  press('Escape');
  expect(acted).toEqual([]);
  press('?');
  await waitFor(() => expect(document.querySelector('dialog')).toBeNull());
  press('j');
  expect(acted).toEqual(['transcript.next']);
});

it('a box with exclusive keys suppresses its area’s shortcuts, except global ones', () => {
  render(<Page />);
  const box = screen.getByRole('log', { name: 'box' });
  press('j', box);
  press('/', box);
  expect(acted).toEqual(['sessions.search']);
  press('j', screen.getByText('In the log'));
  expect(acted).toEqual(['sessions.search', 'log.next']);
});

function Acting({ ids }: { ids: ShortcutId[] }) {
  useShortcuts(acts(...ids));
  return null;
}

/** Presses a key at a time, in milliseconds. */
function pressAt(at: number, key: string, on: Element = document.body, more: object = {}) {
  const event = createEvent.keyDown(on, { key, cancelable: true, bubbles: true, ...more });
  Object.defineProperty(event, 'timeStamp', { value: at });
  fireEvent(on, event);
}

it('two keys in a row act for their shortcut alone, whatever each does by itself', () => {
  render(<Acting ids={['page.agents', 'page.settings', 'request.allow', 'log.first']} />);
  pressAt(0, 'a');
  pressAt(10, 'g');
  pressAt(1_000, 'a');
  pressAt(1_010, 'a');
  expect(acted.splice(0)).toEqual(['request.allow', 'log.first', 'page.agents', 'request.allow']);
  pressAt(2_000, 'g');
  pressAt(2_010, 'Shift');
  pressAt(2_020, ',');
  expect(acted).toEqual(['log.first', 'page.settings']);
});

it('two keys do nothing while typing, with a pause of two seconds, with another key between, or over a dialog', async () => {
  render(
    <>
      <Acting ids={['page.agents']} />
      <Page />
    </>,
  );
  const field = screen.getByLabelText('field');
  pressAt(0, 'g', field);
  pressAt(10, 'a', field);
  pressAt(20, 'a');
  pressAt(1_000, 'g');
  pressAt(3_000, 'a');
  pressAt(4_000, 'g');
  pressAt(4_010, 'x');
  pressAt(4_020, 'a');
  pressAt(5_000, 'g', document.body, { ctrlKey: true });
  pressAt(5_010, 'a');
  press('?');
  await waitFor(() => expect(document.querySelector('dialog')?.open).toBe(true));
  pressAt(6_000, 'g');
  pressAt(6_010, 'a');
  expect(acted).toEqual([]);
});
