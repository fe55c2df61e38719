'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { INBOX_KINDS, type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { type ReactNode, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { usePagePerson } from '@/components/access/page-person';
import { List } from '@/components/live/list';
import { asShown } from '@/components/live/mark-items';
import { pressCard } from '@/components/requests/request-board';
import { useStored } from '@/components/ui/browser-storage';
import { useServerNow } from '@/components/ui/clock';
import { HeldChanges, NEW_ROWS } from '@/components/ui/held-order';
import { Link } from '@/components/ui/link';
import { FoldButton, ListSearch } from '@/components/ui/list-controls';
import type { CodeOnDemand } from '@/components/ui/on-demand';
import { useLatest } from '@/components/ui/use-latest';
import { useSelection } from '@/components/ui/use-selection';
import { sumOfItems, useMarks } from './inbox-items';
import { KIND_WORD } from './inbox-labels';
import { InboxRow, type RowActions } from './inbox-row';
import { InboxBulk, type Mark, snoozeForAnHour } from './item-actions';
import type { RequestedItem } from './item-request';
import { useInboxKeys } from './use-inbox-keys';
import { useShownItems } from './use-shown-items';

/** The inbox: items by kind, longest waiting first. */
export function InboxRows({ requestCode }: { requestCode: CodeOnDemand<{ item: RequestedItem }> }) {
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const { list, state, open, byId, groups, held, wanted, search, text, setText, isSearched, isPart } =
    useShownItems(box);
  const ofKinds = wanted.length === 0 ? open : open.filter(({ kind }) => wanted.includes(kind));
  const mayAct = useMayAct();
  const person = usePagePerson();
  const { mark, failure } = useMarks();
  const { selected, select, selectAll, selectOnly } = useSelection();
  const unfolded = useSelection();
  const [notice, setNotice] = useState('');
  const minute = useServerNow((now) => now - (now % 60_000));
  const chosen = open.filter(({ id }) => selected.has(id));
  const markItems = (of: readonly InboxItem[], change: Mark) => {
    const items = asShown(of);
    if (typeof change === 'object') return mark({ items, mark: 'snoozed', until: change.snoozedUntil });
    if (change === 'taken-over') return mark({ items, mark: 'claimed', takeOver: true });
    return mark({ items, mark: change });
  };
  // also called by keys, which don't check permission
  const one = (item: InboxItem, change: Mark) => void (mayAct && markItems([item], change));
  const newest = useLatest({ select, unfold: unfolded.select, mark: one });
  const [actions] = useState<RowActions>(() => ({
    select: (...of) => newest.current.select(...of),
    unfold: (...of) => newest.current.unfold(...of),
    mark: (...of) => newest.current.mark(...of),
    notify: setNotice,
  }));
  useInboxKeys({
    list: box,
    find: (id) => byId.get(id),
    open: ({ id }) => unfolded.select(id, true),
    answer: ({ request }, key) => request !== null && pressCard(request.digest, key),
    actions: {
      unfold: ({ id }) => unfolded.select(id, !unfolded.selected.has(id)),
      select: ({ id }) => select(id, !selected.has(id)),
      seen: (item) => one(item, item.seenAt === null ? 'seen' : 'unseen'),
      claim: (item) =>
        one(item, item.claim === null ? 'claimed' : item.claim.by.id === person ? 'released' : 'taken-over'),
      snooze: (item) => one(item, isSnoozed(item, minute) ? 'unsnoozed' : snoozeForAnHour(minute)),
    },
  });
  /** Number of items of a kind if not all are loaded, else null. */
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
        <HeldChanges moved={held.moved} added={held.added} onShow={held.release} />
        <span role="status" className={failure === null ? 'text-ink-2' : 'text-failed'}>
          {failure === null ? notice : `Could not update the items: ${failure}`}
        </span>
        <KeysOfRows />
      </p>
      <List
        rows={groups}
        listed={isSearched ? groups.reduce((sum, { items }) => sum + items.length, 0) : ofKinds.length}
        count={isSearched ? search.found && sumOfItems(search.found.counts) : list && sumOfItems(list.counts, wanted)}
        what="items"
        state={isSearched || isPart ? search : state}
        search={isSearched ? { text, onClear: () => setText('') } : undefined}
        empty={
          <p className="max-w-prose py-3 text-ink-2">
            {wanted.length > 0 && (list?.count ?? 0) > 0
              ? 'No items of this kind.'
              : 'You’re all caught up. Requests, failures and overdue replies will appear here.'}
          </p>
        }
      >
        {() =>
          groups.map(({ name, items }) => (
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
                  actions={actions}
                />
              ))}
            </InboxGroup>
          ))
        }
      </List>
      {chosen.length > 0 && (
        <InboxBulk
          items={chosen}
          isUnfolded={(id) => unfolded.selected.has(id)}
          onUnfold={(ids) => unfolded.selectOnly([...unfolded.selected, ...ids])}
          onMark={(change) => void markItems(chosen, change)}
          onNone={() => selectOnly([])}
        />
      )}
    </div>
  );
}

