'use client';

import type { SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import { clsx } from 'clsx';
import { useSearchParams } from 'next/navigation';
import { type KeyboardEvent, useDeferredValue, useMemo, useRef, useState, type RefObject } from 'react';
import { List } from '@/components/live/list';
import type { CountsByState } from '@/components/live/row-counts';
import { useListSearch } from '@/components/live/use-list';
import { Boundary } from '@/components/ui/boundary';
import { FoldButton } from '@/components/ui/fold-button';
import { HeldChanges } from '@/components/ui/held-changes';
import { NEW_ROWS } from '@/components/ui/held-order';
import { ListSearch } from '@/components/ui/list-search';
import { useServerNow } from '@/components/ui/now';
import { useHeldOrder } from '@/components/ui/use-held-order';
import { useStored } from '@/components/ui/use-stored';
import { SessionFilter, askedOf, EVERY_SESSION, paramsOf, passes, useSessionQuery } from './session-filter';
import { SessionRow } from './session-row';
import { GROUP_WORD, type Group, describeState, GROUPS, groupOf, marksOf, sessionTitle } from './session-words';
import { useSessions } from './use-sessions';
import { searchWords, sessionText } from '@interlude/protocol/list-search';
import { plainWords } from '@/components/ui/plain-words';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

/** More sessions than this that need no look start out folded. */
const QUIET_SHOWN = 5;
const QUIET: ReadonlySet<string> = new Set(['seen', 'unknown', 'exited', 'archived'] satisfies Group[]);

/**
 * The list of sessions, grouped by what needs a look. The same element is the start page and, beside a session, the
 * sidebar; it lays itself out by its own width.
 */
export function SessionNav(props: {
  currentId: string | null;
  /** Whether j and k move in the list wherever the focus is. */
  keysEverywhere: boolean;
  empty: React.ReactNode;
}) {
  const { currentId, keysEverywhere, empty } = props;
  const { list, state } = useSessions();
  const box = useRef<HTMLElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useSessionQuery(keysEverywhere, useSearchParams());
  const wanted = useDeferredValue(query);
  const isFiltered = paramsOf(query) !== '';
  const search = useListSearch<SessionList>({
    path: '/sessions',
    asked: askedOf(query),
    take: (fleet, page) => fleet.takeFoundSessions(page),
  });
  const sessions = list?.sessions;
  const minute = useServerNow((now) => Math.floor(now / 60_000));
  const groups = useMemo(() => {
    const passing = (sessions ?? []).filter((session) => passes(session, wanted));
    return groupSessions(passing, wanted.text, minute * 60_000);
  }, [sessions, wanted, minute]);
  const ids = useMemo(
    () => groups.map((group) => ({ name: group.group, ids: group.sessions.map(({ id }) => id) })),
    [groups],
  );
  const byId = useMemo(() => new Map(sessions?.map((session) => [session.id, session])), [sessions]);
  const { order, moved, added, letGo } = useHeldOrder(box, ids, `${list?.next} ${paramsOf(wanted)}`, (id) =>
    byId.has(id),
  );
  const counts = isFiltered ? search.found?.counts : list?.counts;
  const listed = isFiltered ? groups.reduce((sum, group) => sum + group.sessions.length, 0) : sessions?.length;
  const [lastId, setLastId] = useState(currentId);
  if (currentId !== null && currentId !== lastId) setLastId(currentId);
  useListKeys({ list: box, search: field, everywhere: keysEverywhere, startId: lastId });

  // Esc leads one step out: from the search to what it found, from there to the whole list, then out of the list.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    const { activeElement } = document;
    if (activeElement === field.current) box.current?.focus({ preventScroll: true });
    else if (event.repeat) return;
    else if (isFiltered) setQuery(EVERY_SESSION);
    else if (keysEverywhere && activeElement !== box.current) box.current?.focus({ preventScroll: true });
    else return;
    event.preventDefault();
  };

  return (
    <nav
      ref={box}
      aria-label="Sessions"
      tabIndex={-1}
      onKeyDown={onKeyDown}
      className="@container flex min-h-0 flex-1 flex-col outline-none"
    >
      {sessions?.length !== 0 && (
        <div className="mx-4 mt-2 flex items-center gap-3">
          <ListSearch
            what="sessions"
            hasKey
            field={field}
            value={query.text}
            onChange={(text) => setQuery({ ...query, text })}
          />
          <HeldChanges moved={moved} added={added} onShow={letGo} />
        </div>
      )}
      {list !== undefined && list.sessions.length > 0 && (
        <SessionFilter query={query} counts={list.counts} onQuery={setQuery} />
      )}
      <div className="min-h-0 flex-1 overflow-y-auto overscroll-contain pb-6">
        <List
          rows={sessions}
          listed={listed ?? 0}
          count={isFiltered ? sumOf(search.found?.counts, query.states) : sumOf(list?.counts, [])}
          what="sessions"
          state={isFiltered ? search : state}
          search={isFiltered ? { text: query.text.trim(), onClear: () => setQuery(EVERY_SESSION) } : undefined}
          empty={empty}
          className="px-4 pt-4 pb-3"
        >
          {() =>
            order.map(({ name, ids }) => {
              const rows = ids.flatMap((id) => byId.get(id) ?? []);
              const group = groups.find(({ group }) => group === name);
              return (
                <GroupSection
                  key={name}
                  name={name as Group | typeof NEW_ROWS}
                  rows={rows}
                  listed={name === NEW_ROWS ? rows.length : (group?.sessions.length ?? 0)}
                  count={group === undefined || (list?.next == null && !search.hasMore) ? null : countOf(group, counts)}
                  currentId={currentId}
                  unfolds={isFiltered || order.length === 1}
                />
              );
            })
          }
        </List>
      </div>
    </nav>
  );
}

