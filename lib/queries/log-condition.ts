import type { InValue } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { type LogFilter, levelsOf } from '@/lib/projections/log-filter';

/** A WHERE clause and what stands for its question marks. */
export interface Condition {
  sql: string;
  args: InValue[];
}

/**
 * What the database can judge of a filter. Every line that matches passes; what passes may still fail in its text,
 * which only `matchesText` decides.
 */
export function conditionOf(filter: LogFilter): Condition {
  const all: string[] = [];
  const args: InValue[] = [];
  const { level, components, from, to, terms } = filter;
  if (level !== null || components.length > 0) {
    const own: string[] = [];
    if (level !== null) {
      own.push('level IN (SELECT value FROM json_each(?))');
      args.push(JSON.stringify(levelsOf(filter)));
    }
    if (components.length > 0) {
      own.push('component IN (SELECT value FROM json_each(?))');
      args.push(JSON.stringify(components.map(columnText)));
    }
    all.push(`(nullif(marker, 'null') IS NOT NULL OR (${own.join(' AND ')}))`);
  }
  if (from !== null) {
    all.push('occurred_at >= ?');
    args.push(from);
  }
  if (to !== null) {
    all.push('occurred_at <= ?');
    args.push(to);
  }
  for (const term of terms) {
    all.push(`message LIKE ? ESCAPE '\\'`);
    args.push(`%${likePattern(term)}%`);
  }
  return { sql: all.length === 0 ? 'true' : all.join(' AND '), args };
}

/** Enough to tell lines apart. LIKE takes the time of the pattern's length times the text's. */
const MAX_PATTERN_LENGTH = 64;

/** SQLite's LIKE folds the case of ASCII alone: a letter of another alphabet stands for any character here. */
function likePattern(term: string): string {
  return [...term].slice(0, MAX_PATTERN_LENGTH).map(patternOf).join('');
}

function patternOf(character: string): string {
  if ('%_\\'.includes(character)) return `\\${character}`;
  if (character === '\0') return '_';
  const isCased = character.toLowerCase() !== character || character.toUpperCase() !== character;
  return character > '\x7F' && isCased ? '_' : character;
}
