'use client';

import { type RefObject, useEffect, useEffectEvent, useLayoutEffect } from 'react';
import { flushSync } from 'react-dom';
import { useMedia } from '../use-media';
import { useStoredAnywhere } from '../use-stored-anywhere';
import { BINDINGS_KEY, bindingsOf, boundKeys, keyLabel } from './bindings';

interface Shortcut {
  /** In the format of `keyName`. `g i`: two keys, one after the other. */
  keys: readonly string[];
  /** Acts wherever the focus is, not only in its area. */
  everywhere?: true;
  /** Acts in form fields, too. */
  whileTyping?: true;
  /** Acts while a dialog is open, too. */
  overDialogs?: true;
  /** Ignores key repeat. */
  once?: true;
}

/** All shortcuts. Their descriptions load with the dialog. */
export const SHORTCUTS = {
  'sessions.search': { keys: ['/'], everywhere: true },
  'sessions.first-found': { keys: ['ArrowDown'], everywhere: true, whileTyping: true },
  'sessions.next': { keys: ['j', 'ArrowDown'] },
  'sessions.previous': { keys: ['k', 'ArrowUp'] },
  'sessions.open': { keys: ['Enter'] },
  'sessions.leave-search': { keys: ['Escape'] },
  'transcript.next': { keys: ['j'] },
  'transcript.previous': { keys: ['k'] },
  'transcript.next-woken': { keys: ['w'] },
  'transcript.previous-woken': { keys: ['W'] },
  'transcript.page-down': { keys: ['PageDown'] },
  'transcript.page-up': { keys: ['PageUp'] },
  'transcript.latest': { keys: ['G', 'End'] },
  'transcript.first': { keys: ['Home'] },
  'transcript.log': { keys: ['l'], everywhere: true },
  'transcript.in-log': { keys: ['L'], everywhere: true },
  'session.why': { keys: ['E'], everywhere: true, once: true },
  'session.arrange': { keys: ['M'], everywhere: true, once: true },
  'transcript.leave': { keys: ['Escape'], everywhere: true, once: true },
  'message.write': { keys: ['c'], everywhere: true },
  'message.send': { keys: ['Enter'] },
  'message.new-line': { keys: ['Shift+Enter'] },
  'message.sent-before': { keys: ['ArrowUp'] },
  'message.leave': { keys: ['Escape'] },
  // Esc is not used, because people press it to leave fields, lists and panes.
  'turn.interrupt': { keys: ['Control+.', 'Meta+.'], everywhere: true, whileTyping: true, once: true },
  'list.search': { keys: ['/'] },
  'log.search': { keys: ['/'] },
  'log.clear-search': { keys: ['Escape'], once: true },
  'log.next-hit': { keys: ['n'] },
  'log.previous-hit': { keys: ['N'] },
  'log.previous-error': { keys: ['e'], once: true },
  'log.next-error': { keys: ['E'], once: true },
  'log.follow': { keys: ['f'] },
  'log.wrap': { keys: ['w'] },
  'log.level': { keys: ['1', '2', '3', '4', '5'] },
  'log.first': { keys: ['g'] },
  'log.last': { keys: ['G'] },
  'log.next': { keys: ['j'] },
  'log.previous': { keys: ['k'] },
  'log.unfold': { keys: ['Enter'] },
  // Leads to the transcript, not to the list of sessions.
  'log.leave': { keys: ['Escape'], once: true },
  'inbox.next-request': { keys: ['r'], everywhere: true, once: true },
  'inbox.review': { keys: ['R'], once: true },
  'inbox.next': { keys: ['j', 'ArrowDown'] },
  'inbox.previous': { keys: ['k', 'ArrowUp'] },
  'inbox.open': { keys: ['Enter'] },
  'inbox.unfold': { keys: ['o'], once: true },
  'inbox.select': { keys: ['x'], once: true },
  'inbox.seen': { keys: ['s'], once: true },
  'inbox.claim': { keys: ['c'], once: true },
  'inbox.snooze': { keys: ['z'], once: true },
  'inbox.leave-search': { keys: ['Escape'], whileTyping: true, once: true },
  'request.allow': { keys: ['a'], everywhere: true, once: true },
  'request.deny': { keys: ['d'], everywhere: true, once: true },
  'board.next': { keys: ['j', 'ArrowDown'] },
  'board.previous': { keys: ['k', 'ArrowUp'] },
  'board.select': { keys: ['x'], once: true },
  'board.open': { keys: ['Enter'], once: true },
  'board.leave-search': { keys: ['Escape'], whileTyping: true, once: true },
  'page.inbox': { keys: ['g i'], everywhere: true },
  'page.sessions': { keys: ['g s'], everywhere: true },
  'page.agents': { keys: ['g a'], everywhere: true },
  'page.settings': { keys: ['g ,'], everywhere: true },
  'sidebar.toggle': { keys: ['['], everywhere: true, once: true },
  help: { keys: ['?'], everywhere: true, overDialogs: true, once: true },
} as const satisfies Record<string, Shortcut>;

