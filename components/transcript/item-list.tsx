'use client';

import type { Item, RequestItem, TaskItem } from '@interlude/protocol/read-models';
import { Fragment, type ReactNode, useContext, useMemo, useState } from 'react';
import { useProgressiveRows } from '@/components/ui/row-window';
import { UnfoldButton } from '@/components/ui/unfold';
import { requestsByCall } from './call-standing';
import { CutLine } from './cut-line';
import { FirstPaint } from './first-paint';
import { WantedAnchor } from './item-anchor';
import { callsOfTasks, type ItemRow, rowKey, rowOf, rowsOf, rowWeight } from './item-rows';
import { MessageView } from './message-view';
import { NoticeLine } from './notice-line';
import { PlanLine } from './plan-line';
import { ReasoningLine } from './reasoning-line';
import { repliesToSay } from './reply-link';
import { type AskedRequests, useRequestsElsewhere } from './requests-elsewhere';
import { FIRST_WEIGHT } from './row-weight';
import { around, FIRST_PAINT_ROWS, MORE_ROWS, stretchesOf, TURN_ROWS } from './shown-rows';
import { ToolCallLine } from './tool-call-line';
import { ToolRun } from './tool-run';

export interface ItemListProps {
  items: readonly Item[];
  /** When the last of them was over, as far as known. */
  endedAt: number | null;
  /** Whether user messages here still wait for their turn. */
  queued?: boolean;
  /** The card or the line for a moment of a task; `call` is the tool call that started it, shown in the card. */
  renderTask: (item: TaskItem, call: ReactNode) => ReactNode;
  renderRequest: (item: RequestItem) => ReactNode;
  /** The id of the tool call a task was started by. */
  startedBy: (item: TaskItem) => string | null;
}

/**
 * The items of a turn in order. Tool calls in a row form a tight list; a call that started a task is in its card. Of a
 * turn of thousands the middle is left out until somebody asks for it or is led there.
 */
export function ItemList(props: ItemListProps) {
  const { items, endedAt, queued = false, renderTask, renderRequest, startedBy } = props;
  const calls = useMemo(() => callsOfTasks(items, startedBy), [items, startedBy]);
  const rows = useMemo(() => rowsOf(items, calls), [items, calls]);
  const elsewhere = useRequestsElsewhere();
  const requests = useMemo((): AskedRequests => {
    const own = requestsByCall(items);
    return { get: (callId) => own.get(callId) ?? elsewhere.get(callId) };
  }, [items, elsewhere]);
  const [opened, setOpened] = useState<readonly (readonly [number, number])[]>([]);
  const wanted = useContext(WantedAnchor);
  const wantedRow = useMemo(() => rowOf(rows, items, wanted), [rows, items, wanted]);
  const isFirstPaint = useContext(FirstPaint) !== null;
  const limits = isFirstPaint ? FIRST_PAINT_ROWS : TURN_ROWS;

  const renderRow = ({ at, run }: ItemRow) => {
    const item = items[at] as Item;
    if (run !== null) return <ToolRun key={item.position} calls={run} requests={requests} />;
    const call = item.kind === 'task' ? calls.get(item) : undefined;
    return (
      <Fragment key={`${item.kind}:${item.position}`}>
        {item.kind === 'message' && (
          <MessageView item={item} queued={queued && item.role === 'user'} answers={repliesToSay(items, at)} />
        )}
        {item.kind === 'message' && <CutLine cut={item.cut} />}
        {item.kind === 'reasoning' && <ReasoningLine item={item} until={items[at + 1]?.at ?? endedAt} />}
        {item.kind === 'request' && renderRequest(item)}
        {item.kind === 'plan' && <PlanLine item={item} />}
        {item.kind === 'notice' && <NoticeLine item={item} />}
        {item.kind === 'task' &&
          renderTask(
            item,
            call === undefined ? null : <ToolCallLine call={call} request={requests.get(call.id)} inCard />,
          )}
      </Fragment>
    );
  };
  const stretches = useMemo(() => {
    const asked = wantedRow === null ? opened : [...opened, around(wantedRow)];
    return stretchesOf(rows.length, limits, asked);
  }, [rows, limits, opened, wantedRow]);
  const shown = useMemo(
    () => stretches.flatMap(({ from, to, isShown }) => (isShown ? rows.slice(from, to) : [])),
    [stretches, rows],
  );
  const waiting = useProgressiveRows(shown, {
    keyOf: (row) => rowKey(row, items),
    weightOf: (row) => rowWeight(row, items),
    firstWeight: FIRST_WEIGHT,
  });
  return stretches.map(({ from, to, isShown }) =>
    isShown ? (
      rows.slice(from, to).map((row) => (waiting.has(row) ? null : renderRow(row)))
    ) : (
      <LeftOut
        key={`left-out:${from}`}
        count={to - from}
        onMore={() => setOpened([...opened, [from, from + MORE_ROWS]])}
      />
    ),
  );
}

function LeftOut({ count, onMore }: { count: number; onMore: () => void }) {
  const next = Math.min(count, MORE_ROWS);
  return (
    <p className="my-2 flex items-baseline gap-3 text-ink-3 text-xs">
      <span className="tabular">… and {count.toLocaleString('en')} more</span>
      <UnfoldButton onPress={onMore}>Show {next === count ? 'them' : `the next ${next}`}</UnfoldButton>
    </p>
  );
}
