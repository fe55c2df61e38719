// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { useRef } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keyLabel } from '@/components/ui/shortcuts/bindings';
import { SHORTCUT_LABELS } from '@/components/ui/shortcuts/shortcut-dialog';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { SHORTCUTS, type ShortcutId, useExclusiveKeys, useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const ids = Object.keys(SHORTCUTS) as ShortcutId[];

let acted: ShortcutId[] = [];
beforeEach(() => {
  acted = [];
});
afterEach(() => {
  vi.useRealTimers();
  cleanup();
});

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
  await screen.findByRole('heading', { name: 'Keyboard shortcuts' });
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

it('two keys in a row act for their shortcut alone, and the first by itself once the second is late or another', () => {
  vi.useFakeTimers();
  render(<Acting ids={['page.agents', 'page.settings', 'request.allow', 'log.first']} />);
  press('a');
  press('g');
  vi.advanceTimersByTime(999);
  press('a');
  press('a');
  expect(acted.splice(0)).toEqual(['request.allow', 'page.agents', 'request.allow']);
  press('g');
  press('Shift');
  press(',');
  vi.advanceTimersByTime(1_000);
  expect(acted.splice(0)).toEqual(['page.settings']);
  press('g');
  expect(acted).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(acted.splice(0)).toEqual(['log.first']);
  press('g');
  press('g');
  expect(acted.splice(0)).toEqual(['log.first']);
  press('x');
  expect(acted.splice(0)).toEqual(['log.first']);
  vi.advanceTimersByTime(1_000);
  expect(acted).toEqual([]);
});

it('two keys do nothing while typing, with a pause of a second, with another key between, or over a dialog', async () => {
  vi.useFakeTimers();
  render(
    <>
      <Acting ids={['page.agents']} />
      <Page />
    </>,
  );
  const field = screen.getByLabelText('field');
  press('g', field);
  press('a', field);
  press('a');
  press('g');
  vi.advanceTimersByTime(1_000);
  press('a');
  press('g');
  press('x');
  press('a');
  press('g', document.body, { ctrlKey: true });
  press('a');
  vi.useRealTimers();
  press('?');
  await waitFor(() => expect(document.querySelector('dialog')?.open).toBe(true));
  press('g');
  press('a');
  expect(acted).toEqual([]);
});
