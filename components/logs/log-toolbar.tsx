'use client';

import { API_ADDRESS } from '@interlude/protocol/version';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { Download, SlidersHorizontal } from 'lucide';
import type { KeyboardEvent, ReactNode, RefObject } from 'react';
import { RequestError } from '@/components/live/fetch-json';
import { plural } from '@/components/ui/duration';
import { formatBinaryBytes } from '@/components/ui/format-size';
import { Icon } from '@/components/ui/icon';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useTitleWithKey } from '@/components/ui/shortcuts/use-shortcuts';
import type { ComponentChoicesProps, TimeChoicesProps, ViewChoicesProps } from './filter-choices';
import { FilterPopover } from './filter-popover';
import { LEVEL_COLOUR } from './log-format';
import { isFiltered, type LogQuery, paramsFromQuery } from './log-query';
import { type ChangeLogSettings, fieldTime, type LogSettings } from './log-settings';
import { type LogStore, useLogStore } from './log-store';
import { SearchBar, Steps, type useHits } from './search-bar';

interface LogToolbarProps {
  agentId: string;
  query: LogQuery;
  onQuery: (query: LogQuery) => void;
  settings: LogSettings;
  onSettings: ChangeLogSettings;
  search: RefObject<HTMLInputElement | null>;
  onLeaveSearch: () => void;
  hits: ReturnType<typeof useHits>;
  /** Moves to the next or previous error. */
  onError: (direction: 1 | -1) => void;
  isBusy: boolean;
  error: Error | null;
  onRetry: () => void;
  store: LogStore | null;
  follows: boolean;
  onFollow: (follows: boolean) => void;
  compact: boolean;
  /** The level of the agent's runner. */
  level: ReactNode;
  /** Further controls, at the end. */
  tools: ReactNode;
}

/** The size of the whole log. */
function LogSize({ store }: { store: LogStore | null }) {
  const extent = useLogStore(store, ({ extent }) => extent);
  useLogStore(store, ({ version }) => version());
  if (store === null || extent === null || extent.lines === 0) return null;
  const { lineCount, hasMore } = store.window;
  return (
    <span title={formatBinaryBytes(extent.bytes)} className="tabular hidden text-2xs text-ink-3 xl:inline">
      {isFiltered(store.query) && `${lineCount.toLocaleString('en')}${hasMore ? '+' : ''} of `}
      {plural(extent.lines, 'line')}
    </span>
  );
}

export function LogToolbar(props: LogToolbarProps) {
  const { agentId, query, onQuery, settings, search, hits, isBusy, error, onRetry, store, follows, onFollow } = props;
  return (
    <div role="toolbar" aria-label="Log" className="shrink-0 border-line border-b">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 px-3 py-1.5 text-xs max-sm:py-0.5 sm:px-4">
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
        <div className="ml-auto flex items-center gap-4 max-sm:gap-5 min-[1600px]:order-last">
          <LogSize store={store} />
          <ViewMenu settings={settings} onSettings={props.onSettings} store={store} />
          <a
            href={`${API_ADDRESS}/agents/${encodeURIComponent(agentId)}/logs/download?${paramsFromQuery(query)}`}
            download
            // On plain HTTP, only the referrer identifies the page that the request comes from.
            referrerPolicy="same-origin"
            title="Download filtered log"
            className="hit text-ink-3 hover:text-ink"
          >
            <Icon of={Download} size={14} strokeWidth={1.75} />
            <span className="sr-only">Download filtered log</span>
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
          {props.tools}
        </div>
        <div className="max-sm:strip max-sm:scroll-sideways order-2 flex w-full items-center gap-x-4 gap-y-1 min-[1600px]:contents sm:flex-wrap">
          <LevelFilter level={query.level} onLevel={(level) => onQuery({ ...query, level })} />
          <span className="flex shrink-0 items-center gap-2 text-ink-3 max-sm:gap-6">
            Errors
            <Steps of="error" onStep={props.onError} />
          </span>
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
          {props.level}
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
  return isMissing ? 'This agent doesn’t exist, or you don’t have access to its log.' : error.message;
}

const DIRECTIONS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Minimum level of the lines that are shown. The runner's own level is separate. */
export function LevelFilter(props: { level: LogLevel | null; onLevel: (level: LogLevel | null) => void }) {
  const { level, onLevel } = props;
  const lowest = LOG_LEVELS[0];
  const withKey = useTitleWithKey('log.level');
  const current = level ?? lowest;
  const choose = (value: LogLevel) => onLevel(value === lowest ? null : value);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const step = DIRECTIONS[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    const radios = [...event.currentTarget.querySelectorAll<HTMLElement>('[role="radio"]')];
    const to = (radios.indexOf(event.target as HTMLElement) + step) % radios.length;
    radios.at(to)?.focus();
    choose(LOG_LEVELS.at(to) ?? lowest);
  };
  return (
    <div role="radiogroup" aria-label="Show level" onKeyDown={onKeyDown} className="flex shrink-0 items-center">
      {/* The runner's level has the same words. */}
      <span aria-hidden="true" className="pr-1 text-ink-3">
        Show
      </span>
      {LOG_LEVELS.map((one, index) => (
        // biome-ignore lint/a11y/useSemanticElements: a native radio can't be struck through
        <button
          key={one}
          type="button"
          role="radio"
          aria-checked={one === current}
          tabIndex={one === current ? 0 : -1}
          onClick={() => choose(one)}
          title={withKey(index === 0 ? 'Every line' : `${one} and above`, index)}
          className={clsx(
            'flex h-6 items-center justify-center px-1.5 hover:text-ink',
            one === current && 'font-medium underline decoration-2 underline-offset-4',
            LOG_LEVELS.indexOf(current) > index
              ? 'text-ink-3 line-through decoration-line-strong'
              : one === current && index < 2
                ? 'text-ink'
                : LEVEL_COLOUR[one],
          )}
        >
          {one}
        </button>
      ))}
    </div>
  );
}

const componentCode = new CodeOnDemand(async () => (await import('./filter-choices')).ComponentChoices);
const timeCode = new CodeOnDemand(async () => (await import('./filter-choices')).TimeChoices);
const viewCode = new CodeOnDemand(async () => (await import('./filter-choices')).ViewChoices);

function ComponentFilter(props: ComponentChoicesProps) {
  const [first, ...others] = props.components;
  const chosen = first === undefined ? null : `${first || '(none)'}${others.length > 0 ? ` +${others.length}` : ''}`;
  usePreload(componentCode);
  return (
    <FilterPopover label="Component" chosen={chosen}>
      <OnDemand code={componentCode} name="The components" props={props} />
    </FilterPopover>
  );
}

/** Limits the time, by the runner's clock. */
function TimeFilter(props: TimeChoicesProps) {
  const { from, to, isUtc } = props;
  const words = [from !== null && `from ${shortTime(from, isUtc)}`, to !== null && `to ${shortTime(to, isUtc)}`];
  return (
    <FilterPopover label="Time" chosen={words.filter(Boolean).join(' ') || null}>
      <OnDemand code={timeCode} name="The times" props={props} />
    </FilterPopover>
  );
}

function shortTime(at: number, isUtc: boolean): string {
  return fieldTime(at, isUtc).slice(5).replace('T', ' ');
}

/** Display settings, which the browser stores for all logs. */
function ViewMenu(props: ViewChoicesProps) {
  return (
    <FilterPopover
      label="View"
      chosen={null}
      align="end"
      icon={<Icon of={SlidersHorizontal} size={14} strokeWidth={1.75} />}
    >
      <OnDemand code={viewCode} name="The settings" props={props} />
    </FilterPopover>
  );
}
