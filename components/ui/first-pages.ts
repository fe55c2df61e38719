import { countLines } from './count-lines';
import { type VerbatimPage, verbatimPage } from './verbatim-page';

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
