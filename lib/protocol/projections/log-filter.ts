import type { LogLine } from '../read-models';
import { LOG_LEVELS, type LogLevel } from '../record-vocabulary';

/** A regular expression in RE2 syntax, which runs in time linear to the text. */
export interface LogRegex {
  readonly source: string;
  /** Text that every matching message contains; null if none is known. */
  readonly required: RequiredText | null;
  test(message: string): boolean;
  /**
   * Where it matches: `[start, end)`, ascending, found one at a time; null for an empty match. Each takes at most
   * `MAX_HIT_STEPS`, so finding all the matches of a long line in one go would take too long.
   */
  hits(message: string): Iterable<[number, number] | null>;
}

/** Which lines of a log are wanted. The server filters stored lines by it, and the browser live ones: both alike. */
export interface LogFilter {
  /** This level and those above; null for all. */
  level: LogLevel | null;
  /** Any of them; empty for all. */
  components: readonly string[];
  /** All of them, as `parseTerms` gives them. */
  terms: readonly string[];
  regex: LogRegex | null;
  /** Of `occurredAt`, in epoch milliseconds, both inclusive. */
  from: number | null;
  to: number | null;
}

export const EVERY_LINE: LogFilter = { level: null, components: [], terms: [], regex: null, from: null, to: null };

/** Words separated by blanks; a phrase in double quotes is one term. Folded, without repeats. */
export function parseTerms(text: string): string[] {
  const found = [...text.matchAll(/"([^"]*)"?|[^\s"]+/g)].map(([word, phrase]) => phrase ?? word);
  return [...new Set(found.filter((term) => term.trim() !== '').map(foldText))];
}

/** Whether the filter looks into the text of messages. */
export function searchesText({ terms, regex }: LogFilter): boolean {
  return terms.length > 0 || regex !== null;
}

/** Text that a message must contain to match, as far as the filter alone tells. */
export function requiredText({ terms, regex }: LogFilter): RequiredText | null {
  return requireAll([...terms.map((text) => ({ kind: 'text', text }) as const), regex?.required ?? null]);
}

/** The levels that pass the filter. */
export function levelsOf({ level }: Pick<LogFilter, 'level'>): readonly LogLevel[] {
  return level === null ? LOG_LEVELS : LOG_LEVELS.slice(LOG_LEVELS.indexOf(level));
}

/**
 * A marker stands for a place in the log, so it passes whatever its level and component. The text of a retention marker
 * is not a message, so no search finds it.
 */
export function matchesLine(filter: LogFilter, line: LogLine): boolean {
  if (filter.from !== null && line.occurredAt < filter.from) return false;
  if (filter.to !== null && line.occurredAt > filter.to) return false;
  if (line.marker === undefined) {
    if (!levelsOf(filter).includes(line.level)) return false;
    if (filter.components.length > 0 && !filter.components.includes(line.component)) return false;
  } else if (line.marker.kind === 'retention' && searchesText(filter)) return false;
  return matchesText(filter, line.message);
}

export function matchesText({ terms, regex }: LogFilter, message: string): boolean {
  if (terms.length > 0) {
    const folded = foldText(message);
    if (!terms.every((term) => folded.includes(term))) return false;
  }
  return regex === null || regex.test(message);
}

const MAX_HITS = 1000;

/** A stretch of a message, in UTF-16 units: `[start, end)`. */
export type Hit = [start: number, end: number];

/** The stretches of the message that match, one after the other; null for one that can't be marked. @see LogRegex.hits */
export function* findHits({ terms, regex }: LogFilter, message: string): Generator<Hit | null> {
  const folded = terms.length > 0 ? foldText(message) : '';
  for (const term of terms) yield* placesOf(term, folded);
  if (regex !== null) yield* regex.hits(message);
}

/** The same stretches ascending, touching ones joined. */
export function joinHits(hits: readonly Hit[]): Hit[] {
  const joined: Hit[] = [];
  for (const [start, end] of hits.toSorted(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  return joined;
}

function placesOf(term: string, folded: string): Hit[] {
  const places: Hit[] = [];
  for (
    let at = folded.indexOf(term);
    at !== -1 && places.length < MAX_HITS;
    at = folded.indexOf(term, at + term.length)
  )
    places.push([at, at + term.length]);
  return places;
}

/** Letters whose lower case is an ASCII letter or two characters: they stay, so that folding keeps every index. */
const UNFOLDABLE = /([\u0130\u212A])/;
const ASCII = /^[\0-\x7F]*$/;

/**
 * Text for comparing without case. It has the length of the original, so that an index into one is an index into the
 * other, and a letter outside ASCII never becomes an ASCII one: SQLite folds only ASCII, and must find the same.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = UNFOLDABLE.test(text)
    ? text
        .split(UNFOLDABLE)
        .map((part) => (UNFOLDABLE.test(part) ? part : part.toLowerCase()))
        .join('')
    : text.toLowerCase();
  // which of the two lower-case sigmas comes out depends on what follows
  return folded.replaceAll('ς', 'σ');
}

/**
 * Folded text without which a message can't match, so that an index can rule it out unread. `all` and `any` have at
 * least one part.
 */
export type RequiredText =
  | { kind: 'text'; text: string }
  | { kind: 'all'; parts: RequiredText[] }
  | { kind: 'any'; parts: RequiredText[] };

/** What all of them require together; null requires nothing. */
export function requireAll(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  const [first, second] = known;
  return second === undefined ? (first ?? null) : { kind: 'all', parts: known };
}

/** What any one of them requires; nothing if one of them requires nothing. */
export function requireAny(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  return known.length < parts.length || known.length === 0 ? null : { kind: 'any', parts: known };
}
