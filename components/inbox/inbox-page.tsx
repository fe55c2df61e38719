'use client';

import { useSearchParams } from 'next/navigation';
import { useMemo, useRef } from 'react';
import { MoreRows } from '@/components/live/more-rows';
import { useStart } from '@/components/live/use-fleet';
import { HeldChanges } from '@/components/ui/held-changes';
import { useServerNow } from '@/components/ui/now';
import { useHeldOrder } from '@/components/ui/use-held-order';
import { useSelection } from '@/components/ui/use-selection';
import { INBOX_KINDS, type InboxItem, type InboxKind, type InboxList, isSnoozed } from '@/lib/protocol/inbox';
import { InboxBulk } from './inbox-bulk';
import { InboxRow } from './inbox-row';
import { KIND_WORD } from './inbox-words';
import type { Mark } from './item-actions';
import { KindFilter } from './kind-filter';
import { useInbox, useMarks } from './use-inbox';
import { usePerson } from './use-person';

const NOTHING: readonly InboxItem[] = [];
/** The groups, by what stands at their head. */
const GROUP_WORD = { ...KIND_WORD, snoozed: 'Snoozed' };
const GROUPS = [...INBOX_KINDS, 'snoozed'] as const;

/** Everything that needs a person: by kind, of each kind what waits longest first. */
export function InboxPage({ initial }: { initial: InboxList }) {
  useStart((fleet) => fleet.takeInbox(initial));
  const { list, more } = useInbox();
  const { mark, failure } = useMarks();
  const person = usePerson();
  const wanted = useSearchParams().getAll('kind') as InboxKind[];
  const rows = list?.rows ?? NOTHING;
  const open = useMemo(() => rows.filter(({ doneAt }) => doneAt === null), [rows]);
  const snoozed = useServerNow((now) =>
    JSON.stringify(open.filter((item) => isSnoozed(item, now)).map(({ id }) => id)),
  );
  const shown = wanted.join(' ');
  const order = useMemo(() => orderOf(open, new Set<string>(JSON.parse(snoozed)), shown), [open, snoozed, shown]);
  const box = useRef<HTMLDivElement>(null);
  const held = useHeldOrder(box, order, shown);
  const { selected, select, selectOnly } = useSelection();
  const byId = new Map(open.map((item) => [item.id, item]));
  const chosen = open.filter(({ id }) => selected.has(id));
  const make = (ids: string[], made: Mark) => {
    if (typeof made === 'object') return mark({ ids, mark: 'snoozed', until: made.snoozedUntil });
    if (made === 'taken-over') return mark({ ids, mark: 'claimed', by: person.sign(), takeOver: true });
    return made === 'claimed' ? mark({ ids, mark: made, by: person.sign() }) : mark({ ids, mark: made });
  };
  const groups = held.order
    .map(({ name, ids }) => ({ name, items: ids.flatMap((id) => byId.get(id) ?? []) }))
    .filter(({ items }) => items.length > 0);
  return (
    <div ref={box}>
      <KindFilter items={open} wanted={wanted} name={person.name} onRename={person.rename} />
      <p className="flex min-h-[1lh] items-baseline gap-3 pb-1 text-2xs">
        <HeldChanges moved={held.moved} added={held.added} onShow={held.letGo} />
        <span role="status" className="text-failed">
          {failure !== null && `Not marked: ${failure}`}
        </span>
      </p>
      {groups.length === 0 && <NothingNeedsYou isFiltered={wanted.length > 0 && open.length > 0} />}
      {groups.map(({ name: group, items }) => (
        <section key={group} aria-labelledby={`inbox-${group}`} className="pb-5">
          <h2 id={`inbox-${group}`} className="tabular flex gap-2 border-line border-b py-1 font-medium text-xs">
            {GROUP_WORD[group as keyof typeof GROUP_WORD]}
            <span className="text-ink-3">{items.length}</span>
          </h2>
          <ul>
            {items.map((item) => (
              <InboxRow
                key={item.id}
                item={item}
                person={person.id}
                isSelected={selected.has(item.id)}
                onSelect={(isSelected) => select(item.id, isSelected)}
                onMark={(made) => void make([item.id], made)}
              />
            ))}
          </ul>
        </section>
      ))}
      {list?.next != null && <MoreRows {...more} listed={open.length} count={list.count} what="items" />}
      {chosen.length > 0 && (
        <InboxBulk
          count={chosen.length}
          onMark={(made) =>
            void make(
              chosen.map(({ id }) => id),
              made,
            )
          }
          onNone={() => selectOnly([])}
        />
      )}
    </div>
  );
}

function NothingNeedsYou({ isFiltered }: { isFiltered: boolean }) {
  return (
    <p className="max-w-prose py-3 text-ink-2">
      {isFiltered
        ? 'Nothing of this kind needs you.'
        : 'Nothing needs you. Permissions and questions of agents, overdue replies, failures, lost agents and missing records show up here by themselves.'}
    </p>
  );
}

function orderOf(open: readonly InboxItem[], snoozed: ReadonlySet<string>, shown: string) {
  const wanted = new Set(shown.split(' ').filter(Boolean));
  const sorted = [...open].sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1));
  const groupOf = ({ id, kind }: InboxItem) => (snoozed.has(id) ? 'snoozed' : kind);
  return GROUPS.map((name) => ({
    name,
    ids: sorted
      .filter((item) => groupOf(item) === name && (wanted.size === 0 || wanted.has(item.kind)))
      .map(({ id }) => id),
  }));
}
