'use client';

import type { MorePages } from './use-fleet';
import type { useListSearch } from './use-list-search';

/** The end of a partly loaded list: its size and a button for more. */
export function MoreRows(props: MorePages & { listed: number; count: number; what: string }) {
  const { load, isLoading, error, listed, count, what } = props;
  return (
    <p className="flex flex-wrap items-baseline gap-x-3 gap-y-1 py-3 text-2xs text-ink-3">
      <span className="tabular" role="status">
        {listed.toLocaleString('en')} of {Math.max(listed, count).toLocaleString('en')} {what}
      </span>
      <button
        type="button"
        data-more-rows
        aria-disabled={isLoading}
        onClick={load}
        className="min-h-6 rounded-sm text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink"
      >
        {isLoading ? 'Loading…' : 'Show more'}
      </button>
      {error !== null && <span className="text-failed">{error.message}</span>}
    </p>
  );
}

/**
 * The end of a searched list: the state of the search on the server.
 *
 * @param one noun for a row, as in `session`
 * @param onAll clears the search
 */
export function FoundRows(props: {
  search: Omit<ReturnType<typeof useListSearch>, 'found'>;
  listed: number;
  count: number;
  one: string;
  onAll: () => void;
}) {
  const { search, listed, count, one, onAll } = props;
  const { isLoading, hasMore, error, load } = search;
  if (hasMore) return <MoreRows {...search} listed={listed} count={count} what={`${one}s found`} />;
  return (
    <p role="status" className="flex flex-wrap items-baseline gap-x-3 py-3 text-2xs text-ink-3">
      {isLoading && 'Searching…'}
      {listed === 0 && !isLoading && error === null && (
        <>
          No {one}s match.
          <button type="button" onClick={onAll} className="min-h-6 underline hover:text-ink">
            Clear search
          </button>
        </>
      )}
      {error !== null && (
        <>
          <span className="text-failed">{error.message}</span>
          <button type="button" onClick={load} className="min-h-6 underline hover:text-ink">
            Try again
          </button>
        </>
      )}
    </p>
  );
}
