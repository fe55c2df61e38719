import { truncateText } from '@interlude/protocol/text';
import { type VerbatimPiece, verbatimPieces } from './verbatim';

export interface PageLimits {
  characters: number;
  lines: number;
  /** Bounds the number of elements: each label is one. */
  pieces?: number;
}

export interface VerbatimPage {
  pieces: VerbatimPiece[];
  /** Start of the next page. */
  end: number;
}

const MAX_PIECES = 1_000;

/** The next page of a text. Ends after a line break if there is one. */
export function verbatimPage(text: string, from: number, limits: PageLimits): VerbatimPage {
  const whole = text.slice(from, endOf(text, from, limits));
  const most = limits.pieces ?? MAX_PIECES;
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
      // At least one whole character, even if it exceeds the page.
      return end > from
        ? end
        : from + Math.max(1, truncateText(text.slice(from, from + characters + 1), characters).length);
    }
    end = next + 1;
  }
  return end;
}

/** `12 more lines, 3,401 characters`. */
export function remainderText(text: string, from: number): string {
  const rest = text.slice(from);
  const lines = countLines(rest);
  const characters = `${rest.length.toLocaleString('en')} ${rest.length === 1 ? 'character' : 'characters'}`;
  return lines > 1 ? `${lines.toLocaleString('en')} more lines, ${characters}` : `${characters} more`;
}

/** Limits of one text's first page. */
export const FIRST_PAGE = { characters: 6_000, lines: 100, pieces: 1_000 };
/** Limits of all first pages together: as much as a browser lays out without a pause. */
const TOGETHER = { characters: 18_000, lines: 300, pieces: 1_000 };
/** Minimum for each text, however much earlier ones use. */
const MINIMUM = { characters: 100, lines: 3, pieces: 5 };
/** Layout cost of a text by itself, in pieces. */
const TEXT_PIECES = 15;

const MEASURES = ['characters', 'lines', 'pieces'] as const;

/**
 * The first pages of texts that are shown together. Each gets its minimum, and earlier texts get more of the shared
 * rest: dozens of pages at full size would freeze the browser.
 */
export function firstPages(texts: readonly string[]): VerbatimPage[] {
  const left = { ...TOGETHER, pieces: TOGETHER.pieces - TEXT_PIECES * (texts.length - 1) };
  // A short text needs less than the minimum.
  const reserved = ({ length }: string, measure: keyof typeof MINIMUM) => Math.min(MINIMUM[measure], length);
  for (const text of texts) for (const measure of MEASURES) left[measure] -= reserved(text, measure);
  return texts.map((text) => {
    const limits = { ...MINIMUM };
    for (const measure of MEASURES) {
      left[measure] += reserved(text, measure);
      limits[measure] = Math.max(MINIMUM[measure], Math.min(FIRST_PAGE[measure], left[measure]));
    }
    const page = verbatimPage(text, 0, limits);
    left.characters -= page.end;
    left.lines -= countLines(text.slice(0, page.end));
    left.pieces -= page.pieces.length;
    return page;
  });
}

/** Number of line breaks plus one. */
export function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
