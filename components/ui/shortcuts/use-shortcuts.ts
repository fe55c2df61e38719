'use client';

import { type RefObject, useEffect, useEffectEvent, useLayoutEffect } from 'react';

/** What a shortcut does. @returns false if there is nothing to do: then the key is somebody else's */
type Act = (event: KeyboardEvent) => unknown;
type Acts = Partial<Record<ShortcutId, Act | null>>;

/** Shortcuts that are handled together. */
interface Group {
  /** Where they act; left out for those of the page itself. */
  area: RefObject<HTMLElement | null> | undefined;
  /** They act wherever no other area has the focus. */
  leads: boolean;
  /** No area around it acts while the focus is in it. */
  owns?: boolean;
  act: (event: KeyboardEvent, hasFocus: boolean) => boolean;
}

const groups = new Set<Group>();
let openDialogs = 0;

/**
 * Hears every key. First come the areas that have the focus, from within, then who leads, then what acts everywhere.
 */
function dispatch(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const { target } = event;
  const focused = [...groups]
    .filter(({ area }) => target instanceof Node && area?.current?.contains(target))
    .sort((a, b) => (a.area?.current?.contains(b.area?.current ?? null) ? 1 : -1));
  const owner = focused.findIndex(({ owns }) => owns === true);
  const heard = owner === -1 ? focused : focused.slice(0, owner + 1);
  const rank = (group: Group) => {
    if (focused.includes(group)) return focused.indexOf(group) - focused.length;
    return !group.leads ? 2 : group.area === undefined ? 1 : 0;
  };
  for (const group of [...groups].sort((a, b) => rank(a) - rank(b))) {
    const hasFocus = heard.includes(group) || (focused.length === 0 && group.leads);
    if (!group.act(event, hasFocus)) continue;
    event.preventDefault();
    return;
  }
}

function mayAct(id: ShortcutId, event: KeyboardEvent, hasFocus: boolean): boolean {
  const { everywhere, whileTyping, overDialogs } = shortcutOf(id);
  return (
    isPress(id, event) &&
    (hasFocus || everywhere === true) &&
    (openDialogs === 0 || overDialogs === true) &&
    (!isTyping(event) || whileTyping === true) &&
    !(event.key === 'Enter' && isOnControl(event)) &&
    !(event.key.length === 1 && isOnRemovedField(event))
  );
}

/** What was typed into a field is meant for nothing else, though the field has gone in the middle of it. */
function isOnRemovedField({ target }: Event): boolean {
  return target instanceof Element && target.closest('[data-gone]') !== null;
}

/** Enter on a control is the control's. */
function isOnControl({ target }: Event): boolean {
  return target instanceof Element && target.closest('a, button, [role=radio], [role=switch]') !== null;
}

/**
 * Handles shortcuts, each as it is declared in the list of them.
 *
 * @param options `area`: they act while the focus is in it, and then no other ones do but those that act everywhere.
 *   `leads`: also while it is in no other area. Without an area they are the page's own, and lead.
 */
export function useShortcuts(
  acts: Acts,
  options: { area?: RefObject<HTMLElement | null>; leads?: boolean } = {},
): void {
  const { area, leads = area === undefined } = options;
  const act = useEffectEvent((event: KeyboardEvent, hasFocus: boolean) =>
    (Object.keys(acts) as ShortcutId[]).some((id) => {
      const handle = acts[id];
      return handle != null && mayAct(id, event, hasFocus) && handle(event) !== false;
    }),
  );
  useEffect(() => {
    return register({ area, leads, act: (event, hasFocus) => act(event, hasFocus) });
  }, [area, leads]);
}

function register(group: Group): () => void {
  if (groups.size === 0) document.addEventListener('keydown', dispatch);
  groups.add(group);
  return () => {
    groups.delete(group);
    if (groups.size === 0) document.removeEventListener('keydown', dispatch);
  };
}