/** @param states counted states; none for all */
function sumOf(counts: CountsByState | undefined, states: readonly SessionState[]): number {
  return SESSION_STATES.filter((state) => states.length === 0 || states.includes(state)).reduce(
    (sum, state) => sum + (counts?.[state] ?? 0),
    0,
  );
}

/** How many there are of a group, listed or not; null if no count tells. */
function countOf({ group, sessions }: SessionGroup, counts: CountsByState | undefined): number | null {
  // The server counts states. Of some of them a group has only a part.
  const isWhole = group === 'needs-input' || group === 'working' || group === 'idle' || group === 'complete';
  return counts === undefined || !isWhole ? null : Math.max(sessions.length, counts[group]);
}

function GroupSection(props: {
  name: Group | typeof NEW_ROWS;
  /** What is shown of it: while its order is held, what was in it then. */
  rows: readonly SessionSummary[];
  /** How many of those that are loaded are in it. */
  listed: number;
  /** Null if all of them are loaded. */
  count: number | null;
  currentId: string | null;
  unfolds: boolean;
}) {
  const { name, rows, listed, count, currentId, unfolds } = props;
  const [chosen, choose] = useStored(`fold:${name}`);
  const isFolded = chosen === null ? QUIET.has(name) && rows.length > QUIET_SHOWN : chosen === 'folded';
  const open = unfolds || !isFolded;
  const id = `sessions-${name}`;
  const urgent = name === 'failed' || name === 'lost' || name === 'needs-input';
  const title = (
    <span className="flex items-baseline gap-1.5">
      <span className={clsx('font-medium', urgent ? 'text-ink' : 'text-ink-2')}>
        {name === NEW_ROWS ? 'New' : GROUP_WORD[name]}
      </span>
      <span className="tabular">
        {listed.toLocaleString('en')}
        {count !== null && count > listed && ` of ${count.toLocaleString('en')}`}
      </span>
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
        {(open ? rows : []).map((session) => (
          // what is out of sight is not laid out: a fleet changes rows of it many times a second
          <li key={session.id} className="[contain-intrinsic-size:auto_72px] [content-visibility:auto]">
            <Boundary
              of={session}
              fallback={<p className="px-4 py-2 text-ink-3 text-xs">This session can’t be shown.</p>}
            >
              <SessionRow session={session} current={session.id === currentId} />
            </Boundary>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface SessionGroup {
  group: Group;
  sessions: SessionSummary[];
}

/**
 * Sessions by what they need of a person, most urgent first; within a group the newest first. A group without sessions
 * is left out.
 *
 * @param now on the server's clock: failures age
 */
export function groupSessions(sessions: readonly SessionSummary[], search: string, now: number): SessionGroup[] {
  const words = searchWords(search);
  const found = sessions.filter((session) => matches(session, words, now));
  return GROUPS.map((group) => ({
    group,
    sessions: found.filter((session) => groupOf(session, now) === group).sort((a, b) => rank(b) - rank(a)),
  })).filter(({ sessions }) => sessions.length > 0);
}

const AT_REST: ReadonlySet<SessionState> = new Set(['idle', 'complete', 'exited', 'unknown']);

/** Working sessions keep their place while they work: a list that re-sorts with every word can't be clicked. */
function rank(session: SessionSummary): number {
  return AT_REST.has(session.state) ? session.lastEventAt : session.stateSince;
}

function matches(session: SessionSummary, words: string[], now: number): boolean {
  if (words.length === 0) return true;
  // in which group it stands is a matter of time
  const text = `${textOf(session)}\n${GROUP_WORD[groupOf(session, now)].toLowerCase()}`;
  return words.every((word) => text.includes(word));
}

/** A list is searched with every key, and its sessions are the same from one to the next. */
const texts = new WeakMap<SessionSummary, string>();

/** All that a row itself says: what is seen there is found. What was written is found as well, whatever of it is shown. */
function textOf(session: SessionSummary): string {
  const known = texts.get(session);
  if (known !== undefined) return known;
  const text = [
    sessionText(session),
    sessionTitle(session),
    describeState(session),
    ...marksOf(session).map((mark) => mark.text),
    plainWords(session.stateReason ?? ''),
    plainWords(session.lastText ?? ''),
  ]
    .join('\n')
    .toLowerCase();
  texts.set(session, text);
  return text;
}

const ROWS = '[data-session-row], [data-more-rows]';

/** j/k and the arrows move through the list, "/" goes to the search. Enter is the link's own. */
function useListKeys(options: {
  list: RefObject<HTMLElement | null>;
  search: RefObject<HTMLInputElement | null>;
  /** Whether j and k move here wherever the focus is. */
  everywhere: boolean;
  /** The session last looked at: where the keys begin. */
  startId: string | null;
}): void {
  const { list, search, everywhere, startId } = options;
  const move = (step: 1 | -1) => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>(ROWS) ?? [])];
    const focused = rows.indexOf(document.activeElement as HTMLElement);
    const at = focused >= 0 ? focused : rows.findIndex((row) => row.dataset.sessionRow === startId);
    const next = at < 0 ? (step > 0 ? rows[0] : rows.at(-1)) : rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next === undefined) return false;
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  };
  useShortcuts(
    {
      'sessions.search': () => {
        // On a phone the list steps aside.
        if (list.current === null || list.current.offsetParent === null) return false;
        search.current?.focus();
        search.current?.select();
      },
      'sessions.first-found': ({ target }) => (target === search.current ? move(1) : false),
      'sessions.next': () => move(1),
      'sessions.previous': () => move(-1),
    },
    { area: list, leads: everywhere },
  );
}
