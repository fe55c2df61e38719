'use client';

import type { Gap } from './log-buffer';
import type { LogStore } from './log-store';
import { countOf } from './log-words';

/** What stands above the oldest line that is held. */
export function LogTop({ store }: { store: LogStore }) {
  const { older } = store.buffer;
  if (store.position === null || (older === null && store.buffer.rowCount === 0)) return null;
  return (
    <p className="absolute inset-x-0 top-0 flex h-8 items-center gap-2 px-3 text-2xs text-ink-3 sm:px-4">
      {older === null ? 'Beginning of the log' : <Edge store={store} gap={older} words={olderWords(older)} />}
    </p>
  );
}

/** What stands below the newest line that is held, where newer ones are not. */
export function LogEnd({ store }: { store: LogStore }) {
  const { newer } = store.buffer;
  if (newer === null) return null;
  return (
    <p className="flex h-8 items-center gap-2 px-3 text-2xs text-ink-3 sm:px-4">
      <Edge store={store} gap={newer} words="Loading newer lines…" />
    </p>
  );
}

function Edge({ store, gap, words }: { store: LogStore; gap: Gap; words: string }) {
  const error = store.errorOf(gap);
  if (error === null) return words;
  return (
    <>
      <span className="truncate text-failed">{error.message}</span>
      <button
        type="button"
        onClick={() => store.fill(gap, gap.before === null ? 'above' : 'below')}
        className="shrink-0 underline hover:text-ink"
      >
        Try again
      </button>
    </>
  );
}

function olderWords({ lines }: Gap): string {
  return lines === null ? 'Looking further back…' : `${countOf(lines, 'older line')}`;
}