export type ShortcutId = keyof typeof SHORTCUTS;
export type PageShortcut = Extract<ShortcutId, `page.${string}`>;

function shortcutOf(id: ShortcutId): Shortcut {
  return SHORTCUTS[id];
}

type Press = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

/** `Control+.`. For a character typed with Shift, the character alone. */
export function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }: Press): string {
  const held = [ctrlKey && 'Control', metaKey && 'Meta', altKey && 'Alt', shiftKey && key.length > 1 && 'Shift'];
  return [...held, key].filter(Boolean).join('+');
}

/**
 * True if the event is the shortcut's key, for handlers on an element.
 *
 * @param pressed with the key before it, for shortcuts of two keys
 */
export function isPress(
  id: ShortcutId,
  event: Press & Pick<KeyboardEvent, 'repeat'>,
  pressed = keyName(event),
): boolean {
  const { keys, once } = shortcutOf(id);
  return boundKeys(id, keys, bindingsOf()).includes(pressed) && !(once && event.repeat);
}

/** The shortcut's keys as printed, the reader's own if there are any; empty if it is off. */
export function useKeyLabels(id: ShortcutId): string[] {
  const [stored] = useStoredAnywhere(BINDINGS_KEY);
  return boundKeys(id, SHORTCUTS[id].keys, bindingsOf(stored)).map(keyLabel);
}

/** Returns a function that adds one of the shortcut's keys to a title, except on a touch screen: `Why? (E)`. */
export function useTitleWithKey(id: ShortcutId): (title: string, index?: number) => string {
  const keys = useKeyLabels(id);
  const isTouch = useMedia('(pointer: coarse)');
  return (title, index = 0) => (isTouch || keys[index] === undefined ? title : `${title} (${keys[index]})`);
}

/** A title with the shortcut's first key, except on a touch screen. */
export function useKeyTitle(title: string, id: ShortcutId): string {
  return useTitleWithKey(id)(title);
}

/** Form fields that take letters or arrow keys. */
const FIELD = 'input:not([type=button], [type=checkbox], [type=radio]), textarea, select';

/** True if a key press belongs to a form field, where single-letter shortcuts must not act. */
export function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  // Arrows select the next radio button.
  const isChosen = key.startsWith('Arrow') && target.matches('[type=radio]');
  return isChosen || target.isContentEditable || target.matches(FIELD);
}

/** @returns false if there is nothing to do: then another handler gets the key */
type Act = (event: KeyboardEvent) => unknown;
type Acts = Partial<Record<ShortcutId, Act | null>>;

/** Shortcuts registered by one component. */
interface Group {
  /** The area they act in; undefined for the whole page. */
  area: RefObject<HTMLElement | null> | undefined;
  /** Also acts while no other area has the focus. */
  leads: boolean;
  /** Enclosing areas don't act while the focus is in this one. */
  owns?: boolean;
  act: (event: KeyboardEvent, pressed: string, hasFocus: boolean) => boolean;
}

const groups = new Set<Group>();
let openDialogs = 0;

/** First key of every two-key shortcut, and the milliseconds allowed for the second. */
const FIRST_KEY = 'g';
const SECOND_KEY_MS = 1_000;
/** Dispatches the first key alone if no second key completes a two-key shortcut in time. */
let first: (() => void) | undefined;
let timer: ReturnType<typeof setTimeout>;

