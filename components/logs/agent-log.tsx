'use client';

import { isPosition, type Position } from '@interlude/protocol/position';
import { searchesText } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { useAddressAnchor } from '@/components/ui/jump';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { FirstLines } from './first-lines';
import { LogList, type LogSpan } from './log-list';
import { type FirstLog, isFiltered, type LogQuery, UNFILTERED, withoutText } from './log-query';
import { useLogSettings } from './log-settings';
import { type LogAnchor, type LogStore, useLogStore } from './log-store';
import { LogToolbar } from './log-toolbar';
import { hitBeside, useHits } from './search-bar';
import { openStore, useLog, useLogQuery } from './use-log';
import type { LogHandle } from './use-log-handle';

interface AgentLogProps {
  agentId: string;
  /** Span of time to scroll to and shade; null for none. */
  span?: LogSpan | null;
  /** Called when a line is chosen by click or key. */
  onLineClick?: (line: LogLine) => void;
  /** The newest page, if the server rendered it. */
  first?: FirstLog | null;
  /**
   * Part of another page: the names of its URL parameters start with `log-`, and shortcuts work only while the log has
   * the focus.
   */
  compact?: boolean;
  /** Moves the focus from outside the log to the lines once they have loaded. */
  takesFocus?: boolean;
  /** The level of the agent's runner, in the toolbar. */
  level?: ReactNode;
  /** Further controls in the toolbar. */
  tools?: ReactNode;
}

const NOTHING_PAINTED: ReadonlyMap<Position, number> = new Map();
const NONE: ReadonlySet<Position> = new Set();

