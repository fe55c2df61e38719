'use client';

import { clsx } from 'clsx';
import { type ComponentProps, type ReactNode, useEffect } from 'react';
import { quoted } from '@/components/ui/verbatim';
import type { ListState } from './use-list';

interface EndProps {
  state: ListState;
  listed: number;
  /** Number of all rows, where the server counts them. */
  count?: number | undefined;
  /** Plural noun, as in `sessions`. */
  what: string;
  /** The search or filter that the rows match; `text` is what was typed. */
  search?: { text: string; onClear: () => void } | undefined;
  className?: string;
}

/**
 * Loads further pages while `isOn`. After a failure, it waits for the user to retry.
 *
 * Ordering: call it in the component that creates `state`, after creating it. A child's effect runs first, with an
 * outdated cursor.
 */
export function useFurtherPages(isOn: boolean, { hasMore, isLoading, error, load }: ListState): void {
  useEffect(() => {
    if (isOn && hasMore && !isLoading && error === null) load();
  });
}

/** State of a list that another component loads. */
const WITHOUT_REQUEST: ListState = { hasMore: false, isLoading: false, error: null, load: () => undefined };

/** A list in each of its states: loading, empty, or rows followed by the end of the list. */
export function List<Row>(
  props: Partial<EndProps> & {
    /** Undefined until the first page is loaded. */
    rows: readonly Row[] | undefined;
    /** Shown if there are no rows at all. */
    empty: ReactNode;
    children: (rows: readonly Row[]) => ReactNode;
  },
) {
  const { rows, empty, children, state = WITHOUT_REQUEST, listed = rows?.length ?? 0, what = '', ...end } = props;
  const isEmpty = rows?.length === 0 && end.search === undefined && isComplete(state);
  return (
    <>
      {rows !== undefined && rows.length > 0 && children(rows)}
      {isEmpty && empty}
      <ListEnd {...end} state={state} listed={listed} what={what} />
    </>
  );
}

/** The end of a list: its size with a button for more, or the state of its request. */
export function ListEnd({ state, listed, count, what, search, className = 'py-3' }: EndProps) {
  const { hasMore, isLoading, error, load } = state;
  const text = search?.text.trim() ?? '';
  const isMissed = search !== undefined && listed === 0 && isComplete(state);
  if (isComplete(state) && !isMissed) return null;
  return (
    <p role="status" className={clsx('flex flex-wrap items-baseline gap-x-3 gap-y-1 text-2xs text-ink-3', className)}>
      {hasMore && count !== undefined && (
        <span className="tabular">
          {listed.toLocaleString('en')}
          {count > listed ? ` of ${count.toLocaleString('en')}` : '+'} {what}
          {search !== undefined && ' found'}
        </span>
      )}
      {hasMore && (
        <EndButton data-more-rows aria-disabled={isLoading} onClick={load}>
          {isLoading ? 'Loading…' : 'Show more'}
        </EndButton>
      )}
      {!hasMore && isLoading && (search === undefined ? 'Loading…' : 'Searching…')}
      {error !== null && <span className="text-failed">{error.message}</span>}
      {!hasMore && error !== null && <EndButton onClick={load}>Try again</EndButton>}
      {isMissed && (
        <>
          {`No ${what} match${text && ` ${quoted(text)}`}.`}
          <EndButton onClick={search.onClear}>Clear {text ? 'search' : 'filters'}</EndButton>
        </>
      )}
    </p>
  );
}

function isComplete({ hasMore, isLoading, error }: ListState): boolean {
  return !hasMore && !isLoading && error === null;
}

function EndButton(props: ComponentProps<'button'>) {
  return (
    <button
      type="button"
      {...props}
      className="min-h-6 rounded-sm text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink"
    />
  );
}
