'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { clsx } from 'clsx';
import { type ReactNode, useRef, useState, useSyncExternalStore } from 'react';
import { createPortal } from 'react-dom';
import { useMayAct } from '@/components/access/may-act';
import { usePagePerson } from '@/components/access/page-person';
import { List, useFurtherPages } from '@/components/live/list';
import { useCounts } from '@/components/live/use-counts';
import { pressCard, SELECTION } from '@/components/requests/request-board';
import type { PreviewProps } from '@/components/sessions/session-nav';
import { useStored } from '@/components/ui/browser-storage';
import { useServerNow } from '@/components/ui/clock';
import { rowsIn } from '@/components/ui/focus-row';
import { HeldChanges } from '@/components/ui/held-changes';
import { NEW_ROWS } from '@/components/ui/held-order';
import { OVERLAY } from '@/components/ui/in-view';
import { FoldButton, ListSearch } from '@/components/ui/list-controls';
import { NoAgents } from '@/components/ui/no-agents';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { KeyHint } from '@/components/ui/shortcuts/key-hint';
import { useLatest } from '@/components/ui/use-latest';
import { useMedia } from '@/components/ui/use-media';
import { useSelection } from '@/components/ui/use-selection';
import { useMarks } from './inbox-items';
import { FoldRow, InboxRow, type RowActions } from './inbox-row';
import { type Mark, snoozeForAnHour } from './item-actions';
import { hasRequest, type RequestedItem } from './item-request';
import { KindFilter } from './kind-filter';
import { ROW, useInboxKeys } from './use-inbox-keys';
import { type FailureFold, foldFailures, type InboxOwner, useInboxOwners } from './use-inbox-owners';

const bulkCode = new CodeOnDemand(async () => (await import('./inbox-bulk')).InboxBulk);
const reviewCode = new CodeOnDemand(async () => (await import('./review-deck')).ReviewDeck);

export interface InboxCode {
  /** Renders a request with its answer buttons. */
  requestCode: CodeOnDemand<{ item: RequestedItem }>;
  /** Renders the pane beside the list. */
  previewCode?: CodeOnDemand<PreviewProps> | undefined;
}

