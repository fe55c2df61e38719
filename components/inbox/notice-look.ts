import { comparePositions, type Position } from '@interlude/protocol/position';
import type { Notice } from './notices';

/** The last look of this browser is kept under this name. */
export const LOOK_KEY = 'notices-look';

/** The last look at what stands, of whichever tab: what comes up after it is told, once. */
export interface Look {
  /** When, by the server's clock. */
  at: number;
  /** Everything up to here was known. */
  upTo: Position;
  /** The keys of what stood, and needs no other notification. */
  told: readonly string[];
}

/** What comes up by time alone has no position of its own; and it may be told so much later: it has to settle first. */
const SETTLING_MS = 15_000;
/** Keys kept. Anything older is recognised by its position or its time. */
const MOST_TOLD = 500;

/**
 * @param before null at the first look of all: what stands then is no news. Nor is it on a server that has begun anew
 * @param upTo everything up to here is known
 */
export function nextLook(
  before: Look | null,
  standing: readonly Notice[],
  now: number,
  upTo: Position,
): { look: Look; fresh: Notice[] } {
  const told = new Set(before?.told);
  const since = before !== null && comparePositions(before.upTo, upTo) <= 0 ? before : null;
  const cameUpAfter = ({ at, position }: Notice, { upTo, at: lookedAt }: Look) =>
    (position !== null && comparePositions(position, upTo) > 0) || at > lookedAt - SETTLING_MS;
  const isFresh = (notice: Notice) => since !== null && !told.has(notice.key) && cameUpAfter(notice, since);
  const newestFirst = standing.length <= MOST_TOLD ? standing : standing.toSorted((a, b) => b.at - a.at);
  const kept = newestFirst.filter(({ at }, place) => place < MOST_TOLD || at > now - 2 * SETTLING_MS);
  const keys = [...new Set([...kept.map(({ key }) => key), ...told])].slice(0, Math.max(MOST_TOLD, kept.length));
  return { look: { at: now, upTo, told: keys }, fresh: standing.filter(isFresh) };
}

/** @param stored as `JSON.stringify` wrote it; anything else counts as nothing */
export function lookOf(stored: string | null): Look | null {
  try {
    const { at, upTo, told } = JSON.parse(stored ?? '') as Look;
    return typeof at === 'number' && typeof upTo === 'string' && Array.isArray(told) ? { at, upTo, told } : null;
  } catch {
    return null;
  }
}
