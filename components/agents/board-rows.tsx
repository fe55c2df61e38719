'use client';

import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { listedStateOf } from '@interlude/protocol/session-predicates';
import { useVirtualizer } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import { Fragment, memo, useEffect, useRef, useState } from 'react';
import { ALL } from '@/components/live/fleet-store';
import { useFleet } from '@/components/live/use-fleet';
import { lastLine, sessionTitle } from '@/components/sessions/session-labels';
import { Ago } from '@/components/ui/clock';
import { Link } from '@/components/ui/link';
import { Name, Phrase, ToolLine } from '@/components/ui/name';
import { isRange } from '@/components/ui/use-selection';
import { quoted } from '@/components/ui/verbatim';
import {
  type AgentWork,
  hostOf,
  isDisconnected,
  leadOf,
  providerOf,
  ShownWork,
  sessionsInWords,
  TIMED_STATES,
} from './board-agent';
import { COLUMNS, exceptionsOf, type Sort } from './board-columns';

/** Height of a two-line row, until it is measured. */
const ROW_PX = 49;
/** Rows rendered beyond each end of the window. */
const BEYOND = 10;
/** The window size that the server assumes. */
const FIRST = { width: 0, height: 900 };

/** The rows near the window, because a fleet may have thousands. */
export function BoardRows(props: {
  agents: readonly AgentSummary[];
  /** The same array while unchanged. */
  columns: readonly Sort[];
  selected: ReadonlySet<string>;
  onSelect: (id: string, isSelected: boolean, isRange: boolean) => void;
}) {
  'use no memo';
  const { agents, columns, selected, onSelect } = props;
  const [shownWork] = useState(() => new ShownWork());
  const works = useFleet(({ sessions }) => shownWork.read(sessions.list(ALL)?.rows));
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
          // The row's number is outside the memoized cells: an agent that moves up renumbers all rows below.
          // biome-ignore lint/a11y/useSemanticElements: virtual rows can't be table rows
          <div
            key={key}
            role="row"
            tabIndex={-1}
            aria-rowindex={index + 2}
            data-agent-row={agent.id}
            data-index={index}
            ref={virtualizer.measureElement}
            className={clsx(
              BOARD_GRID,
              'list-row-line -outline-offset-2 scroll-mt-24 scroll-mb-24 border-line border-b text-xs hover:bg-raised/60 has-checked:bg-raised',
              agent.retiredAt !== null && 'text-ink-3',
            )}
          >
            <RowCells
              agent={agent}
              work={works.get(agent.id)}
              columns={columns}
              isSelected={selected.has(agent.id)}
              onSelect={onSelect}
            />
          </div>
        );
      })}
    </div>
  );
}

/**
 * Head and rows are grids with the same tracks, in `--columns`, and with room for the focus ring. Where the columns
 * don't fit, each row is a card.
 */
export const BOARD_GRID =
  '-mx-2 grid px-2 grid-cols-[20px_minmax(0,1fr)_auto] items-baseline gap-x-4 @4xl:grid-cols-(--columns)';

/** Class names of a column's cell: its place in a card, and its side in the table. */
export function placeOf(sort: Sort, isHead = false): string {
  const isCount = COLUMNS[sort].isCount === true;
  return clsx('wrap-break-word min-w-0', isCount && 'tabular text-right', isInCard(sort, isHead));
}

function isInCard(sort: Sort, isHead: boolean): string {
  if (sort === 'name') return '';
  if (sort === 'seen') return '@max-4xl:col-start-3 @max-4xl:row-start-1 whitespace-nowrap';
  if (sort !== 'state' || isHead) return '@max-4xl:hidden';
  return '@max-4xl:col-start-2 @max-4xl:-col-end-1 @max-4xl:row-start-2';
}

