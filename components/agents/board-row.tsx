'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { memo } from 'react';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { hostOf, missingOf, providerOf } from './board-agent';
import { AgentState, Cell, Count, Ledger, None } from './board-cells';

/** The same columns in the head and in every row; what there is no room for goes, the name never does. */
export const BOARD_GRID =
  'grid grid-cols-[20px_minmax(0,1fr)_auto] items-baseline gap-x-3 @2xl:grid-cols-[20px_minmax(0,3fr)_minmax(0,2fr)_60px_48px_64px_64px] @6xl:grid-cols-[20px_minmax(0,5fr)_minmax(0,2fr)_minmax(0,1.3fr)_minmax(0,1.2fr)_56px_48px_64px_88px_minmax(0,1.3fr)_64px]';
export const ON_WIDE = '@max-2xl:hidden';
export const ON_WIDEST = '@max-6xl:hidden';

/** An agent on the board. Memoized: of a thousand rows only those that changed are rendered. */
export const BoardRow = memo(function BoardRow(props: {
  agent: AgentSummary;
  /** Its place among those that are shown. */
  at: number;
  isSelected: boolean;
  onSelect: (id: string, isSelected: boolean) => void;
}) {
  const { agent, at, isSelected, onSelect } = props;
  const { id, kind, retiredAt, owedCount, overdueCount, sessionCount, runningTaskCount, logLevel } = agent;
  const provider = providerOf(agent);
  const host = hostOf(agent);
  const stands = retiredAt !== null ? 'retired' : agent.connection === 'connected' ? 'connected' : null;
  // A runner that names no version of its agent has no other name for it than its kind.
  const isSaidBeside = kind !== null && provider.name === kind;
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows that stand alone are no table rows
    <div
      role="row"
      tabIndex={-1}
      aria-rowindex={at + 2}
      className={clsx(
        BOARD_GRID,
        'border-line border-b py-1.5 text-xs hover:bg-raised/60',
        retiredAt !== null && 'text-ink-3',
      )}
    >
      <Cell>
        <label className="-m-1.5 flex translate-y-0.5 p-1.5">
          <input
            type="checkbox"
            aria-label={`Select ${quoted(id)}`}
            checked={isSelected}
            onChange={(event) => onSelect(id, event.target.checked)}
            className="accent-ink"
          />
        </label>
      </Cell>
      <Cell isHead>
        <Link
          href={`/agents/${encodeURIComponent(id)}`}
          className="line-clamp-2 py-0.5 font-medium text-sm [overflow-wrap:anywhere] hover:underline"
        >
          <Name text={id} />
        </Link>
        <span className="block truncate text-2xs text-ink-3">
          {stands}
          <span className={clsx(isSaidBeside && '@6xl:hidden')}>
            {stands !== null && ' · '}
            <Name text={kind ?? 'unnamed kind'} />
          </span>
          <span className="@2xl:hidden">
            {' · '}
            {plural(sessionCount, 'session')}
            {owedCount > 0 && ` · owes ${owedCount}`}
          </span>
          {missingOf(agent) > 0 && (
            <span className="@6xl:hidden">
              {' · '}
              <Ledger agent={agent} />
            </span>
          )}
        </span>
      </Cell>
      <Cell className="@max-2xl:col-start-2 @max-2xl:row-start-2">
        <AgentState agent={agent} />
      </Cell>
      <Cell className={ON_WIDEST}>
        {provider.name === null ? <None /> : <Name text={provider.name} />}
        {provider.version !== null && (
          <span className="block truncate text-2xs text-ink-3">
            <Name text={provider.version} />
          </span>
        )}
      </Cell>
      <Cell className={ON_WIDEST}>{host === null ? <None /> : <Name text={host} />}</Cell>
      <Cell className={clsx(ON_WIDE, 'tabular text-right')}>
        <Count of={sessionCount} />
      </Cell>
      <Cell className={clsx(ON_WIDE, 'tabular text-right')}>
        <Count of={runningTaskCount} />
      </Cell>
      <Cell className={clsx(ON_WIDE, 'tabular text-right')}>
        <Count of={owedCount} />
        {overdueCount > 0 && <span className="block text-2xs text-waiting">{overdueCount} overdue</span>}
      </Cell>
      <Cell className={clsx(ON_WIDEST, 'pl-4')}>{logLevel.level ?? <None />}</Cell>
      <Cell className={ON_WIDEST}>
        <Ledger agent={agent} />
      </Cell>
      <Cell className="@max-2xl:col-start-3 @max-2xl:row-start-1 whitespace-nowrap text-right text-2xs text-ink-3">
        <Ago at={agent.lastSeenAt} />
      </Cell>
    </div>
  );
});
