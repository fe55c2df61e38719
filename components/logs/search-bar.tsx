'use client';

import type { Position } from '@interlude/protocol/position';
import { clsx } from 'clsx';
import { ChevronDown, ChevronUp, Regex, Search, X } from 'lucide';
import { type KeyboardEvent, type RefObject, useEffect, useEffectEvent, useRef, useState } from 'react';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { useTitleWithKey } from '@/components/ui/shortcuts/use-shortcuts';
import type { LogQuery } from './log-query';
import { type LogStore, useLogStore } from './log-store';

/** Delay between the last key and the search. */
const SEARCH_AFTER_MS = 250;

/** The search field, with buttons for the next and previous hit. */
export function SearchBar(props: {
  query: LogQuery;
  onQuery: (query: LogQuery) => void;
  field: RefObject<HTMLInputElement | null>;
  /** Called to move the focus to the lines. */
  onLeave: () => void;
  hits: ReturnType<typeof useHits>;
  isBusy: boolean;
  dims: boolean;
  onDims: (dims: boolean) => void;
}) {
  const { query, onQuery, field, onLeave, hits, isBusy, dims } = props;
  const [text, setText] = useState(query.text);
  const [submitted, setSubmitted] = useState(query.text);
  const [seen, setSeen] = useState(query.text);
  // Adopts a query changed elsewhere. Our own change may arrive a moment later, and the old text is ignored until then.
  if (query.text !== seen) {
    setSeen(query.text);
    if (query.text !== submitted) {
      setSubmitted(query.text);
      setText(query.text);
    }
  }
  const search = useEffectEvent((wanted: string) => {
    setSubmitted(wanted);
    if (wanted !== query.text) onQuery({ ...query, text: wanted });
  });
  useEffect(() => {
    const timer = setTimeout(() => search(text), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);

  /** Direction of the step to take once the hits have loaded. */
  const wanted = useRef<1 | -1 | null>(null);
  const isReady = text === query.text && !isBusy;
  const stepWanted = useEffectEvent(() => {
    if (wanted.current !== null) void hits.step(wanted.current);
    wanted.current = null;
  });
  useEffect(() => {
    if (isReady) stepWanted();
  }, [isReady]);

  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    const { key, shiftKey } = event;
    if (key !== 'Enter' && key !== 'Escape') return;
    event.preventDefault();
    if (text !== query.text) onQuery({ ...query, text });
    // a log is read from its end
    const direction = shiftKey ? 1 : -1;
    wanted.current = null;
    if (key === 'Escape') onLeave();
    else if (isReady) void hits.step(direction);
    else wanted.current = direction;
  };

  const isSearched = query.text.trim() !== '';
  return (
    // On a phone, the field shares its row with other controls, and the hits are below it.
    <search
      className={clsx(
        'flex items-center gap-2 max-sm:contents sm:min-w-0 sm:max-w-[480px] sm:grow',
        isSearched ? 'sm:basis-96' : 'sm:basis-44',
      )}
    >
      <span className="flex h-7 min-w-24 flex-1 items-center gap-1.5 rounded-md bg-raised px-2 focus-within:outline-2 focus-within:outline-accent">
        <Icon of={Search} size={13} className="shrink-0 text-ink-3" />
        <input
          dir="auto"
          ref={field}
          type="search"
          aria-label="Search log"
          placeholder={query.isRegex ? 'Regex' : 'Search log'}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          autoComplete="off"
          spellCheck={false}
          className="min-w-0 flex-1 bg-transparent font-mono outline-none placeholder:font-sans placeholder:text-ink-3 [&::-webkit-search-cancel-button]:hidden"
        />
        {text !== '' && (
          <button
            type="button"
            aria-label="Clear the search"
            onClick={() => setText('')}
            className="hit text-ink-3 hover:text-ink"
          >
            <Icon of={X} size={13} />
          </button>
        )}
        <Toggle
          label="Regular expression"
          isOn={query.isRegex}
          onClick={() => onQuery({ ...query, text, isRegex: !query.isRegex })}
        >
          <Icon of={Regex} size={13} />
        </Toggle>
      </span>
      {isSearched && (
        <div className="order-1 flex w-full shrink-0 items-center gap-2 max-sm:h-8 max-sm:gap-6 sm:w-auto">
          <span role="status" className="tabular shrink-0 text-2xs text-ink-3">
            {isBusy || hits.isSeeking ? 'Searching…' : hitText(hits)}
          </span>
          <Steps of="hit" isDisabled={hits.count === 0} onStep={hits.step} />
          <Toggle label="Show other lines dimmed" isOn={dims} onClick={() => props.onDims(!dims)}>
            <span aria-hidden="true" className="text-2xs">
              {dims ? 'all lines' : 'hits only'}
            </span>
          </Toggle>
        </div>
      )}
    </search>
  );
}

function hitText({ count, number, hasMore }: ReturnType<typeof useHits>): string {
  const all = `${count.toLocaleString('en')}${hasMore ? '+' : ''}`;
  if (number !== null) return `${number.toLocaleString('en')} of ${all}`;
  return hasMore ? `${all} hits` : count === 0 ? 'No hits' : plural(count, 'hit');
}

function Toggle(props: { label: string; isOn: boolean; onClick: () => void; children: React.ReactNode }) {
  const { label, isOn, onClick, children } = props;
  return (
    <button
      type="button"
      aria-pressed={isOn}
      aria-label={label}
      title={label}
      onClick={onClick}
      className={clsx(
        'hit shrink-0 rounded-sm px-0.5',
        isOn ? 'bg-ink text-ground hover:bg-ink-2' : 'text-ink-3 hover:text-ink',
      )}
    >
      {children}
    </button>
  );
}

/** Buttons that lead to the previous and the next hit or error. */
export function Steps(props: { of: 'hit' | 'error'; isDisabled?: boolean; onStep: (direction: 1 | -1) => void }) {
  const { of, isDisabled = false, onStep } = props;
  const titles = { [-1]: useTitleWithKey(`log.previous-${of}`), 1: useTitleWithKey(`log.next-${of}`) };
  return ([-1, 1] as const).map((direction) => {
    const label = `${direction < 0 ? 'Previous' : 'Next'} ${of}`;
    const title = titles[direction](label);
    const enter = direction < 0 ? 'Enter' : 'Shift+Enter';
    return (
      <button
        key={direction}
        type="button"
        aria-label={label}
        // No key, no mention of Enter: letters are off, or the screen is for touch.
        title={of === 'hit' ? title.replace(')', `, or ${enter} in the field)`) : title}
        disabled={isDisabled}
        onClick={() => onStep(direction)}
        className="hit shrink-0 text-ink-2 hover:text-ink disabled:text-line-strong"
      >
        <Icon of={direction < 0 ? ChevronUp : ChevronDown} size={14} />
      </button>
    );
  });
}

/** Maximum number of pages without a hit that one key press searches. */
const MAX_PAGES = 50;

/**
 * Steps from hit to hit.
 *
 * @param store lines that the search finds; null while nothing is searched for
 * @param at the current hit, or null
 */
export function useHits(store: LogStore | null, at: Position | null, onHit: (position: Position) => void) {
  const [isSeeking, setIsSeeking] = useState(false);
  useLogStore(store, ({ version }) => version());
  const count = store?.window.lineCount ?? 0;
  const isHit = at !== null && (store?.window.indexOf(at) ?? -1) >= 0;
  const number = isHit ? (store?.window.rankOf(at) ?? 0) + 1 : null;

  const step = async (direction: 1 | -1) => {
    if (store === null || isSeeking) return;
    setIsSeeking(true);
    const found = await hitBeside(store, at, direction);
    setIsSeeking(false);
    if (found !== null) onHit(found);
  };
  return { count, number, hasMore: store?.window.hasMore ?? false, isSeeking, step };
}

/** The next or previous hit. Wraps around at either end. Without a current hit, starts at the newest. */
export async function hitBeside(store: LogStore, at: Position | null, direction: 1 | -1): Promise<Position | null> {
  const found = at === null ? null : await nextHit(store, at, direction);
  if (typeof found === 'string' || store.error !== null) return found ?? null;
  // Only from the end of the log: undefined means that pages remain.
  const wrapped = found === null ? await nextHit(store, null, at === null ? -1 : direction) : null;
  return wrapped ?? null;
}

/** Skips markers, which pass every filter. @returns null at the end, undefined after `MAX_PAGES` */
async function nextHit(store: LogStore, at: Position | null, direction: 1 | -1): Promise<Position | null | undefined> {
  const { window } = store;
  if (at === null && direction > 0 && window.older !== null) await store.openFirst();
  if (store.error !== null) return null;
  for (let page = 0; page < MAX_PAGES; page++) {
    const index = rowBeside(store, at, direction);
    store.readAt(window.numberAt(Math.max(0, index)));
    const row = window.rowAt(index);
    if (row?.kind === 'line') {
      const { marker, position } = row.line;
      return marker === undefined ? position : nextHit(store, position, direction);
    }
    // The current hit may have been evicted too.
    if (row?.kind === 'missing' && at !== null && page === 0) await store.open({ kind: 'line', position: at });
    else if (row !== null) await store.fill(row, direction > 0 ? 'above' : 'below');
    else if (direction < 0 && window.older !== null) await store.fillGap(window.older, 'below');
    else return null;
    if (store.error !== null) return null;
  }
  return;
}

/** @param at null to start at the end opposite to the direction */
function rowBeside({ window }: LogStore, at: Position | null, direction: 1 | -1): number {
  if (at === null) return direction < 0 ? window.rowCount - 1 : 0;
  const index = window.indexFrom(at);
  if (index < 0) return direction < 0 ? window.rowCount - 1 : window.rowCount;
  const isThere = window.lineAt(index)?.position === at;
  return direction < 0 ? index - 1 : isThere ? index + 1 : index;
}