/** The cells of a row. Memoized, because few of a thousand rows change at a time. */
const RowCells = memo(function RowCells(props: {
  agent: AgentSummary;
  work: AgentWork | undefined;
  columns: readonly Sort[];
  isSelected: boolean;
  onSelect: (id: string, isSelected: boolean, isRange: boolean) => void;
}) {
  const { agent, work, columns, isSelected, onSelect } = props;
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: virtual rows can't be table rows */}
      <div role="cell">
        <label className="-m-1.5 pointer-coarse:-m-4 flex translate-y-0.5 p-1.5 pointer-coarse:p-4">
          <input
            type="checkbox"
            aria-label={`Select ${quoted(agent.id)}`}
            checked={isSelected}
            onChange={(event) => onSelect(agent.id, event.target.checked, isRange(event))}
            className="accent-ink"
          />
        </label>
      </div>
      {columns.map((sort) => (
        <div key={sort} role={sort === 'name' ? 'rowheader' : 'cell'} className={placeOf(sort)}>
          {sort === 'name' ? <AgentName agent={agent} /> : COLUMNS[sort].cell(agent, work)}
        </div>
      ))}
      {/* biome-ignore lint/a11y/useSemanticElements: virtual rows can't be table rows */}
      <div
        role="cell"
        className="col-start-2 -col-end-1 flex min-h-[1lh] items-baseline gap-x-3 text-2xs text-ink-3 @max-4xl:flex-wrap"
      >
        <Doing session={TIMED_STATES.has(agent.state) ? leadOf(agent, work) : undefined} />
        <Exceptions agent={agent} columns={columns} />
        <span className="tabular @4xl:shrink-0">{sessionsInWords(agent)}</span>
      </div>
    </>
  );
});

/** The request that the agent waits for, else the reason of its failure and the title of the session. */
function Doing({ session }: { session: SessionSummary | undefined }) {
  if (session === undefined) return null;
  const { state, request } = session;
  const hasReason = state === 'needs-input' || listedStateOf(session) === 'failed';
  return (
    <span className="min-w-0 max-w-full truncate text-ink-2">
      {state === 'needs-input' && request?.kind === 'permission' ? (
        <ToolLine {...request} />
      ) : (
        <Phrase text={hasReason ? (request?.line ?? lastLine(session, true)) : sessionTitle(session)} />
      )}
      {hasReason && request === undefined && (
        <>
          {' · '}
          <Phrase text={sessionTitle(session)} />
        </>
      )}
    </span>
  );
}

/** The agent's name, in a card with its provider and host. */
function AgentName({ agent }: { agent: AgentSummary }) {
  const where = [providerOf(agent).name, hostOf(agent)].filter((text) => text !== null);
  return (
    <span className="flex items-baseline gap-x-3">
      <Link
        href={`/agents/${encodeURIComponent(agent.id)}`}
        className="line-clamp-2 font-medium text-row [overflow-wrap:anywhere] hover:underline pointer-coarse:py-3"
      >
        {COLUMNS.name.cell(agent)}
      </Link>
      <span className="@max-md:hidden min-w-0 flex-1 truncate text-2xs text-ink-3 @4xl:hidden">
        {where.map((text, index) => (
          <Fragment key={text}>
            {index > 0 && ' · '}
            <Name text={text} />
          </Fragment>
        ))}
      </span>
    </span>
  );
}

/** Exceptions of an agent: retired, disconnected, or a column's. */
function Exceptions({ agent, columns }: { agent: AgentSummary; columns: readonly Sort[] }) {
  const { retiredAt, connectedSince } = agent;
  const others = exceptionsOf(agent, columns);
  const isAway = isDisconnected(agent);
  if (retiredAt === null && !isAway && others === '') return null;
  return (
    <span className="text-waiting @4xl:shrink-0">
      {retiredAt !== null && <span className="text-ink-3">Retired</span>}
      {isAway && connectedSince !== null && (
        <>
          Disconnected <Ago at={connectedSince} inWords />
        </>
      )}
      {(retiredAt !== null || isAway) && others !== '' && ' · '}
      {others}
    </span>
  );
}
