'use client';

import { Fragment, type ReactNode, useMemo } from 'react';
import type { Item, RequestItem, TaskItem, ToolCallItem } from '@/lib/protocol/read-models';
import { MessageView } from './message-view';
import { NoticeLine } from './notice-line';
import { ReasoningLine } from './reasoning-line';
import { repliesToSay } from './reply-link';
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

/** The items of a turn in order. Tool calls in a row form a tight list; a call that started a task is in its card. */
export function ItemList(props: ItemListProps) {
  const { items, endedAt, queued = false, renderTask, renderRequest, startedBy } = props;
  const calls = useMemo(() => callsOfTasks(items, startedBy), [items, startedBy]);
  const inCards = new Set(calls.values());
  const blocks: ReactNode[] = [];
  for (let at = 0; at < items.length; at++) {
    const item = items[at] as Item;
    if (item.kind === 'tool-call') {
      const run: ToolCallItem[] = [];
      while (items[at]?.kind === 'tool-call') {
        const call = items[at++] as ToolCallItem;
        if (!inCards.has(call)) run.push(call);
      }
      at -= 1;
      if (run.length > 0) blocks.push(<ToolRun key={item.position} calls={run} />);
      continue;
    }
    const call = item.kind === 'task' ? calls.get(item) : undefined;
    blocks.push(
      <Fragment key={`${item.kind}:${item.position}`}>
        {item.kind === 'message' && (
          <MessageView item={item} queued={queued && item.role === 'user'} answers={repliesToSay(items, at)} />
        )}
        {item.kind === 'reasoning' && <ReasoningLine item={item} until={items[at + 1]?.at ?? endedAt} />}
        {item.kind === 'request' && renderRequest(item)}
        {item.kind === 'notice' && <NoticeLine item={item} />}
        {item.kind === 'task' && renderTask(item, call === undefined ? null : <ToolCallLine call={call} inCard />)}
      </Fragment>,
    );
  }
  return blocks;
}

function callsOfTasks(
  items: readonly Item[],
  startedBy: (item: TaskItem) => string | null,
): Map<TaskItem, ToolCallItem> {
  const calls = new Map<TaskItem, ToolCallItem>();
  for (const item of items) {
    if (item.kind !== 'task' || item.phase !== 'started') continue;
    const id = startedBy(item);
    const call = items.find((other) => other.kind === 'tool-call' && other.id === id);
    if (call?.kind === 'tool-call') calls.set(item, call);
  }
  return calls;
}