/** An area whose keys are its own: while the focus is in it, only what acts everywhere does, whatever it stands in. */
export function useExclusiveKeys(area: RefObject<HTMLElement | null>, isOn = true): void {
  useEffect(() => (isOn ? register({ area, leads: false, owns: true, act: () => false }) : undefined), [area, isOn]);
}

/** For a component that is there while a dialog is open: only what says so acts over it. */
export function useOpenDialog(): void {
  // taken back in the commit that takes the dialog away, so that the very next key is heard
  useLayoutEffect(() => {
    openDialogs += 1;
    return () => {
      openDialogs -= 1;
    };
  }, []);
}

/** What can be done with a key. */
interface Shortcut {
  /** As `keyName` names them. */
  keys: readonly string[];
  /** It acts wherever the focus is, and not only where it is handled or where no other keys are. */
  everywhere?: true;
  /** It acts in a field, too. */
  whileTyping?: true;
  /** It acts while a dialog is open, too. */
  overDialogs?: true;
  /** Once a press: a key that is held was meant for the first step. */
  once?: true;
}

/** All of them. What each does is said in `SHORTCUT_WORDS`, which come with the list that "?" shows. */
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
  // Nobody presses it while they mean something else, as they do Esc, which leads out of fields, lists and panes.
  'turn.interrupt': { keys: ['Control+.', 'Meta+.'], everywhere: true, whileTyping: true, once: true },
  'log.search': { keys: ['/'] },
  'log.clear-search': { keys: ['Escape'], once: true },
  'log.next-hit': { keys: ['n'] },
  'log.previous-hit': { keys: ['N'] },
  'log.follow': { keys: ['f'] },
  'log.wrap': { keys: ['w'] },
  'log.level': { keys: ['1', '2', '3', '4', '5'] },
  'log.first': { keys: ['g'] },
  'log.last': { keys: ['G'] },
  'log.next': { keys: ['j'] },
  'log.previous': { keys: ['k'] },
  'log.unfold': { keys: ['Enter'] },
  // One step out, and out of here is the transcript, not the list of sessions.
  'log.leave': { keys: ['Escape'], once: true },
  'inbox.next-request': { keys: ['r'], everywhere: true, once: true },
  'inbox.next': { keys: ['j', 'ArrowDown'] },
  'inbox.previous': { keys: ['k', 'ArrowUp'] },
  'inbox.unfold': { keys: ['o'], once: true },
  'inbox.select': { keys: ['x'], once: true },
  'inbox.seen': { keys: ['s'], once: true },
  'inbox.claim': { keys: ['c'], once: true },
  'inbox.snooze': { keys: ['z'], once: true },
  'request.allow': { keys: ['a'], once: true },
  'request.deny': { keys: ['d'], once: true },
  help: { keys: ['?'], everywhere: true, overDialogs: true, once: true },
} as const satisfies Record<string, Shortcut>;

export type ShortcutId = keyof typeof SHORTCUTS;

function shortcutOf(id: ShortcutId): Shortcut {
  return SHORTCUTS[id];
}

type Press = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

/** `Control+.`; of a sign that is typed with Shift only the sign. */
function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }: Press): string {
  const held = [ctrlKey && 'Control', metaKey && 'Meta', altKey && 'Alt', shiftKey && key.length > 1 && 'Shift'];
  return [...held, key].filter(Boolean).join('+');
}

/** For a key that only an element hears. */
export function isPress(id: ShortcutId, event: Press & Pick<KeyboardEvent, 'repeat'>): boolean {
  const { keys, once } = shortcutOf(id);
  return keys.includes(keyName(event)) && !(once && event.repeat);
}

/** What is ticked or pressed is no field: no letter is meant for it. */
const FIELD = 'input:not([type=button], [type=checkbox], [type=radio]), textarea, select';

/** Whether a key belongs to a field, so that single-letter shortcuts keep out of it. */
export function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  // Arrows lead from one of several to the next.
  const isChosen = key.startsWith('Arrow') && target.matches('[type=radio]');
  return isChosen || target.isContentEditable || target.matches(FIELD);
}
