'use client';

import { searchWords, sessionText } from '@interlude/protocol/list-search';
import type { SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { groupOf, isStalled } from '@interlude/protocol/session-predicates';
import { SESSION_GROUPS, type SessionGroup } from '@interlude/protocol/session-states';
import { clsx } from 'clsx';
import { useSearchParams } from 'next/navigation';
import {
  type KeyboardEvent,
  memo,
  type RefObject,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useCounts } from '@/components/live/use-counts';
import { useFleet } from '@/components/live/use-fleet';
import { useListSearch } from '@/components/live/use-list';
import { Boundary } from '@/components/ui/boundary';
import { useStored } from '@/components/ui/browser-storage';
import { focusRow, focusSearch, rowsIn } from '@/components/ui/focus-row';
import { NEW_ROWS, useHeldOrder } from '@/components/ui/held-order';
import { FoldButton, ListSearch } from '@/components/ui/list-controls';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { toPlainText } from '@/components/ui/plain-text';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useTimeFormat } from '@/components/ui/time-format';
import { useMedia } from '@/components/ui/use-media';
import { useRowKeys } from './row-keys';
import { matchesFilter, paramsOf, SessionFilter, searchQueryOf, UNFILTERED, useSessionQuery } from './session-filter';
import { describeState, GROUP_WORD, marksOf, sessionTitle } from './session-labels';
import { SessionRow } from './session-row';
import { useSessions } from './use-sessions';

/** Loaded on demand, because the first load has a size limit. */
const changesCode = new CodeOnDemand(async () => (await import('@/components/ui/held-changes')).HeldChanges);
const endCode = new CodeOnDemand(async () => (await import('@/components/live/list')).ListEnd);

/** Quiet groups with more sessions than this start folded. */
const QUIET_SHOWN = 5;
const QUIET: ReadonlySet<string> = new Set(['seen', 'unknown', 'exited', 'archived'] satisfies SessionGroup[]);

/** The pane beside the list. */
export interface PreviewProps {
  /** Undefined if the list is empty. */
  sessionId: string | undefined;
  /** Contains the rows. */
  list: RefObject<HTMLElement | null>;
  onChoose: (sessionId: string) => void;
}

/**
 * The list of sessions, grouped by urgency. It has the open session even if its group is folded, a filter excludes it or
 * its page of the list is not loaded. The same element is the start page and the sidebar of a session; its
 * layout follows its width.
 */
