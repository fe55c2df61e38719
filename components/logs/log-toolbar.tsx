'use client';

import { API_ADDRESS } from '@interlude/protocol/version';
import { Download } from 'lucide';
import type { RefObject } from 'react';
import { RequestError } from '@/components/live/fetch-json';
import { Icon } from '@/components/ui/icon';
import { countOf, sizeOf } from '@/components/ui/size-of';
import { ComponentFilter } from './component-filter';
import { LevelFilter } from './level-filter';
import { type LogQuery, paramsFromQuery } from './log-query';
import type { ChangeLogSettings, LogSettings } from './log-settings';
import type { LogStore } from './log-store';
import { SearchBar } from './search-bar';
import { TimeFilter } from './time-filter';
import type { useHits } from './use-hits';
import { useLogStore } from './use-log-store';
import { ViewMenu } from './view-menu';

export interface LogToolbarProps {
  agentId: string;
  query: LogQuery;
  onQuery: (query: LogQuery) => void;
  settings: LogSettings;
  onSettings: ChangeLogSettings;
  search: RefObject<HTMLInputElement | null>;
  onLeaveSearch: () => void;
  hits: ReturnType<typeof useHits>;
  isBusy: boolean;
  error: Error | null;
  onRetry: () => void;
  store: LogStore | null;
  follows: boolean;
  onFollow: (follows: boolean) => void;
  compact: boolean;
}

/** How much there is in all. */
function LogSize({ store }: { store: LogStore | null }) {
  const extent = useLogStore(store, ({ extent }) => extent);
  if (extent === null || extent.lines === 0) return null;
  return (
    <span title={sizeOf(extent.bytes)} className="tabular hidden text-2xs text-ink-3 xl:inline">
      {countOf(extent.lines, 'line')}
    </span>
  );
}

/** What of the log is shown, and how. */
export function LogToolbar(props: LogToolbarProps) {
  const { agentId, query, onQuery, settings, search, hits, isBusy, error, onRetry, store, follows, onFollow } = props;
  return (
    <div role="toolbar" aria-label="Log" className="shrink-0 border-line border-b">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 px-3 py-1.5 text-xs sm:px-4">
        <SearchBar
          query={query}
          onQuery={onQuery}
          field={search}
          onLeave={props.onLeaveSearch}
          hits={hits}
          isBusy={isBusy}
          dims={settings.dims}
          onDims={(dims) => props.onSettings({ dims })}
        />
        <LevelFilter level={query.level} onLevel={(level) => onQuery({ ...query, level })} />
        <ComponentFilter
          agentId={agentId}
          components={query.components}
          onComponents={(components) => onQuery({ ...query, components })}
        />
        {!props.compact && (
          <TimeFilter
            from={query.from}
            to={query.to}
            isUtc={settings.isUtc}
            onSpan={(from, to) => onQuery({ ...query, from, to })}
          />
        )}
        <div className="ml-auto flex items-center gap-4">
          <LogSize store={store} />
          <ViewMenu settings={settings} onSettings={props.onSettings} store={store} />
          <a
            href={`${API_ADDRESS}/agents/${encodeURIComponent(agentId)}/logs/download?${paramsFromQuery(query)}`}
            download
            // On plain http to another host than localhost, this is all that tells whose link it is.
            referrerPolicy="same-origin"
            title="Download what is filtered"
            className="hit text-ink-3 hover:text-ink"
          >
            <Icon of={Download} size={14} strokeWidth={1.75} />
            <span className="sr-only">Download what is filtered</span>
          </a>
          <button
            type="button"
            role="switch"
            aria-checked={follows}
            onClick={() => onFollow(!follows)}
            className="hit flex items-center gap-1.5 text-ink-2 hover:text-ink"
          >
            <span
              aria-hidden="true"
              className={`relative h-3 w-5 rounded-full border transition-colors ${follows ? 'border-working bg-working stale:border-ink-3 stale:bg-ink-3' : 'border-ink-3'}`}
            >
              <span
                className={`absolute top-px size-2 rounded-full transition-[left] ${follows ? 'left-[9px] bg-ground' : 'left-px bg-ink-3'}`}
              />
            </span>
            Follow
          </button>
        </div>
      </div>
      {error !== null && (
        <p role="alert" className="flex items-baseline gap-3 bg-failed-soft px-3 py-1 text-failed text-xs sm:px-4">
          <span className="min-w-0 [overflow-wrap:anywhere]">{whyNot(error)}</span>
          <button type="button" onClick={onRetry} className="shrink-0 underline">
            Try again
          </button>
        </p>
      )}
    </div>
  );
}

function whyNot(error: Error): string {
  const isMissing = error instanceof RequestError && error.status === 404;
  return isMissing ? 'There is no such agent, or its log is not for you to see.' : error.message;
}
