'use client';

import type { Gap } from './log-buffer';
import { countOf } from './log-words';

/** Lines that are not held, in their place. They come on a click, or by themselves where nothing had to be let go. */
export function GapRow(props: {
  gap: Gap;
  isLoading: boolean;
  error: Error | null;
  onFill: (button: Element) => void;
}) {
  const { gap, isLoading, error, onFill } = props;
  return (
    <div className="flex h-7 items-center gap-2 bg-sunken px-3 font-sans text-2xs sm:px-4">
      <span aria-hidden="true" className="h-px w-4 bg-line-strong" />
      <button
        type="button"
        disabled={isLoading}
        onClick={(event) => onFill(event.currentTarget)}
        className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink disabled:no-underline"
      >
        {isLoading ? 'Loading…' : gapWords(gap)}
      </button>
      {error !== null && <span className="min-w-0 truncate text-failed">{error.message}</span>}
      <span aria-hidden="true" className="h-px min-w-4 flex-1 bg-line-strong" />
    </div>
  );
}

function gapWords({ lines, skipped }: Gap): string {
  if (lines === null) return skipped ? 'Lines skipped, load them' : 'More lines here';
  return skipped ? `${countOf(lines, 'line')} skipped` : `${countOf(lines, 'line')} not loaded`;
}
