import { type LogFilter, levelsOf, requiredText } from '@interlude/protocol/projections/log-filter';
import type { RequiredText } from '@interlude/protocol/projections/required-text';
import type { InValue } from '@libsql/client';
import { columnText } from '@/db/table-rows';

/** A WHERE clause and its arguments. */
export interface Condition {
  sql: string;
  args: InValue[];
}

/** Null if there is nothing to filter by. */
export function condition(sql: string, ...args: (InValue | null)[]): Condition | null {
  return args.includes(null) ? null : { sql, args };
}

export function allOf(...parts: (Condition | null)[]): Condition {
  const known = parts.filter((part) => part !== null);
  const sql = known.map((part) => part.sql).join(' AND ');
  return { sql: sql === '' ? 'true' : sql, args: known.flatMap((part) => part.args) };
}

/**
 * The part of a filter that the database can judge. Every matching line passes; a line that passes may still fail on
 * its text, which only `matchesText` decides.
 */
export function conditionOf(filter: LogFilter): Condition {
  const { level, components, from, to } = filter;
  const levels = level === null ? null : JSON.stringify(levelsOf(filter));
  const names = components.length === 0 ? null : JSON.stringify(components.map(columnText));
  const own = allOf(
    condition('level IN (SELECT value FROM json_each(?))', levels),
    condition('component IN (SELECT value FROM json_each(?))', names),
  );
  const required = requiredText(filter);
  return allOf(
    own.args.length === 0 ? null : { sql: `(marker IS NOT NULL OR (${own.sql}))`, args: own.args },
    condition('occurred_at >= ?', from),
    condition('occurred_at <= ?', to),
    required === null ? null : textCondition(required),
  );
}

function textCondition(required: RequiredText): Condition {
  if (required.kind === 'text') {
    return { sql: `message LIKE ? ESCAPE '\\'`, args: [`%${likePattern(required.text)}%`] };
  }
  const isAll = required.kind === 'all';
  // of `all`, some conditions may be left out here; of `any`, none may
  if (!isAll && required.parts.length > MAX_PATTERNS) return { sql: 'true', args: [] };
  const parts = required.parts.slice(0, MAX_PATTERNS).map(textCondition);
  const sql = parts.map((part) => part.sql).join(isAll ? ' AND ' : ' OR ');
  return { sql: `(${sql})`, args: parts.flatMap((part) => part.args) };
}

/** Enough to tell lines apart. LIKE takes time in proportion to the pattern's length times the text's. */
const MAX_PATTERN_LENGTH = 64;
const MAX_PATTERNS = 32;

/** SQLite's LIKE only ignores the case of ASCII, so any other letter becomes a wildcard. */
function likePattern(term: string): string {
  return [...term].slice(0, MAX_PATTERN_LENGTH).map(patternOf).join('');
}

function patternOf(character: string): string {
  if ('%_\\'.includes(character)) return `\\${character}`;
  if (character === '\0') return '_';
  const isCased = character.toLowerCase() !== character || character.toUpperCase() !== character;
  return character > '\x7F' && isCased ? '_' : character;
}
