import type { LogLine } from '../read-models';
import { LOG_LEVELS, type LogLevel } from '../vocabulary';

/** A regular expression in RE2 syntax, which runs in time linear to the text. */
export interface LogRegex {
  readonly source: string;
  /** Text that every matching message contains; null if unknown. */
  readonly required: RequiredText | null;
  test(message: string): boolean;
  /**
   * The matching ranges, ascending, found one at a time; null for an empty match. Each takes at most `MAX_HIT_STEPS`,
   * so finding all matches of a long line in one step would take too long.
   */
  hits(message: string): Iterable<[number, number] | null>;
}

/** A filter for log lines. Server (stored lines) and browser (live lines) apply it alike. */
export interface LogFilter {
  /** Lowest level; null for all. */
  level: LogLevel | null;
  /** Matches any of these; empty for all. */
  components: readonly string[];
  /** Matches all of these, from `parseTerms`. */
  terms: readonly string[];
  regex: LogRegex | null;
  /** Inclusive range of `occurredAt`, epoch milliseconds. */
  from: number | null;
  to: number | null;
}

export const EVERY_LINE: LogFilter = { level: null, components: [], terms: [], regex: null, from: null, to: null };

/** Splits a query into folded, distinct terms: words, and phrases in double quotes. */
export function parseTerms(text: string): string[] {
  const found = [...text.matchAll(/"([^"]*)"?|[^\s"]+/g)].map(([word, phrase]) => phrase ?? word);
  return [...new Set(found.filter((term) => term.trim() !== '').map(foldText))];
}

/** True if the filter reads the text of messages. */
export function searchesText({ terms, regex }: LogFilter): boolean {
  return terms.length > 0 || regex !== null;
}

/** Text that every matching message contains; null if unknown. */
export function requiredText({ terms, regex }: LogFilter): RequiredText | null {
  return requireAll([...terms.map((text) => ({ kind: 'text', text }) as const), regex?.required ?? null]);
}

/** The levels that pass the filter. */
export function levelsOf({ level }: Pick<LogFilter, 'level'>): readonly LogLevel[] {
  return level === null ? LOG_LEVELS : LOG_LEVELS.slice(LOG_LEVELS.indexOf(level));
}

/**
 * True if a line passes the filter. A marker denotes a place in the log, so its level and component don't matter. A
 * search skips retention markers.
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

/** A range of a message in UTF-16 code units: `[start, end)`. */
export type Hit = [start: number, end: number];

/** The matching ranges of a message, one at a time; null for one that can't be marked. @see LogRegex.hits */
export function* findHits({ terms, regex }: LogFilter, message: string): Generator<Hit | null> {
  const folded = terms.length > 0 ? foldText(message) : '';
  for (const term of terms) yield* rangesOf(term, folded);
  if (regex !== null) yield* regex.hits(message);
}

/** Sorts ranges and joins adjacent ones. */
export function joinHits(hits: readonly Hit[]): Hit[] {
  const joined: Hit[] = [];
  for (const [start, end] of hits.toSorted(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  return joined;
}

function rangesOf(term: string, folded: string): Hit[] {
  const ranges: Hit[] = [];
  for (
    let index = folded.indexOf(term);
    index !== -1 && ranges.length < MAX_HITS;
    index = folded.indexOf(term, index + term.length)
  )
    ranges.push([index, index + term.length]);
  return ranges;
}

/**
 * Letters that are not folded: U+0130 would become two characters and shift every index, and U+212A would become ASCII,
 * which SQLite doesn't match.
 */
const UNFOLDABLE = /([\u0130\u212A])/;
const ASCII = /^[\0-\x7F]*$/;

/**
 * Folds case for comparison. Keeps the length, so indexes stay valid, and never turns a non-ASCII letter into an ASCII
 * one, to match SQLite, which folds only ASCII.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = UNFOLDABLE.test(text)
    ? text
        .split(UNFOLDABLE)
        .map((part) => (UNFOLDABLE.test(part) ? part : part.toLowerCase()))
        .join('')
    : text.toLowerCase();
  // `toLowerCase` gives a final sigma at the end of a word.
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

/** Requires all parts; null requires nothing. */
export function requireAll(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  const [first, second] = known;
  return second === undefined ? (first ?? null) : { kind: 'all', parts: known };
}

/** Requires any part; null if one of them requires nothing. */
export function requireAny(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  return known.length < parts.length || known.length === 0 ? null : { kind: 'any', parts: known };
}
