import type { Item, TaskItem, ToolCallItem } from '@interlude/protocol/read-models';
import { itemAnchor } from './item-anchor';
import { itemWeight } from './row-weight';
import { LONGEST_RUN } from './tool-run';

/** An item by its place in the turn, or tool calls in a row. */
export type ItemRow = { at: number; run: null } | { at: number; run: readonly ToolCallItem[] };

export function rowsOf(items: readonly Item[], calls: ReadonlyMap<TaskItem, ToolCallItem>): ItemRow[] {
  const inCards = new Set(calls.values());
  const rows: ItemRow[] = [];
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