/** The inbox: one row per session or agent, most urgent first. */
export function InboxRows({ requestCode, previewCode }: InboxCode) {
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const { state, owners, groups, needingIds, held, wanted, search, text, setText, isSearched, isPart, isWhole } =
    useInboxOwners(box);
  const counts = useCounts();
  const mayAct = useMayAct();
  const person = usePagePerson();
  const { mark, undo, message, notify } = useMarks();
  const { selected, selectAll, rangeTo, selectOnly } = useSelection();
  const unfolded = useSelection();
  const [isReviewing, setReviewing] = useState(false);
  const [lastId, setLastId] = useState<string>();
  const isWide = useMedia('(width >= 100rem)');
  const requests = groups
    .flatMap(({ owners }) => owners.flatMap(({ open }) => open.filter(hasRequest)))
    .filter(({ id }) => needingIds.has(id));
  const minute = useServerNow((now) => now - (now % 60_000));
  const chosen = [...owners.values()].filter(({ id, open }) => open.length > 0 && selected.has(id));
  const chosenItems = chosen.flatMap(({ open }) => open);
  usePreload(bulkCode);
  // also called by keys, which don't check permission
  const markItems = (items: readonly InboxItem[], change: Mark) => void (mayAct && mark(items, change));
  /** Focuses the first row in view once the focused control is gone. */
  const keepFocus = () => {
    setTimeout(() => {
      if (document.activeElement !== document.body) return;
      const rows = rowsIn(box.current, ROW);
      rows.find((row) => row.getBoundingClientRect().top >= 0)?.focus();
    });
  };
  const shown = groups.map(({ name, owners }) => ({ name, owners, rows: foldFailures(name, owners) }));
  const folds = shown.flatMap(({ rows }) => rows.flatMap((row) => ('members' in row ? row : [])));
  const find = (id: string) => owners.get(id) ?? folds.find((fold) => fold.id === id);
  /** Open rows behind a row that may be a fold. */
  const rowsOf = (id: string) => {
    const owner = find(id);
    const rows = owner === undefined ? [] : 'members' in owner ? (owner as FailureFold).members : [owner];
    return rows.flatMap(({ id, open }) => (open.length > 0 ? id : []));
  };
  const select = (id: string, isSelected: boolean, isRange = false) => {
    const ids = isRange ? rowsIn(box.current, ROW).map(({ dataset }) => dataset.inboxRow ?? '') : [];
    const range = rangeTo(id, ids);
    // Unfolded members of a group have rows of their own.
    const rows = range.filter((one) => one === id || owners.has(one) || !unfolded.selected.has(one));
    selectAll(rows.flatMap(rowsOf), isSelected);
  };
  const newest = useLatest({ select, unfold: unfolded.select, mark: markItems, notify });
  const [actions] = useState<RowActions>(() => ({
    select: (...of) => newest.current.select(...of),
    unfold: (...of) => newest.current.unfold(...of),
    mark: (...of) => newest.current.mark(...of),
    notify: (...of) => newest.current.notify(...of),
  }));
  const sessionIds = groups.flatMap(({ owners }) => owners.flatMap(({ lead }) => lead.sessionId ?? []));
  const previewedId = isWide ? (sessionIds.find((id) => id === lastId) ?? sessionIds[0]) : undefined;
  const rowOf = (owner: InboxOwner, isNested: boolean) => (
    <InboxRow
      key={owner.id}
      owner={owner}
      person={person}
      isSelected={selected.has(owner.id)}
      isUnfolded={unfolded.selected.has(owner.id)}
      isNested={isNested}
      isPreviewed={previewedId !== undefined && owner.lead.sessionId === previewedId}
      requestCode={requestCode}
      actions={actions}
    />
  );
  const idOf = (item: InboxItem) => [...owners.values()].find(({ open }) => open.includes(item))?.id ?? '';
  useInboxKeys({
    list: box,
    find,
    open: ({ id }) => unfolded.select(id, true),
    review: () => mayAct && requests.length > 0 && setReviewing(true),
    // An unfolded row shows content that the reader may not have seen yet, so the guard stays.
    answer: ({ id, lead: { request } }, key, isMeant) =>
      request !== null && pressCard(request.digest, key, isMeant && !unfolded.selected.has(id)) !== null,
    field,
    onClear: () => {
      if (chosen.length > 0) selectOnly([]);
      else if (text !== '') setText('');
      else return false;
    },
    selection:
      chosen.length === 0
        ? null
        : {
            unfold: () =>
              unfolded.selectAll(
                chosen.map(({ id }) => id),
                true,
              ),
            seen: () => markItems(chosenItems, 'seen'),
            claim: () => markItems(chosenItems, 'claimed'),
            snooze: () => markItems(chosenItems, snoozeForAnHour(minute)),
            allow: () => pressCard(SELECTION, 'allow'),
            deny: () => pressCard(SELECTION, 'deny'),
          },
    actions: {
      unfold: ({ id }) => unfolded.select(id, !unfolded.selected.has(id)),
      select: ({ id }) => select(id, !rowsOf(id).every((id) => selected.has(id))),
      seen: ({ open, lead }) => markItems(open, lead.seenAt === null ? 'seen' : 'unseen'),
      claim: ({ open, lead: { claim } }) =>
        markItems(open, claim === null ? 'claimed' : claim.by.id === person ? 'released' : 'taken-over'),
      snooze: ({ open, lead }) => markItems(open, isSnoozed(lead, minute) ? 'unsnoozed' : snoozeForAnHour(minute)),
    },
  });
  const selectionOf = (rows: readonly InboxOwner[]) => {
    const ids = rows.flatMap(({ id, open }) => (open.length > 0 ? id : []));
    const count = ids.filter((id) => selected.has(id)).length;
    return {
      selected: count === 0 ? ('none' as const) : count < ids.length ? ('some' as const) : ('all' as const),
      onSelect: ids.length === 0 ? null : (isSelected: boolean) => selectAll(ids, isSelected),
    };
  };
  const hasMessage = held.moved + held.added > 0 || message.text !== '' || undo !== null;
  const listed = groups.reduce((sum, { owners }) => sum + owners.length, 0);
  const hasAgents = counts?.agents !== 0;
  const isFiltered = isSearched || wanted.length > 0;
  // The server counts rows of a kind only if they need the reader.
  const all = wanted.length === 0 ? counts?.inbox.all : 0;
  /** Number of rows in a group; undefined if the server counts something else and not all rows are loaded. */
  const countOf = (name: string, rows: readonly InboxOwner[]) => {
    if (name === NEW_ROWS) return rows.length;
    if (isFiltered) return isWhole ? rows.filter(({ open }) => open.length > 0).length : undefined;
    const { needsYou, inbox } = counts ?? {};
    if (needsYou === undefined || inbox === undefined) return undefined;
    // The counts follow the rows within a second. Rows that no longer belong to their held group do not count.
    const listed = rows.filter(({ open, needsYou: is }) => open.length > 0 && is === (name === 'needs-you')).length;
    return Math.max(listed, name === 'needs-you' ? needsYou : inbox.all - needsYou);
  };
  const requestCount = isFiltered ? (isWhole ? requests.length : undefined) : counts?.inbox.requests;
  const list = isSearched || isPart ? search : state;
  const hasMoreRequests = list.hasMore && requests.length < (counts?.inbox.requests ?? 0);
  useFurtherPages(isReviewing && hasMoreRequests, list);
  return (
    <div ref={box} data-inbox="" tabIndex={-1} className="group/inbox focus-quiet">
      <div className="max-sm:pb-1 sm:flex sm:flex-wrap sm:items-center sm:gap-x-6 sm:pointer-fine:pb-2">
        {counts !== undefined && <KindFilter counts={counts.inbox.kinds} wanted={wanted} />}
        {(listed > 0 || isSearched) && (
          <div className="flex min-w-52 sm:max-w-sm sm:flex-1">
            <ListSearch what="the inbox" shortcut="list.search" field={field} value={text} onChange={setText} />
          </div>
        )}
      </div>
      {mayAct && requests.length > 1 && (
        <Placed at="page-actions">
          <ReviewButton count={requestCount} onPress={() => setReviewing(true)} />
        </Placed>
      )}
      {isWide && previewCode && (
        <Placed at="page-pane">
          <OnDemand
            code={previewCode}
            name="The preview"
            props={{ sessionId: previewedId, list: box, onChoose: setLastId }}
          />
        </Placed>
      )}
      <p
        {...(hasMessage && OVERLAY)}
        className={clsx(
          // The message takes the place of the keys. Neither moves as the changes at the end come and go.
          'flex min-h-5 flex-wrap items-baseline gap-x-3 pb-1 text-2xs',
          // On a phone or tablet, over the end of the page: the rows take its place.
          'handheld:fixed handheld:inset-x-0 handheld:bottom-[calc(56px+env(safe-area-inset-bottom))] handheld:z-10 handheld:items-center handheld:border-line handheld:border-t handheld:bg-ground handheld:px-4 handheld:py-1',
          !hasMessage && 'handheld:sr-only',
        )}
      >
        <span role="status" className={clsx('empty:contents', message.isFailure ? 'text-failed' : 'text-ink-2')}>
          {message.text}
        </span>
        {undo !== null && (
          <button
            type="button"
            onClick={() => {
              undo();
              keepFocus();
            }}
            className="font-medium underline underline-offset-2 hover:text-accent"
          >
            Undo
          </button>
        )}
        {message.text === '' && <KeysOfRows />}
        <HeldChanges moved={held.moved} added={held.added} onShow={held.release} className="ml-auto" />
      </p>
      <List
        rows={groups}
        listed={listed}
        count={isSearched ? undefined : all}
        what="rows"
        state={list}
        search={isSearched ? { text, onClear: () => setText('') } : undefined}
        empty={
          hasAgents ? (
            <p className="max-w-prose py-3 text-ink-2">
              {wanted.length > 0 && (counts?.inbox.all ?? 0) > 0
                ? 'No items of this kind.'
                : 'You’re all caught up. Requests, failures and overdue replies will appear here.'}
            </p>
          ) : (
            <NoAgents>Requests, failures and overdue replies of your agents will appear here.</NoAgents>
          )
        }
      >
        {() =>
          shown.map(({ name, owners, rows }) => (
            <InboxGroup
              key={name}
              name={name as GroupName}
              count={countOf(name, owners)}
              unfolds={isSearched}
              {...selectionOf(owners)}
            >
              {rows.flatMap((row) =>
                'members' in row
                  ? [
                      <FoldRow
                        key={row.id}
                        fold={row}
                        person={person}
                        selected={selected}
                        isUnfolded={unfolded.selected.has(row.id)}
                        actions={actions}
                      />,
                      ...(unfolded.selected.has(row.id) ? row.members.map((owner) => rowOf(owner, true)) : []),
                    ]
                  : rowOf(row, false),
              )}
            </InboxGroup>
          ))
        }
      </List>
      {isReviewing && (
        <OnDemand
          code={reviewCode}
          name="The review"
          props={{
            items: requests,
            hasMore: hasMoreRequests,
            error: list.error,
            onRetry: list.load,
            requestCode,
            onClose: () => {
              setReviewing(false);
              keepFocus();
            },
          }}
        />
      )}
      {chosen.length > 0 && (
        <OnDemand
          code={bulkCode}
          name="The bar for selected items"
          props={{
            items: chosenItems,
            isUnfolded: (item) => unfolded.selected.has(idOf(item)),
            onUnfold: (items) => {
              unfolded.selectAll(items.map(idOf), true);
              const [id = ''] = items.map(idOf);
              box.current?.querySelector(`[data-inbox-row="${CSS.escape(id)}"]`)?.scrollIntoView({ block: 'start' });
            },
            onMark: (change) => markItems(chosenItems, change),
            onNone: () => selectOnly([]),
            notify,
            onClosed: keepFocus,
          }}
        />
      )}
    </div>
  );
}

