import type { RequiredText } from '@interlude/protocol/projections/log-filter';
import { type LogFilter, levelsOf, requiredText } from '@interlude/protocol/projections/log-filter';
import type { InValue } from '@libsql/client';
import { columnText } from '@/db/table-rows';

/** A WHERE clause and its arguments. */
export interface Condition {
  sql: string;
  args: InValue[];
}

/** Returns null if an argument is null, which means no filter. */
export function condition(sql: string, ...args: (InValue | null)[]): Condition | null {
  return args.includes(null) ? null : { sql, args };
}

export function allOf(...parts: (Condition | null)[]): Condition {
  const known = parts.filter((part) => part !== null);
  const sql = known.map((part) => part.sql).join(' AND ');
  return { sql: sql === '' ? 'true' : sql, args: known.flatMap((part) => part.args) };
}

/**
 * The part of a filter that SQL can express. Lets every match pass, but only `matchesLine` decides about text and
 * regex.
 */
export function lineCondition(filter: LogFilter): Condition {
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
  // `all` stays correct if some conditions are dropped; `any` does not.
  if (!isAll && required.parts.length > MAX_PATTERNS) return { sql: 'true', args: [] };
  const parts = required.parts.slice(0, MAX_PATTERNS).map(textCondition);
  const sql = parts.map((part) => part.sql).join(isAll ? ' AND ' : ' OR ');
  return { sql: `(${sql})`, args: parts.flatMap((part) => part.args) };
}

/** Long enough to be selective. LIKE takes time proportional to the pattern's length times the text's. */
const MAX_PATTERN_LENGTH = 64;
const MAX_PATTERNS = 32;

/** SQLite's LIKE ignores case only for ASCII, so other letters become wildcards. */
function likePattern(term: string): string {
  return [...term].slice(0, MAX_PATTERN_LENGTH).map(patternOf).join('');
}

function patternOf(character: string): string {
  if ('%_\\'.includes(character)) return `\\${character}`;
  if (character === '\0') return '_';
  const isCased = character.toLowerCase() !== character || character.toUpperCase() !== character;
  return character > '\x7F' && isCased ? '_' : character;
}

/** Maximum trigrams per text. For a longer text, they are spread evenly over it. */
const MAX_TRIGRAMS = 24;
const MAX_PARTS = 16;

/**
 * A query for the full-text table, whose rows hold the trigrams of case-folded text.
 *
 * @returns null if the text is shorter than a trigram
 */
export function trigramQuery(required: RequiredText): string | null {
  if (required.kind === 'text') {
    const trigrams = trigramsOf(required.text);
    return trigrams.length === 0 ? null : trigrams.map(quoted).join(' AND ');
  }
  const isAll = required.kind === 'all';
  if (!isAll && required.parts.length > MAX_PARTS) return null;
  const parts = required.parts.slice(0, isAll ? MAX_PARTS : undefined).map(trigramQuery);
  const known = parts.filter((part) => part !== null);
  if (known.length === 0 || (!isAll && known.length < parts.length)) return null;
  return known.map((part) => `(${part})`).join(isAll ? ' AND ' : ' OR ');
}

function trigramsOf(text: string): string[] {
  const characters = [...text];
  const count = characters.length - 2;
  const step = Math.max(1, Math.ceil(count / MAX_TRIGRAMS));
  const trigrams = new Set<string>();
  for (let index = 0; index < count; index += step) trigrams.add(characters.slice(index, index + 3).join(''));
  // Neither stored texts nor queries can contain a NUL.
  return [...trigrams].filter((trigram) => !trigram.includes('\0'));
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
