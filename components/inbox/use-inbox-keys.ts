'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import type { RefObject } from 'react';
import type { CardKeys } from '@/components/requests/request-board';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const ROW = '[data-inbox-row]';

/** Actions of keys on the focused row. */
interface KeyActions {
  unfold: (item: InboxItem) => void;
  select: (item: InboxItem) => void;
  seen: (item: InboxItem) => void;
  claim: (item: InboxItem) => void;
  snooze: (item: InboxItem) => void;
}

/**
 * j/k and the arrows move through the inbox, and letters act on the focused row. "r" cycles through the requests.
 */
export function useInboxKeys(options: {
  list: RefObject<HTMLElement | null>;
  find: (id: string) => InboxItem | undefined;
  actions: KeyActions;
  /** Unfolds the item. */
  open: (item: InboxItem) => void;
  /** Presses a button of the item's card. @returns false if there is no card */
  answer: (item: InboxItem, key: keyof CardKeys) => boolean;
}): void {
  const { list, find, actions, open, answer } = options;
  const rows = () => [...(list.current?.querySelectorAll<HTMLElement>(ROW) ?? [])];
  const focusedRow = () => document.activeElement?.closest<HTMLElement>(ROW) ?? null;
  const go = (row: HTMLElement | undefined) => {
    if (row === undefined) return false;
    row.focus();
    row.scrollIntoView({ block: 'nearest' });
  };
  const move = (step: 1 | -1) => {
    const all = rows();
    const index = all.indexOf(focusedRow() as HTMLElement);
    return go(index < 0 ? (step > 0 ? all[0] : all.at(-1)) : all[Math.min(all.length - 1, Math.max(0, index + step))]);
  };
  const act = (what: keyof KeyActions) => () => {
    const item = find(focusedRow()?.dataset.inboxRow ?? '');
    if (item === undefined || item.doneAt !== null) return false;
    actions[what](item);
  };
  const answerWith = (key: keyof CardKeys) => () => {
    const item = find(focusedRow()?.dataset.inboxRow ?? '');
    return item !== undefined && item.doneAt === null && answer(item, key);
  };
  const nextRequest = () => {
    const requests = rows().filter(({ dataset }) => {
      const item = find(dataset.inboxRow ?? '');
      return item?.doneAt === null && item.request !== null;
    });
    const next = requests[(requests.indexOf(focusedRow() as HTMLElement) + 1) % Math.max(1, requests.length)];
    const item = find(next?.dataset.inboxRow ?? '');
    if (item !== undefined) open(item);
    return go(next);
  };
  useShortcuts(
    {
      'inbox.next': () => move(1),
      'inbox.previous': () => move(-1),
      'inbox.unfold': act('unfold'),
      'inbox.select': act('select'),
      'inbox.seen': act('seen'),
      'inbox.claim': act('claim'),
      'inbox.snooze': act('snooze'),
      'inbox.next-request': nextRequest,
      'request.allow': answerWith('allow'),
      'request.deny': answerWith('deny'),
    },
    { area: list, leads: true },
  );
}
