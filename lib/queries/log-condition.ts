import type { InValue } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { type LogFilter, levelsOf, requiredText } from '@/lib/projections/log-filter';
import type { RequiredText } from '@/lib/projections/required-text';

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
  const { level, components, from, to } = filter;
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
    all.push(`(marker IS NOT NULL OR (${own.join(' AND ')}))`);
  }
  if (from !== null) {
    all.push('occurred_at >= ?');
    args.push(from);
  }
  if (to !== null) {
    all.push('occurred_at <= ?');
    args.push(to);
  }
  const required = requiredText(filter);
  if (required !== null) {
    const text = textCondition(required);
    all.push(text.sql);
    args.push(...text.args);
  }
  return { sql: all.length === 0 ? 'true' : all.join(' AND '), args };
}

function textCondition(required: RequiredText): Condition {
  if (required.kind === 'text') {
    return { sql: `message LIKE ? ESCAPE '\\'`, args: [`%${likePattern(required.text)}%`] };
  }
  const isAll = required.kind === 'all';
  // what is left out of `all` is not judged here; of `any` nothing may be
  if (!isAll && required.parts.length > MAX_PATTERNS) return { sql: 'true', args: [] };
  const parts = required.parts.slice(0, MAX_PATTERNS).map(textCondition);
  const sql = parts.map((part) => part.sql).join(isAll ? ' AND ' : ' OR ');
  return { sql: `(${sql})`, args: parts.flatMap((part) => part.args) };
}

/** Enough to tell lines apart. LIKE takes the time of the pattern's length times the text's. */
const MAX_PATTERN_LENGTH = 64;
const MAX_PATTERNS = 32;

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
