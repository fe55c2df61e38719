'use client';

import type { AuditPage as Page } from '@interlude/protocol/access';
import { API_ADDRESS } from '@interlude/protocol/version';
import { clsx } from 'clsx';
import { Download } from 'lucide';
import { useSearchParams } from 'next/navigation';
import { useDeferredValue, useRef } from 'react';
import { CalendarDay } from '@/components/ui/day';
import { Icon } from '@/components/ui/icon';
import { AuditCheckButton } from './audit-check';
import { filterIn, paramsOf } from './audit-filter';
import { AuditFilterBar } from './audit-filter-bar';
import { AuditRow } from './audit-row';
import { useAudit } from './use-audit';
import { useAuditFilter } from './use-audit-filter';

const NOTHING = filterIn(new URLSearchParams());

/** What people and programs did, and what they were refused. */
export function AuditPage({ first, actions }: { first: { query: string; page: Page }; actions: readonly string[] }) {
  const [filter, setFilter] = useAuditFilter(useSearchParams());
  const query = useDeferredValue(paramsOf(filter).toString());
  const { entries, removed, hasMore, more, again, isLoading, isOld, error } = useAudit(query, first);
  const isFiltered = query !== '';
  const lookAgain = useRef<HTMLButtonElement>(null);
  const showAll = () => {
    setFilter(NOTHING);
    // this button goes, and the focus stays beside it
    lookAgain.current?.focus();
  };
  return (
    <section aria-labelledby="audit">
      <h2 id="audit" className="font-medium text-md">
        Audit
      </h2>
      <p className="mt-0.5 max-w-prose text-pretty text-ink-3 text-xs">
        Everything that people and programs did here, and what they were refused. Each entry has the hash of the one
        before it, so that none can be changed or taken out unseen. What agents say is in their logs and sessions.
      </p>
      <div className="mt-3 flex flex-wrap gap-x-3 gap-y-2">
        <AuditCheckButton />
        <a
          href={`${API_ADDRESS}/audit/export${isFiltered ? `?${query}` : ''}`}
          download
          className="order-first flex h-8 items-center gap-1.5 rounded-md border border-line-strong px-3 hover:bg-raised"
        >
          <Icon of={Download} size={13} />
          {isFiltered ? 'Export these as JSON lines' : 'Export as JSON lines'}
        </a>
      </div>
      <AuditFilterBar filter={filter} onFilter={setFilter} actions={actions} entries={entries} />
      <p className="flex min-h-6 items-baseline gap-3 pb-1 text-2xs text-ink-3">
        <button
          ref={lookAgain}
          type="button"
          onClick={again}
          className="underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Look again
        </button>
        <span role="status">
          {isLoading
            ? 'Looking…'
            : entries.length === 0
              ? ''
              : `the newest ${entries.length.toLocaleString('en')}${isFiltered ? ' that match' : ''}`}
        </span>
        {isFiltered && (
          <button
            type="button"
            onClick={showAll}
            className="underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            Show all
          </button>
        )}
        <span role="alert" className="text-failed">
          {error?.message}
        </span>
      </p>
      {entries.length > 0 && (
        <ol aria-label="Entries" className={clsx('@container border-line border-t', isOld && 'opacity-60')}>
          {entries.map((entry) => (
            <AuditRow
              key={entry.number}
              entry={entry}
              onOnly={(field, value) => setFilter({ ...filter, [field]: value })}
            />
          ))}
        </ol>
      )}
      {entries.length === 0 && !isLoading && error === null && (
        <p className="border-line border-t py-3 text-ink-3">
          {isFiltered
            ? `${removed === null ? 'Nothing like this was done' : 'No entry that is left is like this'}. Each value must be given in full, letter by letter.`
            : 'Nothing has been done here yet: no message sent, nothing decided, nobody signed in.'}
        </p>
      )}
      {removed !== null && !hasMore && !isLoading && (
        <p className="py-3 text-2xs text-ink-3">
          Entries up to number {removed.upTo.toLocaleString('en')} were removed by their age, the last on{' '}
          <CalendarDay at={removed.at} />.
        </p>
      )}
      {hasMore && (
        <button
          type="button"
          onClick={more}
          aria-disabled={isLoading}
          className="mt-3 min-h-6 text-ink-2 text-xs underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          {isLoading ? 'Loading…' : 'Show older ones'}
        </button>
      )}
    </section>
  );
}
