import { placeOfControl } from './message-pieces';

/** A line that is not unfolded shows this much. */
const MOST_LINES = 12;
const MOST_CHARACTERS = { cut: 1_000, wrapped: 4_000 };
/** Of characters that a sign stands for, another font in the midst of the text: hundreds in each line hold up the page. */
const MOST_CONTROLS = { cut: 60, wrapped: 200 };

export interface ShownMessage {
  text: string;
  /** What is not shown, in words; null where it is all. */
  rest: string | null;
}

/** The beginning of a long message: enough to know it by. */
export function shownMessage(message: string, wraps: boolean): ShownMessage {
  const width = wraps ? 'wrapped' : 'cut';
  const most = placeOfControl(message.slice(0, MOST_CHARACTERS[width]), MOST_CONTROLS[width]);
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
  const lines = rest.split('\n').length;
  return { text, rest: isCutInLine && lines === 1 ? `${rest.length} more characters` : `${lines} more lines` };
}