/** An agent's log: live, searchable, filterable. */
export function AgentLog(props: AgentLogProps) {
  const { agentId, span = null, onLineClick, first = null, compact = false, takesFocus = false, level, tools } = props;
  const [settings, changeSettings] = useLogSettings();
  const [query, setQuery] = useLogQuery(compact ? 'log-' : '');
  const [follows, setFollows] = useState(span === null);
  const [target, setTarget] = useState<Position | null>(null);
  const [cursor, setCursor] = useState<Position | null>(null);
  const [unfolded, setUnfolded] = useState(NONE);
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<LogHandle>(null);
  const search = useRef<HTMLInputElement>(null);
  const [painted, setPainted] = useState<ReadonlyMap<Position, number>>(NOTHING_PAINTED);

  /** Line named by the URL, until the first store opens there. */
  const named = useRef<Position | null>(null);
  const place = (): LogAnchor => {
    if (span !== null && list.current === null) return { kind: 'time', at: span.from };
    const seen = named.current ?? (follows ? null : (list.current?.seen(cursor) ?? null));
    named.current = null;
    return seen === null ? { kind: 'newest' } : { kind: 'line', position: seen };
  };

  const leadTo = useCallback((position: Position) => {
    setTarget(position);
    setCursor(position);
    setFollows(false);
    if (list.current) list.current.line(position);
    else named.current = position;
  }, []);
  // The URL may name a line, so it is read before the first store opens.
  const [isPlaced, setIsPlaced] = useState(compact);
  useAddressAnchor((anchor) => {
    if (compact) return;
    if (isPosition(anchor)) leadTo(anchor);
    setIsPlaced(true);
  });

  const isSearched = query.text.trim() !== '';
  const dims = isSearched && settings.dims;
  const shown = useLog(agentId, isPlaced ? (dims ? withoutText(query) : query) : null, place, first);
  const found = useLog(agentId, isPlaced && dims ? query : null, () => ({ kind: 'newest' }));
  const matches = dims ? found.store : isSearched ? shown.store : null;
  const hits = useHits(matches, target, leadTo);

  const from = span?.from;
  useEffect(() => {
    if (from !== undefined) list.current?.time(from);
  }, [from]);

  const onLine = useCallback(
    (line: LogLine) => {
      setCursor(line.position);
      onLineClick?.(line);
    },
    [onLineClick],
  );
  const onUnfold = useCallback((line: LogLine) => {
    setFollows(false);
    setUnfolded((before) => {
      const next = new Set(before);
      if (!next.delete(line.position)) next.add(line.position);
      return next;
    });
  }, []);
  const onContext = useCallback(
    (line: LogLine) => {
      leadTo(line.position);
      // The browser's Back button returns to the search.
      if (compact) setQuery(UNFILTERED);
      else history.pushState(null, '', `${location.pathname}#${line.position}`);
    },
    [compact, leadTo, setQuery],
  );

  const { store } = shown;
  const [drawn, setDrawn] = useState(store);
  if (store !== drawn) {
    setDrawn(store);
    // The filter may have removed the line at the cursor.
    if (store !== null && cursor !== null) setCursor(store.window.nearest(cursor)?.position ?? null);
  }
  const isThere = store !== null && store.position !== null;
  const toLines = useLineFocus({ box, list, store: isThere ? store : null, takesFocus });
  const open = () => {
    const line = cursor === null ? null : (store?.window.lineAt(store.window.indexOf(cursor)) ?? null);
    if (line !== null) (onLineClick ?? onUnfold)(line);
  };
  const follow = (follows: boolean) => {
    if (follows) list.current?.end();
    else setFollows(false);
  };
  const move = (step: 1 | -1) => setCursor(list.current?.beside(cursor, step)?.position ?? cursor);
  const [notice, setNotice] = useState('');
  const isSeeking = useRef(false);
  const seekError = async (direction: 1 | -1) => {
    setNotice('');
    const level = query.level === 'fatal' ? 'fatal' : 'error';
    const at = follows ? null : cursor;
    const place: LogAnchor = at === null ? { kind: 'newest' } : { kind: 'line', position: at };
    const errors = await openStore(agentId, { ...(dims ? withoutText(query) : query), level }, place);
    const found = await hitBeside(errors, at, direction);
    if (found !== null) leadTo(found);
    else setNotice(errors.error === null ? 'No errors.' : `Errors could not be loaded: ${errors.error.message}`);
    errors.close();
  };
  const toError = (direction: 1 | -1) => {
    if (isSeeking.current) return;
    isSeeking.current = true;
    void seekError(direction).finally(() => {
      isSeeking.current = false;
    });
  };
  useShortcuts(
    {
      'log.next-error': () => toError(1),
      'log.previous-error': () => toError(-1),
      'log.level': ({ key }) => setQuery({ ...query, level: LOG_LEVELS[Number(key) - 1] ?? null }),
      'log.search': () => search.current?.select(),
      // Escape leaves a search first, then the log.
      'log.clear-search': isSearched
        ? () => {
            toLines();
            setQuery({ ...query, text: '' });
          }
        : null,
      'log.next-hit': () => void hits.step(1),
      'log.previous-hit': () => void hits.step(-1),
      'log.wrap': () => changeSettings({ wraps: !settings.wraps }),
      'log.first': () => {
        setCursor(null);
        list.current?.first();
      },
      'log.last': () => setCursor(list.current?.end()?.position ?? null),
      'log.follow': () => follow(!follows),
      'log.unfold': () => open(),
      'log.next': () => move(1),
      'log.previous': () => move(-1),
    },
    { area: box, leads: !compact },
  );
  const failed = dims && found.error !== null ? found : shown;
  return (
    <div ref={box} tabIndex={-1} className="flex h-full min-h-0 flex-1 flex-col focus-quiet">
      <LogToolbar
        agentId={agentId}
        query={query}
        onQuery={setQuery}
        settings={settings}
        onSettings={changeSettings}
        search={search}
        onLeaveSearch={toLines}
        hits={hits}
        onError={toError}
        isBusy={shown.isLoading || found.isLoading}
        error={failed.error}
        onRetry={() => failed.store?.retry()}
        store={store}
        follows={follows}
        onFollow={follow}
        compact={compact}
        level={level}
        tools={tools}
      />
      <p role="status" className={notice === '' ? 'sr-only' : 'shrink-0 px-3 py-1 text-ink-2 text-xs sm:px-4'}>
        {notice}
      </p>
      <div className="relative flex min-h-0 flex-1 flex-col">
        {isThere ? (
          <LogList
            key={store.id}
            ref={list}
            store={store}
            painted={painted}
            settings={settings}
            follows={follows}
            onFollow={setFollows}
            search={matches !== null && searchesText(matches.filter) ? matches.filter : null}
            hits={dims ? matches : null}
            onMark={leadTo}
            span={span}
            target={target}
            cursor={cursor}
            unfolded={unfolded}
            onLine={onLine}
            onUnfold={onUnfold}
            onContext={isFiltered(store.query) ? onContext : null}
            hasLinks={!compact}
          />
        ) : (
          first !== null && <FirstLines first={first} onPainted={setPainted} />
        )}
        {(first === null || store !== null) && <LogEmpty store={store} query={query} onQuery={setQuery} />}
      </div>
    </div>
  );
}

