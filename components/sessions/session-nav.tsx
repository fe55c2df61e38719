'use client';

import type { SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useSearchParams } from 'next/navigation';
import { type KeyboardEvent, useDeferredValue, useMemo, useRef, useState } from 'react';
import type { CountsByState } from '@/components/live/row-counts';
import { useListSearch } from '@/components/live/use-list-search';
import { Boundary } from '@/components/ui/boundary';
import { useStored } from '@/components/ui/browser-storage';
import { useServerNow } from '@/components/ui/clock';
import { HeldChanges, NEW_ROWS, useHeldOrder } from '@/components/ui/held-order';
import { FoldButton, ListSearch } from '@/components/ui/list-controls';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { SessionFilter } from './session-filter';
import { groupSessions, type SessionGroup } from './session-groups';
import { askedOf, EVERY_SESSION, paramsOf, passes, useSessionQuery } from './session-query';
import { SessionRow } from './session-row';
import { GROUP_WORD, type Group as GroupName } from './session-words';
import { useListKeys } from './use-list-keys';
import { useSessions } from './use-sessions';

const endCode = new CodeOnDemand(async () => (await import('./session-list-end')).SessionListEnd);

/** More sessions than this that need no look start out folded. */
const QUIET_SHOWN = 5;
const QUIET: ReadonlySet<string> = new Set(['seen', 'unknown', 'exited', 'archived'] satisfies GroupName[]);

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
  const { list, more } = useSessions();
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
  const { order, moved, added, release } = useHeldOrder(box, ids, `${list?.next} ${paramsOf(wanted)}`, (id) =>
    byId.has(id),
  );
  const counts = isFiltered ? search.found?.counts : list?.counts;
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
          <HeldChanges moved={moved} added={added} onShow={release} />
        </div>
      )}
      {list !== undefined && list.sessions.length > 0 && (
        <SessionFilter query={query} counts={list.counts} onQuery={setQuery} />
      )}
      <div className="min-h-0 flex-1 overflow-y-auto overscroll-contain pb-6">
        {sessions === undefined && <p className="px-4 py-3 text-ink-3">Loading sessions…</p>}
        {sessions?.length === 0 && empty}
        {order.map(({ name, ids }) => {
          const rows = ids.flatMap((id) => byId.get(id) ?? []);
          const group = groups.find(({ group }) => group === name);
          return (
            <Group
              key={name}
              name={name as GroupName | typeof NEW_ROWS}
              rows={rows}
              listed={name === NEW_ROWS ? rows.length : (group?.sessions.length ?? 0)}
              count={group === undefined || (list?.next == null && !search.hasMore) ? null : countOf(group, counts)}
              currentId={currentId}
              // What was searched for is shown, and so is what is all there is.
              unfolds={isFiltered || order.length === 1}
            />
          );
        })}
        <div className="px-4 pt-1">
          {list !== undefined && (isFiltered || list.next != null) && (
            <OnDemand
              code={endCode}
              name="The end of the list"
              props={{
                search: isFiltered ? search : null,
                states: query.states,
                more,
                counts: list.counts,
                listed: isFiltered
                  ? groups.reduce((sum, group) => sum + group.sessions.length, 0)
                  : list.sessions.length,
                onAll: () => setQuery(EVERY_SESSION),
              }}
            />
          )}
        </div>
      </div>
    </nav>
  );
}

/** @param states those that count; none for all */

/** How many there are of a group, listed or not; null if no count tells. */
function countOf({ group, sessions }: SessionGroup, counts: CountsByState | undefined): number | null {
  // The server counts states. Of some of them a group has only a part.
  const isWhole = group === 'needs-input' || group === 'working' || group === 'idle' || group === 'complete';
  return counts === undefined || !isWhole ? null : Math.max(sessions.length, counts[group]);
}

function Group(props: {
  name: GroupName | typeof NEW_ROWS;
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
