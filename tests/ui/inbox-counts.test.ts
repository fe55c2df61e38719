import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { noItems } from '@interlude/protocol/vocabulary';
import { expect, it } from 'vitest';
import { itemsOf, type ListedItems } from '@/components/inbox/inbox-items';
import { FleetStore } from '@/components/live/fleet-store';
import { anInboxItem } from './rows';

const NEXT = 'permission.1.i';

/** A page with this initial list. */
function shown(list: Partial<InboxList>) {
  const fleet = new FleetStore();
  itemsOf(fleet).putList({ position: '10', items: [], next: null, counts: noItems(), ...list });
  return {
    fleet,
    now: () => itemsOf(fleet).listed as ListedItems,
    news: (id: string, fields: Partial<InboxItem>) =>
      fleet.applyFrames([{ event: 'inbox', id, data: anInboxItem({ ...fields, updatedPosition: id }) }]),
  };
}

it('uses the server’s counts while not all items are loaded', () => {
  const counts = { ...noItems(), permission: 230, 'delivery-gap': 6 };
  const { now } = shown({ items: [anInboxItem()], next: NEXT, counts });
  expect([now().counts, now().count, now().countsAreOld]).toEqual([counts, 236, false]);
});

it('counts done items, and refreshes counts for items that are not loaded', () => {
  const counts = { ...noItems(), permission: 230, 'delivery-gap': 6 };
  const { fleet, now, news } = shown({ items: [anInboxItem({ id: 'a' })], next: NEXT, counts });
  news('11', { id: 'a', seenAt: 5 });
  news('12', { id: 'a', doneAt: 6 });
  expect([now().counts, now().countsAreOld]).toEqual([{ ...counts, permission: 229 }, false]);
  news('13', { id: 'b', kind: 'delivery-gap' });
  expect(now().countsAreOld).toBe(true);
  itemsOf(fleet).setCounts({ counts: { ...counts, permission: 229, 'delivery-gap': 7 }, position: '13' });
  expect([now().counts['delivery-gap'], now().countsAreOld]).toEqual([7, false]);
});

it('counts the items themselves once all are loaded', () => {
  const { now, news } = shown({
    items: [anInboxItem({ id: 'a' }), anInboxItem({ id: 'b', kind: 'failure' })],
    counts: { ...noItems(), permission: 1, failure: 1 },
  });
  news('11', { id: 'c', kind: 'failure' });
  news('12', { id: 'a', doneAt: 6 });
  expect([now().counts, now().count]).toEqual([{ ...noItems(), failure: 2 }, 2]);
});

it('drops done items that are no longer shown', async () => {
  const { fleet, now, news } = shown({ items: [anInboxItem({ id: 'a' }), anInboxItem({ id: 'b' })] });
  const ids = () => now().rows.map(({ id }) => id);
  const first = itemsOf(fleet).retain(new Set(['a']));
  news('11', { id: 'a', doneAt: 5 });
  news('12', { id: 'b', doneAt: 5 });
  news('13', { id: 'never-here', doneAt: 5 });
  await Promise.resolve();
  expect(ids()).toEqual(['a']);
  first();
  const second = itemsOf(fleet).retain(new Set(['a', 'c']));
  await Promise.resolve();
  expect(ids()).toEqual(['a']);
  second();
  await Promise.resolve();
  expect([ids(), [...fleet.inbox.rows()]]).toEqual([[], []]);
});

it('ignores older reads of a dropped item, and restores it when it reopens', async () => {
  const { fleet, now, news } = shown({ items: [anInboxItem({ id: 'a' })], next: NEXT });
  news('20', { id: 'a', doneAt: 5 });
  await Promise.resolve();
  itemsOf(fleet).putFound({ position: '15', items: [anInboxItem({ id: 'a' })] });
  itemsOf(fleet).putList({ position: '15', items: [anInboxItem({ id: 'a' })], next: null, counts: noItems() }, NEXT);
  expect(now().rows).toEqual([]);
  news('21', { id: 'a' });
  expect(now().rows.map(({ id }) => id)).toEqual(['a']);
});
