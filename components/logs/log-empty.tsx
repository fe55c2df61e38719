'use client';

import { EVERYTHING, type LogQuery, narrows } from './log-query';
import type { LogStore } from './log-store';
import { useLogStore } from './use-log-store';

/** What is said where no line is. */
export function LogEmpty(props: { store: LogStore | null; query: LogQuery; onQuery: (query: LogQuery) => void }) {
  const { store, query, onQuery } = props;
  useLogStore(store, ({ version }) => version());
  if (store === null) return <p className="px-3 py-3 text-ink-3 sm:px-4">Loading the log…</p>;
  if (store.position === null || store.window.rowCount > 0) return null;
  if (store.isLoading() || store.window.hasMore) {
    return <Over>Looking through the log…</Over>;
  }
  if (narrows(query)) {
    return (
      <Over>
        No line is like this.{' '}
        <button type="button" onClick={() => onQuery(EVERYTHING)} className="underline hover:text-ink">
          Show every line
        </button>
      </Over>
    );
  }
  return (
    <Over>
      This agent has not written a log line yet. Agents that Interlude runs, or follows through their hooks, write one
      as they go; others send them to <code>POST /api/v1/events</code>. With the runner’s log level at debug there is
      more to see.
    </Over>
  );
}

function Over({ children }: { children: React.ReactNode }) {
  return <p className="absolute top-0 max-w-prose px-3 pt-2 text-ink-3 sm:px-4">{children}</p>;
}
