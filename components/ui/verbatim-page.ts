import { truncateText } from '@interlude/protocol/text';
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
export function remainderText(text: string, from: number): string {
  const rest = text.slice(from);
  const lines = countLines(rest);
  const characters = `${rest.length.toLocaleString('en')} ${rest.length === 1 ? 'character' : 'characters'}`;
  return lines > 1 ? `${lines.toLocaleString('en')} more lines, ${characters}` : `${characters} more`;
}

/** What one text shows at first. */
export const FIRST_PAGE = { characters: 6_000, lines: 100, pieces: 1_000 };
/** What all parts of one thing show at first: as much as a browser lays out without a pause. */
const TOGETHER = { characters: 18_000, lines: 300, pieces: 1_000 };
/** What each part has of that, however much those before it take. */
const LEAST = { characters: 100, lines: 3, pieces: 5 };
/** A part costs as much to be laid out as so many pieces. */
const PART = 15;

type Room = typeof TOGETHER;
const MEASURES = ['characters', 'lines', 'pieces'] as const;

/**
 * The first pages of texts that stand together, in their order: what comes first has the more room, and every one its
 * beginning. Dozens of parts, each of which alone would do, would else hold up the page.
 */
export function firstPages(texts: readonly string[]): VerbatimPage[] {
  const left: Room = { ...TOGETHER, pieces: TOGETHER.pieces - PART * (texts.length - 1) };
  for (const text of texts) take(left, leastOf(text));
  return texts.map((text) => {
    const kept = leastOf(text);
    const most = roomOf((measure) =>
      Math.max(LEAST[measure], Math.min(FIRST_PAGE[measure], left[measure] + kept[measure])),
    );
    const page = verbatimPage(text, 0, most);
    const lines = countLines(text.slice(0, page.end));
    const used: Room = { characters: page.end, lines, pieces: page.pieces.length };
    take(
      left,
      roomOf((measure) => used[measure] - kept[measure]),
    );
    return page;
  });
}

/** Nothing needs more room than it has characters. */
function leastOf(text: string): Room {
  return roomOf((measure) => Math.min(LEAST[measure], text.length));
}

function roomOf(of: (measure: keyof Room) => number): Room {
  return { characters: of('characters'), lines: of('lines'), pieces: of('pieces') };
}

function take(from: Room, room: Room): void {
  for (const measure of MEASURES) from[measure] -= room[measure];
}

/** @returns 1 for a text without a line break, and one more for each */
export function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