export function SessionNav(props: {
  currentId: string | null;
  /** j and k move in the list wherever the focus is. */
  keysEverywhere: boolean;
  empty: React.ReactNode;
  /** Shows the chosen session beside the list, from 1280 px. */
  preview?: CodeOnDemand<PreviewProps> | undefined;
}) {
  const { currentId, keysEverywhere, empty, preview } = props;
  const { list, state } = useSessions();
  const box = useRef<HTMLElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useSessionQuery(keysEverywhere, useSearchParams());
  const deferred = useDeferredValue(query);
  const isFiltered = paramsOf(query) !== '';
  const search = useListSearch<SessionList>({
    path: '/sessions',
    query: searchQueryOf(query),
    put: (fleet, page) => fleet.putFoundSessions(page),
  });
  const sessions = list?.rows;
  const counts = useCounts();
  const groups = useMemo(() => {
    const matching = (sessions ?? []).filter((session) => matchesFilter(session, deferred));
    return groupSessions(matching, deferred.text);
  }, [sessions, deferred]);
  const ids = useMemo(
    () => groups.map((group) => ({ name: group.group, ids: group.sessions.map(({ id }) => id) })),
    [groups],
  );
  const byId = useMemo(() => new Map(sessions?.map((session) => [session.id, session])), [sessions]);
  const { order, moved, added, release } = useHeldOrder(box, ids, `${list?.next} ${paramsOf(deferred)}`, (id) =>
    byId.has(id),
  );
  usePreload(changesCode);
  const current = useFleet(({ sessions }) => (currentId === null ? undefined : sessions.get(currentId)));
  const allIds = order.flatMap(({ ids }) => ids);
  const isListed = currentId === null || allIds.includes(currentId);
  const [lastId, setLastId] = useState(currentId);
  if (currentId !== null && currentId !== lastId) setLastId(currentId);
  useEffect(() => {
    const row = box.current?.querySelector(`[data-session-row="${CSS.escape(currentId ?? '')}"]`);
    row?.scrollIntoView({ block: 'nearest' });
  }, [currentId]);
  /** The server’s number of matching sessions. Undefined with a state filter: it counts seen failures with the others. */
  const count = query.states.length > 0 ? undefined : sum((isFiltered ? search.found?.counts : counts?.groups) ?? {});
  /** True with a search or agent filter, which the server's counts ignore. */
  const isNarrowed = paramsOf({ ...query, states: [] }) !== '';
  const isWhole = list?.next === null || (search.found !== undefined && !search.hasMore);
  const end = isFiltered ? search : state;
  useListKeys({ list: box, search: field, everywhere: keysEverywhere, startId: lastId });
  const isEmpty =
    sessions?.every(({ arrangement }) => arrangement.archivedAt !== null) &&
    sum(counts?.groups ?? {}) === counts?.groups.archived;
  const isWide = useMedia('(width >= 80rem)');
  const previewedId = allIds.find((id) => id === lastId) ?? allIds[0];
  const isAbsolute = useTimeFormat()?.settings.isAbsolute;

  // Esc leaves the search field, then clears the filter.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    const { activeElement } = document;
    if (activeElement === field.current) box.current?.focus({ preventScroll: true });
    else if (event.repeat) return;
    else if (isFiltered) setQuery(UNFILTERED);
    else return;
    event.preventDefault();
  };

  const nav = (
    <nav
      ref={box}
      aria-label="Sessions"
      tabIndex={-1}
      onKeyDown={onKeyDown}
      className="@container flex min-h-0 flex-1 flex-col focus-quiet"
    >
      {sessions?.length !== 0 && (
        <div className="mx-4 mt-2 pointer-coarse:mt-0 flex items-center gap-3">
          <ListSearch
            what="sessions"
            shortcut="sessions.search"
            field={field}
            value={query.text}
            onChange={(text) => setQuery({ ...query, text })}
          />
          {moved + added > 0 && (
            <OnDemand code={changesCode} name="The new order" props={{ moved, added, onShow: release }} />
          )}
        </div>
      )}
      {sessions !== undefined &&
        sessions.length > 0 &&
        (counts === undefined ? (
          <div className="h-9 shrink-0 pointer-coarse:h-11" />
        ) : (
          <SessionFilter
            query={query}
            counts={counts.groups}
            numbers={
              isNarrowed
                ? isWhole && query.states.length === 0
                  ? Object.fromEntries(groups.map(({ group, sessions }) => [group, sessions.length]))
                  : null
                : counts.groups
            }
            hasWords={keysEverywhere}
            onQuery={setQuery}
          />
        ))}
      <div className="scroll-edge min-h-0 flex-1 overflow-y-auto overscroll-contain pb-6">
        {isEmpty && empty}
        {/* The head of the rows' last column. */}
        {allIds[0] !== undefined && (
          <p aria-hidden className="float-right pt-3 pr-4 text-2xs text-ink-3">
            {isAbsolute ? 'Since' : 'In state'}
          </p>
        )}
        {!isListed && (
          <section aria-labelledby="sessions-open" className="pt-3">
            <h2 id="sessions-open" className="px-4 pb-1 font-medium text-2xs text-ink-2">
              Open session
            </h2>
            {/* The page's own request loads the row. */}
            <ul className="min-h-[72px]">{current !== undefined && <SessionItem session={current} current />}</ul>
          </section>
        )}
        {order.map(({ name, ids }) => {
          const rows = ids.flatMap((id) => byId.get(id) ?? []);
          const group = groups.find(({ group }) => group === name);
          return (
            <GroupSection
              key={name}
              name={name as SessionGroup | typeof NEW_ROWS}
              rows={rows}
              count={
                name === NEW_ROWS
                  ? rows.length
                  : isNarrowed || (isFiltered && (name === 'pinned' || name === 'archived'))
                    ? `${(group?.sessions.length ?? 0).toLocaleString('en')}${isWhole ? '' : '+'}`
                    : counts?.groups[name as SessionGroup]
              }
              currentId={currentId}
              previewedId={preview && previewedId}
              tabStop={keysEverywhere ? undefined : previewedId}
              unfolds={isFiltered || (order.length === 1 && name !== 'archived')}
            />
          );
        })}
        {(isFiltered || end.hasMore || end.isLoading || end.error !== null) && (
          <OnDemand
            code={endCode}
            name="The end of the list"
            props={{
              state: end,
              listed: groups.reduce((sum, group) => sum + group.sessions.length, 0),
              count,
              what: 'sessions',
              search: isFiltered ? { text: query.text, onClear: () => setQuery(UNFILTERED) } : undefined,
              className: 'px-4 pt-4 pb-3',
            }}
          />
        )}
      </div>
    </nav>
  );
  return (
    <>
      {/* Takes the preview's width before the rows: a browser may paint them before it has read on. */}
      {preview && !isEmpty && <div data-beside="" />}
      {nav}
      {preview && !isEmpty && (
        <div data-preview="">
          {isWide && (
            <OnDemand
              code={preview}
              name="The preview"
              props={{ sessionId: previewedId, list: box, onChoose: setLastId }}
            />
          )}
        </div>
      )}
    </>
  );
}

function sum(counts: Partial<Record<string, number>>): number {
  return Object.values(counts).reduce<number>((sum, count = 0) => sum + count, 0);
}

