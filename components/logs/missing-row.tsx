'use client';

import type { MissingRow as Missing } from './log-window';

/** A line that is being fetched, in its place; or lines nobody has counted, which come by themselves or on a click. */
export function MissingRow({ row, isLoading, onFill }: { row: Missing; isLoading: boolean; onFill: () => void }) {
  if (row.kind === 'missing') {
    return (
      <div aria-hidden="true" className="flex h-5 items-center px-3 sm:px-4">
        <span className="h-2 rounded-sm bg-raised" style={{ width: `${20 + ((row.line * 37) % 50)}%` }} />
      </div>
    );
  }
  const words = row.gap.skipped ? 'Lines skipped, load them' : 'More lines here';
  return (
    <div className="flex h-5 items-center gap-2 bg-sunken px-3 font-sans text-2xs sm:px-4">
      <span aria-hidden="true" className="h-px w-4 bg-line-strong" />
      <button
        type="button"
        disabled={isLoading}
        onClick={onFill}
        className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink disabled:no-underline"
      >
        {isLoading ? 'Loading…' : words}
      </button>
      <span aria-hidden="true" className="h-px min-w-4 flex-1 bg-line-strong" />
    </div>
  );
}
