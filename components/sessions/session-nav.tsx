'use client';

import { clsx } from 'clsx';
import { ChevronRight, Search, X } from 'lucide-react';
import { useDeferredValue, useMemo, useRef, useState } from 'react';
import { MoreRows } from '@/components/live/more-rows';
import type { MorePages } from '@/components/live/use-more-pages';
import { Boundary } from '@/components/ui/boundary';
import type { SessionList } from '@/lib/protocol/read-models';
import { groupSessions, type SessionGroup } from './session-groups';
import { SessionRow } from './session-row';
import { STANDING_WORD } from './session-words';
import { useListKeys } from './use-list-keys';

/** More finished sessions than this start out folded: what is done needs no look. */
const DONE_SHOWN = 5;

/**
 * The list of sessions, grouped by what needs a look. The same element is the start page and, beside a session, the
 * sidebar; it lays itself out by its own width.
 */
export function SessionNav(props: {
  list: SessionList | undefined;
  /** The way to those that are not loaded. */
  more: MorePages;
  currentId: string | null;
  /** Whether j and k move in the list wherever the focus is. */
  keysEverywhere: boolean;
  empty: React.ReactNode;
}) {
  const { list, more, currentId, keysEverywhere, empty } = props;
  const box = useRef<HTMLElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [search, setSearch] = useState('');
  const wanted = useDeferredValue(search);
  const sessions = list?.sessions;
  const groups = useMemo(() => groupSessions(sessions ?? [], wanted), [sessions, wanted]);
  const count = list === undefined ? 0 : Object.values(list.counts).reduce((sum, one) => sum + one, 0);
  const [lastId, setLastId] = useState(currentId);
  if (currentId !== null && currentId !== lastId) setLastId(currentId);
  useListKeys({ list: box, search: field, everywhere: keysEverywhere, startId: lastId });

  return (
    <nav ref={box} aria-label="Sessions" className="@container flex min-h-0 flex-1 flex-col">
      {sessions?.length !== 0 && <SearchField field={field} value={search} onChange={setSearch} />}
      <div className="min-h-0 flex-1 overflow-y-auto overscroll-contain pb-6">
        {sessions === undefined && <p className="px-4 py-3 text-ink-3">Loading sessions…</p>}
        {sessions?.length === 0 && empty}
        {groups.map((group) => (
          <Group
            key={group.standing}
            group={group}
            count={list?.next == null || wanted !== '' ? null : countOf(group, list)}
            currentId={currentId}
            // What was searched for is shown, and so is what is all there is.
            unfolds={wanted !== '' || groups.length === 1}
          />
        ))}
        {sessions !== undefined && sessions.length > 0 && groups.length === 0 && (
          <p className="px-4 py-3 text-ink-3">No session has “{wanted}” in its title, agent, id or last words.</p>
        )}
        {list != null && list.next !== null && (
          <div className="px-4 pt-1">
            {wanted !== '' && <p className="pt-2 text-2xs text-ink-3">Searched in those that are listed.</p>}
            <MoreRows {...more} listed={list.sessions.length} count={count} what="sessions" />
          </div>
        )}
      </div>
    </nav>
  );
}

/** How many there are of a group, listed or not. Those whose runner has gone are listed apart, whatever their state. */
function countOf({ standing, sessions }: SessionGroup, list: SessionList): number | null {
  if (standing === 'away') return null;
  const apart = list.sessions.filter(({ state, away }) => state === standing && away !== null).length;
  return Math.max(sessions.length, list.counts[standing] - apart);
}

function Group(props: {
  group: SessionGroup;
  /** Null where all of them are listed. */
  count: number | null;
  currentId: string | null;
  unfolds: boolean;
}) {
  const { group, count, currentId, unfolds } = props;
  const foldable = group.standing === 'done' && group.sessions.length > DONE_SHOWN && !unfolds;
  const [unfolded, setUnfolded] = useState(false);
  const open = !foldable || unfolded;
  const id = `sessions-${group.standing}`;
  return (
    <section aria-labelledby={id} className="pt-3">
      <h2 id={id} className="flex items-center px-4 pb-1 text-2xs text-ink-3">
        {foldable ? (
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setUnfolded(!unfolded)}
            className="hit -ml-1 flex items-center gap-1 hover:text-ink"
          >
            <ChevronRight size={12} aria-hidden="true" className={clsx('transition-transform', open && 'rotate-90')} />
            <GroupTitle group={group} count={count} />
          </button>
        ) : (
          <GroupTitle group={group} count={count} />
        )}
      </h2>
      <ul>
        {(open ? group.sessions : []).map((session) => (
          <li key={session.id}>
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

function GroupTitle({ group, count }: { group: SessionGroup; count: number | null }) {
  const urgent = group.standing === 'failed' || group.standing === 'away' || group.standing === 'waiting';
  return (
    <span className="flex items-baseline gap-1.5">
      <span className={clsx('font-medium', urgent ? 'text-ink' : 'text-ink-2')}>{STANDING_WORD[group.standing]}</span>
      <span className="tabular">
        {group.sessions.length.toLocaleString('en')}
        {count !== null && count > group.sessions.length && ` of ${count.toLocaleString('en')}`}
      </span>
    </span>
  );
}

function SearchField(props: {
  field: React.RefObject<HTMLInputElement | null>;
  value: string;
  onChange: (value: string) => void;
}) {
  const { field, value, onChange } = props;
  return (
    <div className="relative mx-4 mt-2 flex items-center border-line border-b focus-within:border-accent">
      <Search size={14} strokeWidth={1.75} aria-hidden="true" className="shrink-0 text-ink-3" />
      <input
        ref={field}
        type="search"
        aria-label="Search sessions"
        placeholder="Search"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.stopPropagation();
          if (value === '') field.current?.blur();
          else onChange('');
        }}
        className="h-8 w-full bg-transparent px-2 outline-none placeholder:text-ink-3 [&::-webkit-search-cancel-button]:hidden"
      />
      {value === '' ? (
        <kbd className="shrink-0 text-2xs text-ink-3">/</kbd>
      ) : (
        <button
          type="button"
          aria-label="Clear search"
          onClick={() => onChange('')}
          className="hit text-ink-3 hover:text-ink"
        >
          <X size={14} aria-hidden="true" />
        </button>
      )}
    </div>
  );
}