/** Dispatches every key press. Keys of a completed two-key shortcut trigger no other shortcut. */
function onKeyDown(event: KeyboardEvent): void {
  if (event.key === 'Shift' || event.isComposing) return;
  const pressed = keyName(event);
  const before = first;
  first = undefined;
  clearTimeout(timer);
  const isPair = before !== undefined && !event.defaultPrevented && dispatch(event, `${FIRST_KEY} ${pressed}`);
  if (isPair) return;
  // Flushes, so that the second key acts on the updated page.
  if (before !== undefined) flushSync(before);
  if (event.defaultPrevented) return;
  if (pressed !== FIRST_KEY || isTyping(event)) {
    dispatch(event, pressed);
    return;
  }
  first = () => {
    first = undefined;
    dispatch(event, pressed);
  };
  timer = setTimeout(first, SECOND_KEY_MS);
}

/**
 * Offers keys first to the areas with the focus, innermost first, then to leading groups, then to the rest.
 *
 * @returns true if a shortcut acted
 */
function dispatch(event: KeyboardEvent, pressed: string): boolean {
  const { target } = event;
  const focused = [...groups]
    .filter(({ area }) => target instanceof Node && area?.current?.contains(target))
    .sort((a, b) => (a.area?.current?.contains(b.area?.current ?? null) ? 1 : -1));
  const owner = focused.findIndex(({ owns }) => owns === true);
  const eligible = owner === -1 ? focused : focused.slice(0, owner + 1);
  const rank = (group: Group) => {
    if (focused.includes(group)) return focused.indexOf(group) - focused.length;
    return !group.leads ? 2 : group.area === undefined ? 1 : 0;
  };
  for (const group of [...groups].sort((a, b) => rank(a) - rank(b))) {
    const hasFocus = eligible.includes(group) || (focused.length === 0 && group.leads);
    if (!group.act(event, pressed, hasFocus)) continue;
    event.preventDefault();
    return true;
  }
  return false;
}

function mayAct(id: ShortcutId, event: KeyboardEvent, pressed: string, hasFocus: boolean): boolean {
  const { everywhere, whileTyping, overDialogs } = shortcutOf(id);
  return (
    isPress(id, event, pressed) &&
    (hasFocus || everywhere === true) &&
    (openDialogs === 0 || overDialogs === true) &&
    (!isTyping(event) || whileTyping === true) &&
    !(event.key === 'Enter' && isOnControl(event)) &&
    !(event.key.length === 1 && isOnRemovedField(event))
  );
}

/** A field disappeared while the reader was typing: the next keys are not shortcuts. */
function isOnRemovedField({ target }: Event): boolean {
  return target instanceof Element && target.closest('[data-gone]') !== null;
}

/** Enter activates the focused control. */
function isOnControl({ target }: Event): boolean {
  return target instanceof Element && target.closest('a, button, [role=radio], [role=switch]') !== null;
}

/**
 * Registers handlers of shortcuts while the component is mounted.
 *
 * @param options `area`: the shortcuts act while it has the focus. `leads`: they also act while no other area has the
 *   focus; defaults to true without an `area`
 */
export function useShortcuts(
  acts: Acts,
  options: { area?: RefObject<HTMLElement | null>; leads?: boolean } = {},
): void {
  const { area, leads = area === undefined } = options;
  const act = useEffectEvent<Group['act']>((event, pressed, hasFocus) =>
    (Object.keys(acts) as ShortcutId[]).some((id) => {
      const handle = acts[id];
      return handle != null && mayAct(id, event, pressed, hasFocus) && handle(event) !== false;
    }),
  );
  useEffect(() => {
    return register({ area, leads, act: (...press) => act(...press) });
  }, [area, leads]);
}

function register(group: Group): () => void {
  if (groups.size === 0) document.addEventListener('keydown', onKeyDown);
  groups.add(group);
  return () => {
    groups.delete(group);
    if (groups.size === 0) document.removeEventListener('keydown', onKeyDown);
  };
}

/** While the focus is in the area, shortcuts of enclosing areas don't act. */
export function useExclusiveKeys(area: RefObject<HTMLElement | null>, isOn = true): void {
  useEffect(() => (isOn ? register({ area, leads: false, owns: true, act: () => false }) : undefined), [area, isOn]);
}

/** Suspends shortcuts without `overDialogs` while the component is mounted. */
export function useOpenDialog(): void {
  // A layout effect, so that shortcuts work again in the commit that removes the dialog.
  useLayoutEffect(() => {
    openDialogs += 1;
    return () => {
      openDialogs -= 1;
    };
  }, []);
}
