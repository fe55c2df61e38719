'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { INBOX_KINDS, noItems } from '@interlude/protocol/vocabulary';
import { useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { usePagePerson } from '@/components/access/page-person';
import { asShown } from '@/components/live/mark-items';
import { pressCard } from '@/components/requests/card-keys';
import { HeldChanges } from '@/components/ui/held-changes';
import { ListSearch } from '@/components/ui/list-search';
import { useServerNow } from '@/components/ui/now';
import type { CodeOnDemand } from '@/components/ui/on-demand';
import { useNewest } from '@/components/ui/use-newest';
import { useSelection } from '@/components/ui/use-selection';
import { InboxBulk } from './inbox-bulk';
import { InboxEnd } from './inbox-end';
import { type GroupName, InboxGroup } from './inbox-group';
import { InboxRow, type RowActs } from './inbox-row';
import { type Mark, snoozeForAnHour } from './item-actions';
import { KindFilter } from './kind-filter';
import { useMarks } from './use-inbox';
import { useInboxKeys } from './use-inbox-keys';
import type { RequestedItem } from './use-request';
import { useShownItems } from './use-shown-items';

/** What needs a person: by kind, of each kind what waits longest first. */
export function InboxRows({ requestCode }: { requestCode: CodeOnDemand<{ item: RequestedItem }> }) {
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const shown = useShownItems(box);
  const { list, open, byId, groups, held, wanted, text, setText, isSearched } = shown;
  const mayAct = useMayAct();
  const person = usePagePerson();
  const { mark, failure } = useMarks();
  const { selected, select, selectAll, selectOnly } = useSelection();
  const unfolded = useSelection();
  const [said, say] = useState('');
  const minute = useServerNow((now) => now - (now % 60_000));
  const chosen = open.filter(({ id }) => selected.has(id));
  const make = (of: readonly InboxItem[], made: Mark) => {
    const items = asShown(of);
    if (typeof made === 'object') return mark({ items, mark: 'snoozed', until: made.snoozedUntil });
    if (made === 'taken-over') return mark({ items, mark: 'claimed', takeOver: true });
    return mark({ items, mark: made });
  };
  // a letter marks, too
  const one = (item: InboxItem, made: Mark) => void (mayAct && make([item], made));
  const newest = useNewest({ select, unfold: unfolded.select, mark: one });
  const [acts] = useState<RowActs>(() => ({
    select: (...of) => newest.current.select(...of),
    unfold: (...of) => newest.current.unfold(...of),
    mark: (...of) => newest.current.mark(...of),
    say,
  }));
  useInboxKeys({
    list: box,
    find: (id) => byId.get(id),
    open: ({ id }) => unfolded.select(id, true),
    answer: ({ request }, key) => request !== null && pressCard(request.digest, key),
    acts: {
      unfold: ({ id }) => unfolded.select(id, !unfolded.selected.has(id)),
      select: ({ id }) => select(id, !selected.has(id)),
      seen: (item) => one(item, item.seenAt === null ? 'seen' : 'unseen'),
      claim: (item) =>
        one(item, item.claim === null ? 'claimed' : item.claim.by.id === person ? 'released' : 'taken-over'),
      snooze: (item) => one(item, isSnoozed(item, minute) ? 'unsnoozed' : snoozeForAnHour(minute)),
    },
  });
  /** Of a kind, how many there are where not all of them are loaded. */
  const totalOf = (name: string) => {
    const kind = INBOX_KINDS.find((one) => one === name);
    if (list === undefined || kind === undefined || isSearched) return null;
    const loaded = open.filter((item) => item.kind === kind);
    if (loaded.length >= list.counts[kind]) return null;
    return list.counts[kind] - loaded.filter((item) => isSnoozed(item, minute)).length;
  };
  const selectionOf = (items: readonly InboxItem[]) => {
    const ids = items.flatMap(({ id, doneAt }) => (doneAt === null ? id : []));
    const count = ids.filter((id) => selected.has(id)).length;
    return {
      selected: count === 0 ? ('none' as const) : count < ids.length ? ('some' as const) : ('all' as const),
      onSelect: ids.length === 0 ? null : (isSelected: boolean) => selectAll(ids, isSelected),
    };
  };
  return (
    <div ref={box} className="group/inbox">
      <KindFilter counts={list?.counts ?? noItems()} wanted={wanted} />
      {(open.length > 0 || isSearched) && (
        <div className="flex max-w-sm pb-2">
          <ListSearch what="the inbox" field={field} value={text} onChange={setText} />
        </div>
      )}
      <p className="flex min-h-[1lh] flex-wrap items-baseline gap-x-3 pb-1 text-2xs">
        <HeldChanges moved={held.moved} added={held.added} onShow={held.letGo} />
        <span role="status" className={failure === null ? 'text-ink-2' : 'text-failed'}>
          {failure === null ? said : `Not marked: ${failure}`}
        </span>
        <KeysOfRows />
      </p>
      {groups.map(({ name, items }) => (
        <InboxGroup
          key={name}
          name={name as GroupName}
          count={items.length}
          all={totalOf(name)}
          unfolds={isSearched}
          {...selectionOf(items)}
        >
          {items.map((item) => (
            <InboxRow
              key={item.id}
              item={item}
              person={person}
              isSelected={selected.has(item.id)}
              isUnfolded={unfolded.selected.has(item.id)}
              requestCode={requestCode}
              acts={acts}
            />
          ))}
        </InboxGroup>
      ))}
      <InboxEnd of={shown} />
      {chosen.length > 0 && (
        <InboxBulk
          items={chosen}
          isUnfolded={(id) => unfolded.selected.has(id)}
          onUnfold={(ids) => unfolded.selectOnly([...unfolded.selected, ...ids])}
          onMark={(made) => void make(chosen, made)}
          onNone={() => selectOnly([])}
        />
      )}
    </div>
  );
}

/** Which letters act on the row that has the focus, while one has. */
function KeysOfRows() {
  const keys = {
    j: 'next',
    k: 'previous',
    o: 'answer, retry or wake',
    s: 'seen',
    c: 'claim',
    z: 'snooze',
    x: 'select',
  };
  return (
    <span className="hidden flex-wrap gap-x-3 text-ink-3 group-has-[[data-inbox-row]:focus-visible]/inbox:flex">
      {Object.entries(keys).map(([key, what]) => (
        <span key={key}>
          <kbd className="text-ink-2">{key}</kbd> {what}
        </span>
      ))}
    </span>
  );
}
