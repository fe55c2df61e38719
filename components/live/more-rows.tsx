'use client';

import type { MorePages } from './use-fleet';

/** The end of a list of which there is more than is listed: how much, and the way to it. */
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
