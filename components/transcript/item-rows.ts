'use client';

import type { Item, TaskItem, ToolCallItem } from '@interlude/protocol/read-models';
import { createContext } from 'react';
import { itemWeight } from './row-weight';

/** Longer runs show only their start and end at first. */
export const LONGEST_RUN = 14;

/** An item by its index in the turn, or consecutive tool calls. */
export type ItemRow = { at: number; run: null } | { at: number; run: readonly ToolCallItem[] };

export function rowsOf(items: readonly Item[], calls: ReadonlyMap<TaskItem, ToolCallItem>): ItemRow[] {
  const inCards = new Set(calls.values());
  const rows: ItemRow[] = [];
  for (let index = 0; index < items.length; index++) {
    if (items[index]?.kind !== 'tool-call') {
      rows.push({ at: index, run: null });
      continue;
    }
    const first = index;
    const run: ToolCallItem[] = [];
    for (; items[index]?.kind === 'tool-call'; index++) {
      const call = items[index] as ToolCallItem;
      if (!inCards.has(call)) run.push(call);
    }
    index -= 1;
    if (run.length > 0) rows.push({ at: first, run });
  }
  return rows;
}

export function rowOf(rows: readonly ItemRow[], items: readonly Item[], anchor: string | null): number | null {
  if (anchor === null) return null;
  const row = rows.findIndex(({ at, run }) => run === null && itemAnchor(items[at] as Item) === anchor);
  return row < 0 ? null : row;
}

export function callsOfTasks(
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

export function rowWeight({ at, run }: ItemRow, items: readonly Item[]): number {
  if (run === null) return itemWeight(items[at] as Item);
  return Math.min(run.length, LONGEST_RUN) * itemWeight(run[0] as Item);
}

export function rowKey({ at }: ItemRow, items: readonly Item[]): string {
  const item = items[at] as Item;
  return `${item.kind}:${item.position}`;
}

/** Rows `[from, to)` of a long list, shown or left out. */
interface Section {
  from: number;
  to: number;
  isShown: boolean;
}

/** Rows shown at the beginning and end of a turn. */
interface RowLimits {
  head: number;
  tail: number;
}

/** Limits before hydration and after it. */
export const FIRST_PAINT_ROWS: RowLimits = { head: 10, tail: 40 };
export const TURN_ROWS: RowLimits = { head: 60, tail: 120 };
/** Rows added per press. */
export const MORE_ROWS = 200;
/** Rows shown on either side of a link's target. */
const AROUND = 20;
/** The tail moves in steps, so that not every new row hides an old one. */
const TAIL_STEP = 40;

/**
 * The rows of a turn that are shown. Rendering ten thousand would block the server and the page.
 *
 * @param opened rows the reader has opened, as `[from, to)`
 */
export function sectionsOf(
  count: number,
  { head, tail }: RowLimits,
  opened: readonly (readonly [number, number])[] = [],
): Section[] {
  if (count <= head + tail + TAIL_STEP) return [{ from: 0, to: count, isShown: true }];
  const tailFrom = Math.floor((count - tail) / TAIL_STEP) * TAIL_STEP;
  const wanted = [[0, head] as const, ...opened, [tailFrom, count] as const]
    .map(([from, to]) => [Math.max(0, from), Math.min(count, to)] as const)
    .sort((a, b) => a[0] - b[0]);
  const stretches: Section[] = [];
  let index = 0;
  for (const [from, to] of wanted) {
    if (to <= index) continue;
    if (from > index) stretches.push({ from: index, to: from, isShown: false });
    const last = stretches.at(-1);
    if (last?.isShown) last.to = to;
    else stretches.push({ from: Math.max(from, index), to, isShown: true });
    index = to;
  }
  return stretches;
}

export function rowsAround(row: number): readonly [number, number] {
  return [row - AROUND, row + AROUND];
}

/** The anchor of an item; null if nothing links to it. */
export function itemAnchor(item: Item): string | null {
  switch (item.kind) {
    case 'task':
      return `task-${item.position}`;
    case 'message':
    case 'request':
      return `${item.kind}-${item.id}`;
    default:
      return null;
  }
}

/** The target of the last jump, shown even in the middle of a long turn. */
export const TargetAnchor = createContext<string | null>(null);
