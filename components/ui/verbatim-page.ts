import { truncateText } from '@interlude/protocol/text';
import { countLines } from './count-lines';
import { type VerbatimPiece, verbatimPieces } from './verbatim';

export interface PageLimits {
  characters: number;
  lines: number;
  /** A page of nothing but signs would be an element for each: it ends after so many. */
  pieces?: number;
}

export interface VerbatimPage {
  pieces: VerbatimPiece[];
  /** Where the next page begins. */
  end: number;
}

const MOST_PIECES = 1_000;

/** The part of a text that is shown next, cut behind a line where there is one. */
export function verbatimPage(text: string, from: number, limits: PageLimits): VerbatimPage {
  const whole = text.slice(from, endOf(text, from, limits));
  const most = limits.pieces ?? MOST_PIECES;
  const pieces = verbatimPieces(whole, 'lines', most);
  if (pieces.length <= most) return { pieces, end: from + whole.length };
  const first = pieces.slice(0, most);
  return { pieces: first, end: from + first.reduce((sum, piece) => sum + piece.text.length, 0) };
}

function endOf(text: string, from: number, { characters, lines }: PageLimits): number {
  let end = from;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf('\n', end);
    if (next === -1 || next + 1 > from + characters) {
      const isLast = text.length <= from + characters;
      if (isLast && next === -1) return text.length;
      // At least a whole character, though it be longer than a page.
      return end > from
        ? end
        : from + Math.max(1, truncateText(text.slice(from, from + characters + 1), characters).length);
    }
    end = next + 1;
  }
  return end;
}

/** How much of it is still to come. */
export function restInWords(text: string, from: number): string {
  const rest = text.slice(from);
  const lines = countLines(rest);
  const characters = `${rest.length.toLocaleString('en')} ${rest.length === 1 ? 'character' : 'characters'}`;
  return lines > 1 ? `${lines.toLocaleString('en')} more lines, ${characters}` : `${characters} more`;
}
