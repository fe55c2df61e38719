import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { noItems } from '@interlude/protocol/vocabulary';
import { expect, it } from 'vitest';
import { itemsOf } from '@/components/inbox/inbox-items';
import { ownersOf } from '@/components/inbox/use-inbox-owners';
import { ALL, FleetStore } from '@/components/live/fleet-store';
import type { ShownList } from '@/components/live/row-table';
import { anInboxItem } from './rows';

const NEXT = 'permission.1.i';

/** A page with this initial list. */
function shown(list: Partial<InboxList>) {
  const fleet = new FleetStore();
  itemsOf(fleet).putList({ position: '10', items: [], next: null, counts: noItems(), ...list });
  return {
    fleet,
    now: () => fleet.inbox.list(ALL) as ShownList<InboxItem>,
    news: (id: string, fields: Partial<InboxItem>) =>
      fleet.applyFrames([{ event: 'inbox', id, data: anInboxItem({ ...fields, updatedPosition: id }) }]),
  };
}

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

it('keeps the list when the same rows are read again, as a page does that starts over to render', () => {
  const items = [anInboxItem({ id: 'a' }), anInboxItem({ id: 'b' })];
  const { fleet, now } = shown({ items });
  const before = now();
  itemsOf(fleet).putList({ position: '10', items, next: null, counts: noItems() });
  expect(now()).toBe(before);
  itemsOf(fleet).putList({
    position: '11',
    items: [...items, anInboxItem({ id: 'c' })],
    next: null,
    counts: noItems(),
  });
  expect(now().rows).toHaveLength(3);
});

it('keeps the owners that a change leaves as they are', () => {
  const [one, two, other] = ['a', 'b', 'c'].map((id) => anInboxItem({ id, sessionId: id === 'c' ? 's2' : 's1' })) as [
    InboxItem,
    InboxItem,
    InboxItem,
  ];
  const needing = new Set(['a', 'b', 'c']);
  const before = ownersOf([one, two, other], needing, '', new Map());
  const after = ownersOf([one, { ...two, seenAt: 9 }, other], needing, '', before);
  expect(after.get('session s2')).toBe(before.get('session s2'));
  expect(after.get('session s1')).not.toBe(before.get('session s1'));
  expect(ownersOf([one, two, other], new Set(['a', 'b']), '', before).get('session s2')).toMatchObject({
    needsYou: false,
  });
});