/** Shown while there are no lines. */
function LogEmpty(props: { store: LogStore | null; query: LogQuery; onQuery: (query: LogQuery) => void }) {
  const { store, query, onQuery } = props;
  useLogStore(store, ({ version }) => version());
  if (store === null) return <p className="px-3 py-3 text-ink-3 sm:px-4">Loading the log…</p>;
  if (store.position === null || store.window.rowCount > 0) return null;
  if (store.isLoading() || store.window.hasMore) {
    return <Over>Searching the log…</Over>;
  }
  if (isFiltered(query)) {
    return (
      <Over>
        No lines match.{' '}
        <button type="button" onClick={() => onQuery(UNFILTERED)} className="underline hover:text-ink">
          Clear filters
        </button>
      </Over>
    );
  }
  return (
    <Over>
      No log lines yet. Agents that Interlude runs or follows through hooks write a log as they work. Other agents can
      send lines to <code>POST /api/v1/events</code>. Set the runner’s log level to debug for more detail.
    </Over>
  );
}

function Over({ children }: { children: React.ReactNode }) {
  return <p className="absolute top-0 max-w-prose px-3 pt-2 text-ink-3 sm:px-4">{children}</p>;
}

/**
 * Moves the focus to the log's lines, where the log's shortcuts work: on opening, and on leaving the search. A list
 * that replaces the first one takes over the focus.
 *
 * @returns a function that moves the focus to the lines
 */
function useLineFocus(options: {
  box: RefObject<HTMLElement | null>;
  list: RefObject<LogHandle | null>;
  /** The lines' store; null while there are none. */
  store: object | null;
  takesFocus: boolean;
}): () => void {
  const { box, list, store, takesFocus } = options;
  const isWanted = useRef(false);
  const toLines = useCallback(() => {
    if (list.current) list.current.focus();
    else box.current?.focus({ preventScroll: true });
  }, [box, list]);

  useEffect(() => {
    if (store !== null && takesFocus && document.activeElement?.contains(box.current)) toLines();
  }, [store, takesFocus, box, toLines]);
  useEffect(() => {
    if (store === null || !isWanted.current) return;
    const { activeElement, body } = document;
    if (activeElement === body || activeElement === box.current) toLines();
  }, [store, box, toLines]);
  useEffect(() => {
    const onFocusIn = ({ target }: FocusEvent) => {
      if (!box.current?.contains(target as Node)) isWanted.current = false;
      else if ((target as Element).closest('[role="log"]')) isWanted.current = true;
    };
    document.addEventListener('focusin', onFocusIn);
    return () => document.removeEventListener('focusin', onFocusIn);
  }, [box]);

  return useCallback(() => {
    isWanted.current = true;
    toLines();
  }, [toLines]);
}