/** A list of the keys for the focused row. */
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

type GroupName = InboxKind | 'snoozed' | typeof NEW_ROWS;

const GROUP_WORD: Record<GroupName, string> = { ...KIND_WORD, snoozed: 'Snoozed', [NEW_ROWS]: 'New' };

/**
 * Items of a kind. The browser remembers if it is folded.
 *
 * @param all number of items if not all are loaded, else null
 */
function InboxGroup(props: {
  name: GroupName;
  count: number;
  all: number | null;
  unfolds: boolean;
  selected: 'none' | 'some' | 'all';
  /** Null if there is nothing to select. */
  onSelect: ((isSelected: boolean) => void) | null;
  children: ReactNode;
}) {
  const { name, count, all, unfolds, selected, onSelect, children } = props;
  const [chosen, choose] = useStored(`fold-inbox:${name}`);
  const isFolded = !unfolds && (chosen ?? (name === 'snoozed' ? 'folded' : 'open')) === 'folded';
  const id = `inbox-${name}`;
  return (
    <section aria-labelledby={id} className="pb-5">
      <div className="-mx-2 flex items-center gap-3 border-line border-b px-2 py-1">
        <label className="-m-1.5 flex p-1.5">
          <input
            ref={(field) => {
              if (field !== null) field.indeterminate = selected === 'some';
            }}
            type="checkbox"
            aria-label={`Select all of ${GROUP_WORD[name]}`}
            checked={selected === 'all'}
            disabled={onSelect === null}
            onChange={({ target }) => onSelect?.(target.checked)}
            className="accent-ink"
          />
        </label>
        <h2 id={id} className="font-medium text-xs">
          <FoldButton
            isOpen={!isFolded}
            disabled={unfolds}
            onToggle={() => choose(isFolded ? 'open' : 'folded')}
            className="tabular hover:text-accent disabled:text-inherit"
          >
            {GROUP_WORD[name]}
            <span className="font-normal text-ink-3">
              {' '}
              {count.toLocaleString('en')}
              {all !== null && ` of ${all.toLocaleString('en')}`}
            </span>
          </FoldButton>
        </h2>
      </div>
      {!isFolded && <ul>{children}</ul>}
    </section>
  );
}

/** Filters by kind. The URL contains the filter. */
function KindFilter(props: {
  /** Items of each kind, including those not loaded. */
  counts: Record<InboxKind, number>;
  wanted: readonly InboxKind[];
}) {
  const { counts, wanted } = props;
  const shown = INBOX_KINDS.filter((kind) => wanted.includes(kind) || counts[kind] > 0);
  if (shown.length < 2) return null;
  return (
    <nav aria-label="Kinds" className="flex flex-wrap gap-x-4 gap-y-1 pb-2 text-xs">
      <KindLink href="/inbox" label="All" count={sumOfItems(counts)} isCurrent={wanted.length === 0} />
      {shown.map((kind) => (
        <KindLink
          key={kind}
          href={`/inbox?kind=${kind}`}
          label={KIND_WORD[kind]}
          count={counts[kind]}
          isCurrent={wanted.includes(kind)}
        />
      ))}
    </nav>
  );
}

function KindLink(props: { href: string; label: string; count: number; isCurrent: boolean }) {
  const { href, label, count, isCurrent } = props;
  return (
    <Link
      href={href}
      aria-current={isCurrent ? 'page' : undefined}
      className={clsx(
        'inline-flex min-h-6 items-center gap-1 rounded-sm',
        isCurrent ? 'font-medium text-ink' : 'text-ink-2 hover:text-ink',
      )}
    >
      {label} <span className="tabular font-normal text-ink-3">{count.toLocaleString('en')}</span>
    </Link>
  );
}
