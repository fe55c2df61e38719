'use client';

import { type RefObject, useEffect, useEffectEvent, useLayoutEffect } from 'react';
import { isTyping } from '../is-typing';
import { isPress, type ShortcutId, shortcutOf } from './shortcut-list';

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
function hear(event: KeyboardEvent): void {
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
    !(event.key.length === 1 && isOnWhatWent(event))
  );
}

/** What was typed into a field is meant for nothing else, though the field has gone in the middle of it. */
function isOnWhatWent({ target }: Event): boolean {
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
    return hearIn({ area, leads, act: (event, hasFocus) => act(event, hasFocus) });
  }, [area, leads]);
}

function hearIn(group: Group): () => void {
  if (groups.size === 0) document.addEventListener('keydown', hear);
  groups.add(group);
  return () => {
    groups.delete(group);
    if (groups.size === 0) document.removeEventListener('keydown', hear);
  };
}

/** An area whose keys are its own: while the focus is in it, only what acts everywhere does, whatever it stands in. */
export function useOwnKeys(area: RefObject<HTMLElement | null>, isOn = true): void {
  useEffect(() => (isOn ? hearIn({ area, leads: false, owns: true, act: () => false }) : undefined), [area, isOn]);
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
