import { exceeds } from '@interlude/protocol/json';
import type { Item, TranscriptPage } from '@interlude/protocol/read-models';

/** Turns of the first page. Older ones load while the reader scrolls. */
export const FIRST_PAGE = 30;
/** Maximum size of their text, in UTF-16 units: the server sends them in one write. */
const MAX_TEXT = 512 * 1024;
/** Approximate markup around an item's text. */
const ITEM_FRAME = 256;

/** Maximum size of the data in the markup, in UTF-16 units and in values: it is serialized and parsed in one step. */
const MAX_LENGTH = 1024 * 1024;
const MAX_VALUES = 20_000;

/**
 * The newest turns of a page, as many as fit into the markup.
 *
 * @returns null if the newest turn alone is too large; the browser then loads it
 */
export function firstPageOf(page: TranscriptPage): TranscriptPage | null {
  const first = newestOf(page);
  return exceeds(first.turns, MAX_LENGTH, MAX_VALUES) ? null : first;
}

function newestOf(page: TranscriptPage): TranscriptPage {
  let text = 0;
  let from = page.turns.length;
  while (from > 0) {
    text += page.turns[from - 1]?.items.reduce((sum, item) => sum + textOf(item), 0) ?? 0;
    if (text > MAX_TEXT && from < page.turns.length) break;
    from -= 1;
  }
  return from === 0 ? page : { ...page, turns: page.turns.slice(from), hasMore: true };
}

function textOf(item: Item): number {
  if (item.kind === 'tool-call') return ITEM_FRAME + 2 * item.argsText.length + (item.result?.length ?? 0);
  return ITEM_FRAME + ('text' in item ? item.text.length : 0);
}