/** Renders into a place of the page's frame. */
function Placed({ at, children }: { at: 'page-actions' | 'page-pane'; children: ReactNode }) {
  // Read again once it is rendered: before that, the previous page's frame may still be there.
  const place = useSyncExternalStore(
    () => () => {},
    () => document.getElementById(at),
    () => undefined,
  );
  if (place === undefined) return null;
  return place === null ? children : createPortal(children, place);
}

/** Opens the review. */
function ReviewButton({ count, onPress }: { count: number | undefined; onPress: () => void }) {
  return (
    <button
      type="button"
      aria-keyshortcuts="R"
      onClick={onPress}
      className="hit flex h-8 items-center gap-[0.4em] whitespace-nowrap rounded bg-ink px-3 font-medium text-ground text-xs hover:bg-ink-2"
    >
      Review <span className="tabular">{count?.toLocaleString('en')}</span>
      <span className="max-sm:sr-only"> requests</span>
    </button>
  );
}

const ROW_KEYS = {
  'inbox.next': 'next',
  'inbox.previous': 'previous',
  'inbox.open': 'open',
  'request.allow': 'allow',
  'request.deny': 'deny',
  'inbox.unfold': 'answer, retry or wake',
  'inbox.seen': 'seen',
  'inbox.claim': 'claim',
  'inbox.snooze': 'snooze',
  'inbox.select': 'select',
} as const;

