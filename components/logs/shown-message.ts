import { countLines } from '@/components/ui/count-lines';
import { UNSAFE } from './message-pieces';

/** A line that is not unfolded shows this much. */
const MOST_LINES = 12;
const MOST_CHARACTERS = { cut: 1_000, wrapped: 4_000 };
/** Of characters that a sign stands for. A hundred lines that are cut may be laid out at once, or fifty that wrap. */
const MOST_CONTROLS = { cut: 16, wrapped: 80 };
/**
 * Of stretches outside of ASCII: they mostly come from another font, and each change of it costs as much as a hundred
 * signs.
 */
const NOT_ASCII = /[^\0-\x7f]+/g;
const MOST_STRETCHES = { cut: 30, wrapped: 120 };

export interface ShownMessage {
  text: string;
  /** What is not shown, in words; null if it is all. */
  rest: string | null;
}

/** The beginning of a long message: enough to know it by. */
export function shownMessage(message: string, wraps: boolean): ShownMessage {
  const width = wraps ? 'wrapped' : 'cut';
  const beginning = message.slice(0, MOST_CHARACTERS[width]);
  const most = Math.min(
    placeOf(UNSAFE, MOST_CONTROLS[width], beginning),
    placeOf(NOT_ASCII, MOST_STRETCHES[width], beginning),
  );
  let end = 0;
  for (let line = 0; line < MOST_LINES; line++) {
    const next = message.indexOf('\n', end);
    if (next === -1) {
      end = message.length;
      break;
    }
    end = next + 1;
  }
  const isCutInLine = end > most;
  // never between the two halves of a character
  const cut = isCutInLine ? most - (/[\ud800-\udbff]/.test(message.charAt(most - 1)) ? 1 : 0) : end;
  const text = message.slice(0, cut).trimEnd();
  const rest = message.slice(cut).trim();
  if (rest === '') return { text, rest: null };
  const lines = countLines(rest);
  return { text, rest: isCutInLine && lines === 1 ? `${rest.length} more characters` : `${lines} more lines` };
}

/** Where a text has had so many matches; its length where it has fewer. */
function placeOf(pattern: RegExp, count: number, text: string): number {
  let left = count;
  for (const { index } of text.matchAll(pattern)) if (--left <= 0) return index;
  return text.length;
}
