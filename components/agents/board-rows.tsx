'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useVirtualizer } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import { memo, type ReactNode, useEffect, useRef, useState } from 'react';
import { glyphOf, STATE_WORD } from '@/components/sessions/session-labels';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { hostOf, missingOf, providerOf, stateCounts, urgentState } from './board-agent';

/** Height of a two-line row, until it is measured. */
const ROW_PX = 49;
/** Rows rendered beyond each end of the window. */
const BEYOND = 10;
/** The window size that the server assumes. */
const FIRST = { width: 0, height: 900 };

/** The rows near the window, because a fleet may have thousands. */
export function BoardRows(props: {
  agents: readonly AgentSummary[];
  selected: ReadonlySet<string>;
  onSelect: (id: string, isSelected: boolean) => void;
}) {
  'use no memo';
  const { agents, selected, onSelect } = props;
  const box = useRef<HTMLDivElement>(null);
  const [above, setAbove] = useState(0);
  useEffect(() => {
    const scroller = box.current?.closest('main');
    if (scroller == null || box.current === null) return;
    // parts above may fold or load later
    const size = new ResizeObserver(() => {
      const top = box.current?.getBoundingClientRect().top ?? 0;
      setAbove(Math.round(top - scroller.getBoundingClientRect().top + scroller.scrollTop));
    });
    size.observe(scroller);
    for (const child of scroller.children) size.observe(child);
    return () => size.disconnect();
  }, []);
  const virtualizer = useVirtualizer<HTMLElement, HTMLDivElement>({
    count: agents.length,
    getScrollElement: () => box.current?.closest('main') ?? null,
    estimateSize: () => ROW_PX,
    getItemKey: (at) => agents[at]?.id ?? at,
    overscan: BEYOND,
    scrollMargin: above,
    initialRect: FIRST,
  });
  const items = virtualizer.getVirtualItems();
  const before = (items[0]?.start ?? above) - above;
  const behind = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? above) - above);
  return (
    // In flow instead of positioned, so a wrong guess by the server moves no row.
    // biome-ignore lint/a11y/useSemanticElements: virtual rows can't be table rows
    <div ref={box} role="rowgroup" style={{ paddingTop: before, paddingBottom: Math.max(0, behind) }}>
      {items.map(({ key, index }) => {
        const agent = agents[index] as AgentSummary;
        return (
          <div key={key} data-index={index} ref={virtualizer.measureElement}>
            <BoardRow agent={agent} at={index} isSelected={selected.has(agent.id)} onSelect={onSelect} />
          </div>
        );
      })}
    </div>
  );
}

function Cell({ isHead = false, className, children }: { isHead?: boolean; className?: string; children: ReactNode }) {
  return (
    <div role={isHead ? 'rowheader' : 'cell'} className={clsx('wrap-break-word min-w-0', className)}>
      {children}
    </div>
  );
}

function None() {
  return (
    <span className="text-ink-3">
      <span aria-hidden="true">–</span>
      <span className="sr-only">unknown</span>
    </span>
  );
}

/** A count, dimmed if it is zero. */
function Count({ of }: { of: number }) {
  return <span className={of === 0 ? 'text-ink-3' : undefined}>{of.toLocaleString('en')}</span>;
}

/** The most urgent state of an agent's sessions, and the number of sessions in it. */
function AgentState({ agent }: { agent: AgentSummary }) {
  const { sessionCount } = agent;
  const state = urgentState(agent);
  if (state === null) return <span className="text-ink-3">no session</span>;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(state)} className="relative top-[1.5px]" />
      <span className="min-w-0 truncate">{STATE_WORD[state]}</span>
      {sessionCount > 1 && (
        <span className="tabular shrink-0 text-ink-3">
          {`${stateCounts(agent)[state].toLocaleString('en')} of ${sessionCount.toLocaleString('en')}`}
        </span>
      )}
    </span>
  );
}

function Ledger({ agent }: { agent: AgentSummary }) {
  if (missingOf(agent) === 0) return <span className="text-ink-3">nothing missing</span>;
  const parts = [
    agent.lostCount > 0 && `${agent.lostCount} lost`,
    agent.quarantinedCount > agent.parkedCount && `${agent.quarantinedCount - agent.parkedCount} rejected`,
    agent.parkedCount > 0 && `${agent.parkedCount} unassigned`,
  ];
  return <span className="text-waiting">{parts.filter(Boolean).join(' · ')}</span>;
}

/** Columns of the head and of every row. Narrow boards drop columns, but never the name. */
export const BOARD_GRID =
  'grid grid-cols-[20px_minmax(0,1fr)_auto] items-baseline gap-x-3 @2xl:grid-cols-[20px_minmax(0,3fr)_minmax(0,2fr)_60px_48px_64px_64px] @6xl:grid-cols-[20px_minmax(0,5fr)_minmax(0,2fr)_minmax(0,1.3fr)_minmax(0,1.2fr)_56px_48px_64px_88px_minmax(0,1.3fr)_64px]';
export const ON_WIDE = '@max-2xl:hidden';
export const ON_WIDEST = '@max-6xl:hidden';

/** A row of the board. Memoized, because few of a thousand rows change at a time. */
const BoardRow = memo(function BoardRow(props: {
  agent: AgentSummary;
  /** Index among the shown rows. */
  at: number;
  isSelected: boolean;
  onSelect: (id: string, isSelected: boolean) => void;
}) {
  const { agent, at, isSelected, onSelect } = props;
  const { id, kind, retiredAt, owedCount, overdueCount, sessionCount, runningTaskCount, logLevel } = agent;
  const provider = providerOf(agent);
  const host = hostOf(agent);
  const connection = retiredAt !== null ? 'retired' : agent.connection === 'connected' ? 'connected' : null;
  // Without a version, the provider column shows the kind.
  const isShownBeside = kind !== null && provider.name === kind;
  return (
    // biome-ignore lint/a11y/useSemanticElements: virtual rows can't be table rows
    <div
      role="row"
      tabIndex={-1}
      aria-rowindex={at + 2}
      className={clsx(
        BOARD_GRID,
        'list-row-line border-line border-b text-xs hover:bg-raised/60',
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
          className="line-clamp-2 py-0.5 font-medium text-row [overflow-wrap:anywhere] hover:underline"
        >
          <Name text={id} />
        </Link>
        <span className="block truncate text-2xs text-ink-3">
          {connection}
          <span className={clsx(isShownBeside && '@6xl:hidden')}>
            {connection !== null && ' · '}
            <Name text={kind ?? 'unknown kind'} />
          </span>
          <span className="@2xl:hidden">
            {' · '}
            {plural(sessionCount, 'session')}
            {owedCount > 0 && ` · ${plural(owedCount, 'pending reply', 'pending replies')}`}
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
