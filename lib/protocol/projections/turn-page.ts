import { comparePositions } from '../position';
import type { Item, Turn } from '../read-models';

/**
 * Closes what a closed turn left open: its messages no longer stream, the results of its tool calls are unknown until
 * they come after all, and the calls and requests of a turn that broke off have failed. Derived from the header, so live
 * and reloaded turns agree. Idempotent.
 */
export function settleTurn(turn: Turn): Turn {
  if (turn.kind === 'none') return turn;
  const over = turn.state !== 'open';
  const broken = turn.state === 'failed' || turn.state === 'interrupted';
  let changed = false;
  const items = turn.items.map((item): Item => {
    const settled = over ? settleItem(seen(item), broken, turn.endedAt) : seen(item);
    changed ||= settled !== item;
    return settled;
  });
  return changed ? { ...turn, items } : turn;
}

/** A message is in a turn only if the turn names it, so its agent has seen it. */
function seen(item: Item): Item {
  if (item.kind !== 'message' || item.delivery === null || item.delivery === 'seen') return item;
  return { ...item, delivery: 'seen', deliveryReason: null };
}

function settleItem(item: Item, broken: boolean, endedAt: number | null): Item {
  switch (item.kind) {
    case 'message':
    case 'reasoning':
      return item.streaming ? { ...item, streaming: false } : item;
    case 'tool-call':
      return item.status === 'running' ? { ...item, status: broken ? 'failed' : 'unknown', endedAt } : item;
    case 'request':
      return broken && item.outcome === null ? { ...item, outcome: 'cancelled', resolvedAt: endedAt } : item;
    default:
      return item;
  }
}

/** Inserts an item by its position. */
export function insertItem(items: readonly Item[], item: Item): Item[] {
  const at = items.findIndex((other) => comparePositions(other.position, item.position) > 0);
  return at < 0 ? [...items, item] : [...items.slice(0, at), item, ...items.slice(at)];
}
