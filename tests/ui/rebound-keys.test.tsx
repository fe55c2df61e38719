// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { conflictOf, ownKey, ShortcutsPage } from '@/components/settings/shortcuts-page';
import { setPerson, storageKey, writeStored } from '@/components/ui/browser-storage';
import { BINDINGS_KEY, boundKeys } from '@/components/ui/shortcuts/bindings';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { SHORTCUTS, type ShortcutId, useKeyTitle, useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { NextPage } from '../support/next-page';
import { layOut, settle } from './laid-out';

let acted: string[] = [];
beforeEach(() => {
  acted = [];
  setPerson('grace');
  localStorage.clear();
  act(() => writeStored(BINDINGS_KEY, ''));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  cleanup();
});

const ids = Object.keys(SHORTCUTS) as ShortcutId[];
const NONE = { isLettersOff: false, keys: {} };

function Page() {
  const note = (id: string) => () => void acted.push(id);
  useShortcuts({
    'inbox.claim': note('claim'),
    'inbox.seen': note('seen'),
    'inbox.next': note('next'),
    'turn.interrupt': note('interrupt'),
  });
  return (
    <>
      <p>{useKeyTitle('Claim', 'inbox.claim')}</p>
      <input aria-label="field" />
      <ShortcutHelp />
      <ShortcutsPage />
    </>
  );
}

const press = (key: string, on: Element = document.body, more: object = {}) =>
  fireEvent.keyDown(on, { key, cancelable: true, bubbles: true, ...more });

/** Presses the button of a shortcut in the inbox's section, then a key. */
function rebind(what: string, key: string, more: object = {}) {
  const button = screen.getByRole('button', { name: new RegExp(`^${what}: `) });
  button.focus();
  fireEvent.click(button);
  press(key, screen.getByRole('button', { name: `Press the new key for “${what}”` }), more);
}
const CLAIM = 'Claim or release';
const keyOf = (what: string) => screen.getByRole('button', { name: new RegExp(`^${what}: `) }).textContent;
const stored = () => JSON.parse(localStorage.getItem(storageKey(BINDINGS_KEY)) || '{}');

it('acts on the new key instead of the old one, and shows it in hints and in the dialog', async () => {
  render(<Page />);
  expect(screen.getByText('Claim (c)')).toBeDefined();
  rebind(CLAIM, 'y');
  expect(acted).toEqual([]);
  press('c');
  press('y');
  expect(acted).toEqual(['claim']);
  expect(screen.getByText('Claim (y)')).toBeDefined();
  expect(stored()).toMatchObject({ keys: { 'inbox.claim': 'y' } });
  press('?');
  const dialog = within(await screen.findByRole('dialog', { hidden: true }));
  expect(dialog.getByText(CLAIM).parentElement?.textContent).toBe(`${CLAIM}y`);
});

it('refuses a key of the same place with the name of its shortcut, until that is rebound', async () => {
  vi.useFakeTimers();
  layOut();
  render(<Page />);
  rebind(CLAIM, 's');
  expect(screen.getByText('s is already “Mark as seen or unseen” (Inbox).')).toBeDefined();
  press('s');
  press('c', document.body);
  expect(acted).toEqual(['seen', 'claim']);
  press('Escape', screen.getByRole('button', { name: `Press the new key for “${CLAIM}”` }));
  rebind('Mark as seen or unseen', 'y');
  rebind(CLAIM, 's');
  expect(keyOf(CLAIM)).toBe('s');
  // the default of one is now the key of the other
  fireEvent.click(screen.getByRole('button', { name: 'Reset “Mark as seen or unseen”' }));
  expect(screen.getByText(`s is already “${CLAIM}” (Inbox).`)).toBeDefined();
  await act(settle);
  fireEvent.click(screen.getByRole('button', { name: 'Reset all' }));
  expect(keyOf(CLAIM)).toBe('s');
  await act(settle);
  fireEvent.click(screen.getByRole('button', { name: 'Press again to reset 2 shortcuts' }));
  expect([keyOf(CLAIM), keyOf('Mark as seen or unseen')]).toEqual(['c', 's']);
});

it('takes keys with modifiers, cancels on Escape, and refuses keys that move or submit', () => {
  render(<Page />);
  rebind(CLAIM, 'k', { altKey: true });
  expect(keyOf(CLAIM)).toBe('Alt+k');
  press('k', document.body, { altKey: true });
  expect(acted).toEqual(['claim']);
  rebind(CLAIM, 'Escape');
  expect(keyOf(CLAIM)).toBe('Alt+k');
  rebind(CLAIM, 'ArrowDown');
  expect(screen.getByText('↓ can’t be a shortcut. Press another key.')).toBeDefined();
});

it('types a rebound key in a field', () => {
  render(<Page />);
  rebind(CLAIM, 'y');
  const field = screen.getByLabelText('field');
  expect(press('y', field)).toBe(true);
  expect(acted).toEqual([]);
});

it('turns single-key shortcuts off, but not keys with a modifier or arrows', () => {
  render(<Page />);
  rebind('Mark as seen or unseen', 'k', { altKey: true });
  fireEvent.click(screen.getByRole('switch', { name: 'Single-key shortcuts' }));
  for (const key of ['c', 's', 'j', '?']) press(key);
  expect([acted, document.querySelector('dialog')]).toEqual([[], null]);
  press('k', document.body, { altKey: true });
  press('ArrowDown');
  press('.', document.body, { ctrlKey: true });
  expect(acted).toEqual(['seen', 'next', 'interrupt']);
  expect(screen.getByText('Claim')).toBeDefined();
});

it('follows a change in another tab, and ignores what it can’t read', () => {
  render(<Page />);
  const change = (value: string) =>
    act(() => {
      localStorage.setItem(storageKey(BINDINGS_KEY), value);
      dispatchEvent(new StorageEvent('storage'));
    });
  change(JSON.stringify({ keys: { 'inbox.claim': 'y' } }));
  press('y');
  expect([acted, keyOf(CLAIM)]).toEqual([['claim'], 'y']);
  for (const broken of ['{', '[]', '{"keys":{"inbox.claim":7}}', 'null']) {
    change(broken);
    expect(keyOf(CLAIM)).toBe('c');
  }
});

it('has no conflict among the defaults, and keeps arrows, Esc and the digits of levels', () => {
  for (const id of ids) {
    const key = ownKey(id);
    if (key !== null) expect([id, conflictOf(id, key, NONE)]).toEqual([id, null]);
  }
  expect([ownKey('log.level'), ownKey('log.leave'), ownKey('message.send')]).toEqual([null, null, null]);
  expect(boundKeys('x', ['j', 'ArrowDown'], { isLettersOff: false, keys: { x: 'y' } })).toEqual(['y', 'ArrowDown']);
  expect(boundKeys('x', ['g i', 'Control+.'], { isLettersOff: true, keys: {} })).toEqual(['Control+.']);
});

it('lists the shortcuts of the page first, and leaves the focus on the title', async () => {
  history.replaceState(null, '', '/inbox?kind=failure');
  render(
    <NextPage>
      <ShortcutHelp />
    </NextPage>,
  );
  press('?');
  const dialog = within(await screen.findByRole('dialog', { name: 'Keyboard shortcuts' }));
  const title = dialog.getByRole('heading', { level: 2 });
  await waitFor(() => expect(document.activeElement).toBe(title));
  const places = dialog.getAllByRole('heading', { level: 3 }).map(({ textContent }) => textContent);
  expect(places.slice(0, 3)).toEqual(['Inbox', 'Inbox and agents', 'On a request or its inbox row']);
  expect(new Set(places).size).toBe(places.length);
});
