'use client';

import { addTo } from '@interlude/protocol/fields';
import type { TaskOutput } from '@interlude/protocol/read-models';

import { ChevronDown, ChevronUp, Search } from 'lucide';
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { formatBinaryBytes } from '@/components/ui/format-size';
import { Icon } from '@/components/ui/icon';
import { useFollow, useRowWindow } from '@/components/ui/row-window';
import { useExclusiveKeys } from '@/components/ui/shortcuts/use-shortcuts';
import { findInOutput, MAX_HITS, type OutputHit, type OutputRow, outputRows } from './output-rows';
import { OutputText } from './output-text';

/**
 * A task's stored output, searchable and live. While the reader scrolls up or searches, it shows a frozen copy, so that
 * nothing moves.
 *
 * @param name accessible name
 */
export function OutputView({ output, name, isLive }: { output: TaskOutput; name: string; isLive: boolean }) {
  const [held, setHeld] = useState<TaskOutput | null>(null);
  const shown = held ?? output;
  const rows = useMemo(() => outputRows(shown), [shown]);
  const [query, setQuery] = useState('');
  const hits = useMemo(() => findInOutput(rows, query), [rows, query]);
  const [chosen, setChosen] = useState<number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const follows = held === null;
  useFollow(scroller, (isFollowing) => setHeld(isFollowing ? null : (before) => before ?? output));

  // The search starts at the newest hit.
  const at = hits.length === 0 ? null : Math.min(chosen ?? hits.length - 1, hits.length - 1);
  const step = (by: 1 | -1) => {
    if (at === null) return;
    setHeld((before) => before ?? output);
    setChosen((at + by + hits.length) % hits.length);
  };
  return (
    <div className="rounded bg-raised">
      <OutputSearch
        name={name}
        query={query}
        onQuery={(text) => {
          setQuery(text);
          setChosen(null);
          if (text !== '') setHeld((before) => before ?? output);
        }}
        hits={hits.length}
        at={at}
        onStep={step}
        onLeave={() => scroller.current?.focus()}
      />
      <OutputLines
        scroller={scroller}
        name={name}
        rows={rows}
        hits={hits}
        current={at === null ? null : (hits[at] ?? null)}
        follows={follows}
      />
      {held !== null && held !== output && (
        <button
          type="button"
          onClick={() => {
            setHeld(null);
            scroller.current?.focus();
          }}
          className="w-full border-t px-2 py-1 text-left text-2xs text-accent hover:underline"
        >
          {isLive ? 'New output. Go to the end' : 'Go to the end'}
        </button>
      )}
    </div>
  );
}

function OutputSearch(props: {
  name: string;
  query: string;
  onQuery: (text: string) => void;
  hits: number;
  /** Index of the current hit; null if there is none. */
  at: number | null;
  onStep: (by: 1 | -1) => void;
  /** Called to move the focus to the output. */
  onLeave: () => void;
}) {
  const { name, query, onQuery, hits, at, onStep, onLeave } = props;
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') onStep(event.shiftKey ? 1 : -1);
    else if (event.key !== 'Escape') return;
    else if (query === '') onLeave();
    else onQuery('');
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search
      aria-label={name}
      className="-outline-offset-2 flex items-center gap-2 rounded-t border-b px-2 py-1 outline-accent focus-within:outline-2"
    >
      <Icon of={Search} size={13} className="shrink-0 text-ink-3" />
      <input
        dir="auto"
        type="search"
        aria-label={`Search ${name}`}
        placeholder="Search the output"
        value={query}
        onChange={(event) => onQuery(event.target.value)}
        onKeyDown={onKeyDown}
        autoComplete="off"
        spellCheck={false}
        className="min-w-0 flex-1 bg-transparent font-mono text-xs outline-none placeholder:font-sans placeholder:text-ink-3 [&::-webkit-search-cancel-button]:hidden"
      />
      {query !== '' && (
        <>
          <span role="status" className="tabular shrink-0 text-2xs text-ink-3">
            {hitWords(hits, at)}
          </span>
          <Step label="Previous hit" isDisabled={at === null} onClick={() => onStep(-1)}>
            <Icon of={ChevronUp} size={14} />
          </Step>
          <Step label="Next hit" isDisabled={at === null} onClick={() => onStep(1)}>
            <Icon of={ChevronDown} size={14} />
          </Step>
        </>
      )}
    </search>
  );
}

function hitWords(hits: number, at: number | null): string {
  if (at === null) return 'No hits';
  return `${(at + 1).toLocaleString('en')} of ${hits.toLocaleString('en')}${hits === MAX_HITS ? '+' : ''}`;
}

function Step(props: { label: string; isDisabled: boolean; onClick: () => void; children: ReactNode }) {
  const { label, isDisabled, onClick, children } = props;
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      disabled={isDisabled}
      onClick={onClick}
      className="hit shrink-0 text-ink-2 hover:text-ink disabled:text-line-strong"
    >
      {children}
    </button>
  );
}

const LINE_PX = 18;

/** The lines of an output; only those near the reader are laid out. */
function OutputLines(props: {
  scroller: RefObject<HTMLDivElement | null>;
  name: string;
  rows: readonly OutputRow[];
  hits: readonly OutputHit[];
  current: OutputHit | null;
  /** True while the reader follows the end. */
  follows: boolean;
}) {
  const { scroller, name, rows, hits, current, follows } = props;
  const virtualizer = useRowWindow({
    scroller,
    follows,
    version: rows,
    count: rows.length,
    estimateSize: () => LINE_PX,
    overscan: 12,
  });
  const byRow = useMemo(() => hitsByRow(hits), [hits]);
  useEffect(() => {
    if (current !== null && !follows) virtualizer.scrollToIndex(current.row, { align: 'center' });
  }, [current, follows, virtualizer]);
  // Keeps the transcript's scroll keys for this box.
  useExclusiveKeys(scroller);

  return (
    <div
      ref={scroller}
      role="log"
      aria-label={name}
      // Live output is not read aloud.
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard
      tabIndex={0}
      className="max-h-[min(60vh,34rem)] overflow-y-auto overscroll-contain px-2 py-1 font-mono text-ink-2 text-xs -outline-offset-2 [overflow-anchor:none]"
    >
      <div style={{ height: virtualizer.getTotalSize() }} className="relative">
        {virtualizer.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            ref={virtualizer.measureElement}
            data-index={index}
            style={{ transform: `translateY(${start}px)` }}
            className="absolute inset-x-0 top-0"
          >
            <OutputRowView row={rows[index]} hits={byRow.get(index) ?? NONE} current={current} />
          </div>
        ))}
      </div>
    </div>
  );
}

const NONE: readonly OutputHit[] = [];

function hitsByRow(hits: readonly OutputHit[]): ReadonlyMap<number, OutputHit[]> {
  const byRow = new Map<number, OutputHit[]>();
  for (const hit of hits) addTo(byRow, hit.row, hit);
  return byRow;
}

function OutputRowView(props: { row: OutputRow | undefined; hits: readonly OutputHit[]; current: OutputHit | null }) {
  const { row, hits, current } = props;
  if (row === undefined) return null;
  if (row.kind === 'hole') {
    return (
      <p className="border-line-strong border-y border-dashed py-0.5 font-sans text-2xs text-ink-3">
        {row.bytes === null ? 'Earlier output' : `${formatBinaryBytes(row.bytes)} of earlier output`} is not stored
      </p>
    );
  }
  return <OutputText spans={row.spans} hits={hits} current={current} />;
}
