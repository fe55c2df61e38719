'use client';

import type { AuditCheck, AuditPage as Page } from '@interlude/protocol/access';
import { API_ADDRESS } from '@interlude/protocol/version';
import { keepPreviousData, useQueryClient } from '@tanstack/react-query';
import { clsx } from 'clsx';
import { Download, ShieldCheck } from 'lucide';
import { useSearchParams } from 'next/navigation';
import { useDeferredValue, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { List } from '@/components/live/list';
import { useList } from '@/components/live/use-list';
import { CopyButton } from '@/components/ui/copy-button';
import { CalendarDay } from '@/components/ui/day';
import { Icon } from '@/components/ui/icon';
import { type AuditFilter, filterIn, paramsOf } from './audit-filter';
import { AuditFilterBar } from './audit-filter-bar';
import { AuditRow } from './audit-row';
import { useAct } from './confirm-action';

const PAGE = 50;
const MAX_PAGE = 1_000;
const LINK = 'min-h-6 underline decoration-line-strong underline-offset-2 hover:text-ink';
const BUTTON =
  'flex h-8 pointer-coarse:h-11 items-center gap-1.5 rounded-md border border-line-strong px-3 hover:bg-raised';

/** Actions of people and programs, including refused ones. */
export function AuditPage({ first, actions }: { first: { query: string; page: Page }; actions: readonly string[] }) {
  const [filter, setFilter] = useAuditFilter(useSearchParams());
  const query = useDeferredValue(paramsOf(filter).toString());
  const { list, first: reading, ...state } = useAudit(query, first);
  const { entries, removed } = list ?? { entries: [], removed: null };
  const isFiltered = query !== '';
  const refresh = useRef<HTMLButtonElement>(null);
  const onClear = () => {
    setFilter(filterIn(new URLSearchParams()));
    // The pressed button disappears and would lose the focus.
    refresh.current?.focus();
  };
  return (
    <section aria-labelledby="audit">
      <h2 id="audit" className="font-medium text-md">
        Audit
      </h2>
      <p className="mt-0.5 max-w-prose text-pretty text-ink-3 text-xs">
        All actions by people and programs, including refused ones. Each entry contains the hash of the previous one, so
        a changed or removed entry can be detected. Agents’ own output is in their logs and sessions.
      </p>
      <div className="mt-3 flex flex-wrap gap-x-3 gap-y-2">
        <AuditCheckButton />
        <a
          href={`${API_ADDRESS}/audit/export${isFiltered ? `?${query}` : ''}`}
          download
          className={clsx('order-first', BUTTON)}
        >
          <Icon of={Download} size={13} />
          {isFiltered ? 'Export these as JSON lines' : 'Export as JSON lines'}
        </a>
      </div>
      <AuditFilterBar filter={filter} onFilter={setFilter} actions={actions} entries={entries} />
      <p className="flex min-h-6 items-baseline gap-3 pb-1 text-2xs text-ink-3">
        <button ref={refresh} type="button" onClick={() => void reading.refetch()} className={LINK}>
          Refresh
        </button>
        <span role="status">
          {reading.isFetching
            ? 'Loading…'
            : entries.length > 0 && `Newest ${entries.length.toLocaleString('en')}${isFiltered ? ' matches' : ''}`}
        </span>
        {isFiltered && (
          <button type="button" onClick={onClear} className={LINK}>
            Show all
          </button>
        )}
      </p>
      <List
        rows={entries}
        what="entries"
        state={state}
        empty={
          <p className="border-line border-t py-3 text-ink-3">
            {isFiltered
              ? `No ${removed === null ? '' : 'remaining '}entries match. Filters match whole values only.`
              : 'No entries yet. Sign-ins, messages, decisions and other actions will appear here.'}
          </p>
        }
      >
        {() => (
          <ol
            aria-label="Entries"
            className={clsx('@container border-line border-t', reading.isPlaceholderData && 'opacity-60')}
          >
            {entries.map((entry) => (
              <AuditRow
                key={entry.number}
                entry={entry}
                onOnly={(field, value) => setFilter({ ...filter, [field]: value })}
              />
            ))}
          </ol>
        )}
      </List>
      {removed !== null && !state.hasMore && !state.isLoading && (
        <p className="py-3 text-2xs text-ink-3">
          Retention removed the entries up to number {removed.upTo.toLocaleString('en')}, most recently on{' '}
          <CalendarDay at={removed.at} />.
        </p>
      )}
    </section>
  );
}

/** Keeps the filter in the URL, so that it can be shared. */
function useAuditFilter(params: URLSearchParams) {
  const [filter, setFilter] = useState(() => filterIn(params));
  const change = (wanted: AuditFilter) => {
    setFilter(wanted);
    const query = paramsOf(wanted).toString();
    window.history.replaceState(null, '', query === '' ? location.pathname : `?${query}`);
  };
  return [filter, change] as const;
}

/** The matching entries, newest first. */
function useAudit(query: string, first: { query: string; page: Page }) {
  const queries = useQueryClient();
  const key = ['access', 'audit', query];
  return useList<Page>({
    key,
    read: (before, signal) => {
      const params = new URLSearchParams(query);
      const loaded = before === null ? (queries.getQueryData<Page>(key)?.entries.length ?? 0) : 0;
      params.set('limit', String(Math.min(MAX_PAGE, Math.max(PAGE, loaded))));
      if (before !== null) params.set('before', before);
      return fetchJson(`/audit?${params}`, signal);
    },
    next: (list) => (list?.next == null ? null : String(list.next)),
    join: (list, page) => ({ ...page, entries: [...list.entries, ...page.entries] }),
    initialData: query === first.query ? first.page : undefined,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

/** Verifies the hash chain on the server. */
function AuditCheckButton() {
  const [check, setCheck] = useState<AuditCheck | null>(null);
  const { isSending, failure, act } = useAct();
  return (
    <>
      <button
        type="button"
        aria-disabled={isSending}
        onClick={() => void act(async () => setCheck(await fetchJson<AuditCheck>('/audit/check')))}
        className={BUTTON}
      >
        <Icon of={ShieldCheck} size={13} />
        {isSending ? 'Verifying…' : 'Verify the log'}
      </button>
      <div role="status" className="basis-full text-xs">
        {failure !== null && <p className="text-failed">The log could not be verified: {failure}</p>}
        {failure === null && check !== null && <CheckResult check={check} />}
      </div>
    </>
  );
}

function CheckResult({ check: { entries, head, brokenAt, removed } }: { check: AuditCheck }) {
  if (brokenAt !== null) {
    return (
      <p className="max-w-prose rounded-md bg-failed-soft px-3 py-2 text-failed">
        The chain breaks at entry {brokenAt.toLocaleString('en')}, which doesn’t match the one before it. An entry was
        changed or removed there. The {entries.toLocaleString('en')} entries before it are unchanged.
      </p>
    );
  }
  if (entries === 0) return <p className="text-ink-2">No entries to verify yet.</p>;
  const newest = ((removed?.upTo ?? 0) + entries).toLocaleString('en');
  return (
    <div className="max-w-prose rounded-md bg-sunken px-3 py-2 text-ink-2">
      <p>
        <span className="font-medium text-working">The chain is intact.</span>{' '}
        {entries === 1 ? 'It has one entry,' : `It has ${entries.toLocaleString('en')} entries. The newest is`} number{' '}
        {newest}, with the hash below. Store the hash elsewhere to prove later that this entry and all earlier ones are
        unchanged:
      </p>
      <p className="mt-1 flex items-start gap-3">
        <code className="min-w-0 flex-1 text-ink [overflow-wrap:anywhere]">{head}</code>
        <CopyButton label="Copy hash" text={() => head} className="mt-0.5 shrink-0" />
      </p>
      {removed?.upTo !== undefined && (
        <p className="mt-1">
          It starts at number {(removed.upTo + 1).toLocaleString('en')}: retention removed older entries, most recently
          on <CalendarDay at={removed.at} />.
        </p>
      )}
    </div>
  );
}
