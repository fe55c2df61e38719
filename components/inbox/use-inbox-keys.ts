'use client';

import type { RefObject } from 'react';
import type { CardKeys } from '@/components/requests/request-board';
import { focusRow, focusSearch, goTo, rowsIn } from '@/components/ui/focus-row';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { isTyping, useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import type { InboxOwner } from './use-inbox-owners';

export const ROW = '[data-inbox-row]';

/** Time at which the focus left a row that someone else resolved. */
let movedAt = Number.NEGATIVE_INFINITY;
/** Digest of the request that the reader's last key or answer focused. Its keys skip the misclick guard. */
let aimedAt: string | undefined;

/**
 * Focuses the next row that is not done, else the one before. Scrolls only for a reader who uses keys.
 *
 * @param isOwn true if the reader has just answered the row
 */
export function focusAfter(row: HTMLElement, isOwn: boolean): void {
  const all = rowsIn(row.closest<HTMLElement>('[data-inbox]'), ROW);
  const at = all.indexOf(row);
  const next = [...all.slice(at), ...all.slice(0, at).reverse()].find(({ dataset }) => dataset.done === undefined);
  if (next === undefined) return;
  aimedAt = isOwn ? next.dataset.digest : undefined;
  if (!isOwn) movedAt = performance.now();
  next.focus({ preventScroll: true });
  if (next.matches(':focus-visible')) next.scrollIntoView({ block: 'nearest' });
}

/** Actions of keys on the focused row. */
interface KeyActions {
  unfold: (owner: InboxOwner) => void;
  select: (owner: InboxOwner) => void;
  seen: (owner: InboxOwner) => void;
  claim: (owner: InboxOwner) => void;
  snooze: (owner: InboxOwner) => void;
}

/**
 * j/k and the arrows move through the inbox. Letters act on the selected rows, else on the focused one. "r" cycles
 * through the requests.
 */
export function useInboxKeys(options: {
  list: RefObject<HTMLElement | null>;
  find: (id: string) => InboxOwner | undefined;
  actions: KeyActions;
  /** Actions on the selected rows, which take the place of those on the focused row; null if none is selected. */
  selection: Record<keyof Omit<KeyActions, 'select'> | keyof CardKeys, () => unknown> | null;
  field: RefObject<HTMLInputElement | null>;
  /** Clears the selection, then the search. @returns false if there is neither */
  onClear: () => false | undefined;
  /** Unfolds the row. */
  open: (owner: InboxOwner) => void;
  /** Opens the review of all requests. @returns false if there is none */
  review: () => unknown;
  /** Presses a button of the row's first request; see `CardKeys`. @returns false if there is none */
  answer: (owner: InboxOwner, key: keyof CardKeys, isMeant: boolean) => boolean;
}): void {
  const { list, find, actions, selection, field, onClear, open, review, answer } = options;
  const rows = () => rowsIn(list.current, ROW);
  const focusedRow = () => document.activeElement?.closest<HTMLElement>(ROW) ?? null;
  /** True while the focus is beside the list, such as in the sidebar. */
  const isAway = () => {
    const { activeElement: focused } = document;
    return !focused?.contains(list.current) && !list.current?.contains(focused);
  };
  const moveTo = (move: () => false | undefined) => () => {
    const isMoved = move();
    aimedAt = focusedRow()?.dataset.digest;
    return isMoved;
  };
  const act = (what: keyof KeyActions) => () => {
    if (selection !== null && what !== 'select') return selection[what]();
    const owner = find(focusedRow()?.dataset.inboxRow ?? '');
    if (owner === undefined || owner.open.length === 0) return false;
    actions[what](owner);
  };
  const answerWith = (key: keyof CardKeys) => () => {
    if (selection !== null) return isAway() ? false : selection[key]();
    const owner = find(focusedRow()?.dataset.inboxRow ?? '');
    const isMeant = aimedAt !== undefined && aimedAt === owner?.lead.request?.digest;
    // The press was aimed at the row before.
    if (!isMeant && performance.now() - movedAt < SETTLE_MS) return;
    return owner !== undefined && owner.open.length > 0 && answer(owner, key, isMeant);
  };
  const nextRequest = () => {
    const requests = rows().filter(({ dataset }) => {
      const owner = find(dataset.inboxRow ?? '');
      return owner?.lead.doneAt === null && owner.lead.request !== null;
    });
    const next = requests[(requests.indexOf(focusedRow() as HTMLElement) + 1) % Math.max(1, requests.length)];
    const owner = find(next?.dataset.inboxRow ?? '');
    if (owner !== undefined) open(owner);
    return goTo(next);
  };
  useShortcuts(
    {
      'list.search': () => field.current !== null && focusSearch(field.current),
      'inbox.next': moveTo(() => focusRow(rows(), 1)),
      'inbox.previous': moveTo(() => focusRow(rows(), -1)),
      'inbox.open': () => {
        const row = document.activeElement;
        if (!row?.matches(ROW)) return false;
        row.querySelector<HTMLElement>('a, [aria-expanded]')?.click();
      },
      'inbox.unfold': act('unfold'),
      'inbox.select': act('select'),
      'inbox.seen': act('seen'),
      'inbox.claim': act('claim'),
      'inbox.snooze': act('snooze'),
      'inbox.leave-search': (event) => {
        if (event.target === field.current) list.current?.focus({ preventScroll: true });
        else return isTyping(event) ? false : onClear();
      },
      'inbox.next-request': moveTo(nextRequest),
      'inbox.review': review,
      'request.allow': answerWith('allow'),
      'request.deny': answerWith('deny'),
    },
    { area: list, leads: true },
  );
}