function GroupSection(props: {
  name: SessionGroup | typeof NEW_ROWS;
  /** The rows to show. While the order is held, these are the rows from when the hold began. */
  rows: readonly SessionSummary[];
  /** Number of sessions in the group, without held rows that have left it; `15+` if more may match. */
  count: number | string | undefined;
  currentId: string | null;
  previewedId: string | undefined;
  /** The only row that Tab stops at: arrows reach the others. Undefined for all rows. */
  tabStop: string | undefined;
  unfolds: boolean;
}) {
  const { name, rows, count, currentId, previewedId, tabStop, unfolds } = props;
  const [chosen, choose] = useStored(`fold:${name}`);
  const isFolded = chosen === null ? QUIET.has(name) && rows.length > QUIET_SHOWN : chosen === 'folded';
  const open = unfolds || !isFolded;
  const keyOf = useRowKeys(rows.map((session) => session.id));
  const id = `sessions-${name}`;
  const urgent = name === 'failed' || name === 'lost' || name === 'needs-input';
  const title = (
    <span className="flex items-baseline gap-1.5">
      <span className={clsx('font-medium', urgent ? 'text-ink' : 'text-ink-2')}>
        {name === NEW_ROWS ? 'New' : GROUP_WORD[name]}
      </span>
      <span className="tabular">{(count || undefined)?.toLocaleString('en')}</span>
    </span>
  );
  return (
    <section aria-labelledby={id} className="pt-3">
      <h2 id={id} className="flex items-center px-4 pb-1 text-2xs text-ink-3">
        {unfolds ? (
          title
        ) : (
          <FoldButton isOpen={open} onToggle={() => choose(open ? 'folded' : 'open')} className="hover:text-ink">
            {title}
          </FoldButton>
        )}
      </h2>
      <ul>
        {(open ? rows : rows.filter(({ id }) => id === currentId)).map((session) => (
          <SessionItem
            key={keyOf(session.id)}
            session={session}
            current={session.id === currentId}
            isPreviewed={session.id === previewedId}
            isSkipped={tabStop !== undefined && tabStop !== session.id}
          />
        ))}
      </ul>
    </section>
  );
}

const SessionItem = memo(function SessionItem(props: {
  session: SessionSummary;
  current: boolean;
  isPreviewed?: boolean;
  isSkipped?: boolean;
}) {
  const { session } = props;
  return (
    <li className="session-item">
      <Boundary of={session} fallback={<p className="px-4 py-2 text-ink-3 text-xs">This session can’t be shown.</p>}>
        <SessionRow {...props} />
      </Boundary>
    </li>
  );
});

interface GroupedSessions {
  group: SessionGroup;
  sessions: SessionSummary[];
}

/**
 * Groups sessions by urgency. Within a group, those without progress come first, then the newest state: the row shows
 * its age, and a list that re-sorts with every word can't be clicked. Empty groups are left out.
 */
export function groupSessions(sessions: readonly SessionSummary[], search: string): GroupedSessions[] {
  const words = searchWords(search);
  const found = sessions.filter((session) => matches(session, words));
  return SESSION_GROUPS.map((group) => ({
    group,
    sessions: found
      .filter((session) => groupOf(session) === group)
      .sort((a, b) => Number(isStalled(b)) - Number(isStalled(a)) || b.stateSince - a.stateSince),
  })).filter(({ sessions }) => sessions.length > 0);
}

function matches(session: SessionSummary, words: string[]): boolean {
  return words.length === 0 || words.every((word) => textOf(session).includes(word));
}

/** Cached, because each key press searches the list again. */
const texts = new WeakMap<SessionSummary, string>();

/** The text to search: everything that the row shows, in full length. */
function textOf(session: SessionSummary): string {
  const known = texts.get(session);
  if (known !== undefined) return known;
  const text = [
    sessionText(session),
    sessionTitle(session),
    describeState(session),
    GROUP_WORD[groupOf(session)],
    ...marksOf(session).map((mark) => mark.text),
    toPlainText(session.stateReason ?? ''),
    session.request?.line ?? '',
    toPlainText(session.lastText ?? ''),
  ]
    .join('\n')
    .toLowerCase();
  texts.set(session, text);
  return text;
}

const ROWS = '[data-session-row], [data-more-rows]';

/** j/k and the arrows move through the list, and "/" focuses the search field. Enter follows the focused link. */
function useListKeys(options: {
  list: RefObject<HTMLElement | null>;
  search: RefObject<HTMLInputElement | null>;
  /** j and k work wherever the focus is. */
  everywhere: boolean;
  /** The last viewed session, from which the keys start. */
  startId: string | null;
}): void {
  const { list, search, everywhere, startId } = options;
  const move = (step: 1 | -1) => {
    const rows = rowsIn(list.current, ROWS);
    return focusRow(
      rows,
      step,
      rows.find(({ dataset }) => dataset.sessionRow === startId),
    );
  };
  useShortcuts(
    {
      // On a phone the list is hidden.
      'sessions.search': () => !!list.current?.offsetParent && focusSearch(search.current),
      'sessions.first-found': ({ target }) => (target === search.current ? move(1) : false),
      'sessions.next': () => move(1),
      'sessions.previous': () => move(-1),
    },
    { area: list, leads: everywhere },
  );
}