/** A list of the keys for the focused row. */
function KeysOfRows() {
  return (
    <span className="key hidden flex-wrap gap-x-3 text-ink-3 group-has-[[data-inbox-row]:focus-visible]/inbox:flex">
      {Object.entries(ROW_KEYS).map(([id, what]) => (
        <KeyHint key={id} id={id as keyof typeof ROW_KEYS} what={what} />
      ))}
    </span>
  );
}

type GroupName = 'needs-you' | 'later' | typeof NEW_ROWS;

const GROUP_WORD: Record<GroupName, string> = {
  'needs-you': 'Needs you',
  later: 'Seen, snoozed or claimed',
  [NEW_ROWS]: 'New',
};

/** A group of rows. The browser remembers if it is folded. */
function InboxGroup(props: {
  name: GroupName;
  count: number | undefined;
  unfolds: boolean;
  selected: 'none' | 'some' | 'all';
  /** Null if there is nothing to select. */
  onSelect: ((isSelected: boolean) => void) | null;
  children: ReactNode;
}) {
  const { name, count, unfolds, selected, onSelect, children } = props;
  const [chosen, choose] = useStored(`fold-inbox:${name}`);
  const isFolded = !unfolds && (chosen ?? (name === 'later' ? 'folded' : 'open')) === 'folded';
  const id = `inbox-${name}`;
  return (
    <section aria-labelledby={id} className="pb-5">
      <div className="-mx-2 flex items-center gap-3 border-line border-b px-2 py-1">
        <label className="hit -m-1.5 flex p-1.5">
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
            <span className="font-normal text-ink-3"> {count?.toLocaleString('en')}</span>
          </FoldButton>
        </h2>
      </div>
      {!isFolded && <ul>{children}</ul>}
    </section>
  );
}
