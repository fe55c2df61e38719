import type { Item, Turn } from '@interlude/protocol/read-models';
import { LINE_KEPT, LONGEST_LINE } from '@/components/ui/fold-lines';

const LINE = 22;
const CHARACTERS_PER_LINE = 84;

/**
 * How high a turn will probably be, in pixels, before it has been laid out. The better the guess, the less the
 * scrollbar jumps.
 */
export function estimateTurnHeight(turn: Turn): number {
  const known = guesses.get(turn);
  if (known !== undefined) return known;
  const items = turn.items.reduce((sum, item) => sum + itemHeight(item), 0);
  const guess = 60 + (turn.kind === 'between-run' ? 28 : 0) + items;
  guesses.set(turn, guess);
  return guess;
}

/** Asked for again with every page of older turns; a turn that did not change keeps its identity. */
const guesses = new WeakMap<Turn, number>();

function itemHeight(item: Item): number {
  switch (item.kind) {
    case 'message':
      return textHeight(item.text) + 14 + (item.role === 'user' ? 14 : 0);
    case 'task':
      return item.phase === 'started' ? 76 : 24;
    case 'request':
      return item.outcome === null ? 80 : 26;
    default:
      return 25;
  }
}

/** Of more, the sum is all that matters: a megabyte of text is not scanned for its lines. */
const MOST_SCANNED = 20_000;

/** Lines count, of which very long ones are folded. */
function textHeight(text: string): number {
  let lines = 0;
  let shown = 0;
  let at = 0;
  while (at <= text.length && shown < MOST_SCANNED) {
    const next = text.indexOf('\n', at);
    const end = next === -1 ? text.length : next;
    const length = end - at > LONGEST_LINE ? LINE_KEPT : end - at;
    lines += Math.max(0.6, Math.ceil(length / CHARACTERS_PER_LINE));
    shown += length + 1;
    at = end + 1;
  }
  return (lines + Math.max(0, text.length - at) / CHARACTERS_PER_LINE) * LINE;
}
