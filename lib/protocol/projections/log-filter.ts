import type { LogLine } from '../read-models';
import { LOG_LEVELS, type LogLevel } from '../record-vocabulary';
import { foldText } from './fold-text';
import type { LogRegex } from './log-regex';
import { type RequiredText, requireAll } from './required-text';

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
