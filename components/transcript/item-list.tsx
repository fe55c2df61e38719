'use client';

import { Fragment, type ReactNode, useContext, useMemo, useState } from 'react';
import type { Item, RequestItem, TaskItem, ToolCallItem } from '@/lib/protocol/read-models';
import { requestsByCall } from './call-standing';
import { CutLine } from './cut-line';
import { FirstPaint } from './first-paint';
import { useHoldTail } from './hold-tail';
import { itemAnchor, WantedAnchor } from './item-anchor';
import { MessageView } from './message-view';
import { NoticeLine } from './notice-line';
import { ReasoningLine } from './reasoning-line';
import { repliesToSay } from './reply-link';
import { type AskedRequests, useRequestsElsewhere } from './requests-elsewhere';
import { FIRST_WEIGHT, itemWeight } from './row-weight';
import { around, FIRST_PAINT_ROWS, MORE_ROWS, stretchesOf, TURN_ROWS } from './shown-rows';
import { ToolCallLine } from './tool-call-line';
import { LONGEST_RUN, ToolRun } from './tool-run';
import { useWaitingRows } from './use-waiting-rows';

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

/** An item by its place in the turn, or tool calls in a row. */
type Row = { at: number; run: null } | { at: number; run: readonly ToolCallItem[] };

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
  const hold = useHoldTail();

  const renderRow = ({ at, run }: Row) => {
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
  const waiting = useWaitingRows(shown, {
    keyOf: (row) => rowKey(row, items),
    weightOf: (row) => rowWeight(row, items),
    firstWeight: FIRST_WEIGHT,
    isPaused: isFirstPaint,
  });
  return stretches.map(({ from, to, isShown }) =>
    isShown ? (
      rows.slice(from, to).map((row) => (waiting.has(row) ? null : renderRow(row)))
    ) : (
      <LeftOut
        key={`left-out:${from}`}
        count={to - from}
        onMore={() => {
          hold();
          setOpened([...opened, [from, from + MORE_ROWS]]);
        }}
      />
    ),
  );
}

function rowWeight({ at, run }: Row, items: readonly Item[]): number {
  if (run === null) return itemWeight(items[at] as Item);
  return Math.min(run.length, LONGEST_RUN) * itemWeight(run[0] as Item);
}

function rowKey({ at }: Row, items: readonly Item[]): string {
  const item = items[at] as Item;
  return `${item.kind}:${item.position}`;
}

function LeftOut({ count, onMore }: { count: number; onMore: () => void }) {
  const next = Math.min(count, MORE_ROWS);
  return (
    <p className="my-2 flex items-baseline gap-3 text-ink-3 text-xs">
      <span className="tabular">… and {count.toLocaleString('en')} more</span>
      <button
        type="button"
        onClick={onMore}
        className="underline decoration-line-strong underline-offset-2 hover:text-ink"
      >
        Show {next === count ? 'them' : `the next ${next}`}
      </button>
    </p>
  );
}

function rowsOf(items: readonly Item[], calls: ReadonlyMap<TaskItem, ToolCallItem>): Row[] {
  const inCards = new Set(calls.values());
  const rows: Row[] = [];
  for (let at = 0; at < items.length; at++) {
    if (items[at]?.kind !== 'tool-call') {
      rows.push({ at, run: null });
      continue;
    }
    const first = at;
    const run: ToolCallItem[] = [];
    for (; items[at]?.kind === 'tool-call'; at++) {
      const call = items[at] as ToolCallItem;
      if (!inCards.has(call)) run.push(call);
    }
    at -= 1;
    if (run.length > 0) rows.push({ at: first, run });
  }
  return rows;
}

function rowOf(rows: readonly Row[], items: readonly Item[], anchor: string | null): number | null {
  if (anchor === null) return null;
  const row = rows.findIndex(({ at, run }) => run === null && itemAnchor(items[at] as Item) === anchor);
  return row < 0 ? null : row;
}

function callsOfTasks(
  items: readonly Item[],
  startedBy: (item: TaskItem) => string | null,
): Map<TaskItem, ToolCallItem> {
  const byId = new Map<string, ToolCallItem>();
  for (const item of items) if (item.kind === 'tool-call' && !byId.has(item.id)) byId.set(item.id, item);
  const calls = new Map<TaskItem, ToolCallItem>();
  if (byId.size === 0) return calls;
  for (const item of items) {
    if (item.kind !== 'task' || item.phase !== 'started') continue;
    const id = startedBy(item);
    const call = id === null ? undefined : byId.get(id);
    if (call !== undefined) calls.set(item, call);
  }
  return calls;
}
