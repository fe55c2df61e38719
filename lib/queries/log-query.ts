import { EVERY_LINE, type LogFilter, parseTerms } from '@/lib/projections/log-filter';
import { cutText } from '@/lib/protocol/cut-text';
import { AppError } from '@/lib/protocol/errors';
import { MAX_LOG_SEARCH_LENGTH } from '@/lib/protocol/limits';
import { LOG_LEVELS } from '@/lib/protocol/log-levels';
import { invalid, limitOf, onlyKnown, positionOf, timeOf } from './query-arguments';
import type { LogPlace, LogRequest } from './read-log-lines';

const FILTERS = ['level', 'component', 'q', 'regex', 'from', 'to'] as const;
const PLACES = ['before', 'after', 'around', 'line', 'at'] as const;

/** @throws AppError `invalid_argument` for what can't be used, and for what is not known */
export async function logRequestOf(query: URLSearchParams): Promise<LogRequest> {
  onlyKnown(query, [...FILTERS, ...PLACES, 'limit']);
  return { filter: await readFilter(query), place: placeOf(query), limit: limitOf(query, 200, 1000) };
}

/** Of a download: everything that passes the filter. */
export async function logFilterOf(query: URLSearchParams): Promise<LogFilter> {
  onlyKnown(query, FILTERS);
  return readFilter(query);
}

async function readFilter(query: URLSearchParams): Promise<LogFilter> {
  const text = query.get('q') ?? '';
  if (text.length > MAX_LOG_SEARCH_LENGTH) {
    throw invalid('q', cutText(text, 100), `at most ${MAX_LOG_SEARCH_LENGTH} characters`);
  }
  return {
    ...EVERY_LINE,
    level: levelOf(query),
    components: [...new Set(query.getAll('component'))],
    terms: parseTerms(text),
    regex: await regexOf(query),
    from: timeOf(query, 'from'),
    to: timeOf(query, 'to'),
  };
}

function levelOf(query: URLSearchParams): LogFilter['level'] {
  const text = query.get('level');
  if (text === null) return null;
  const level = LOG_LEVELS.find((one) => one === text);
  if (level !== undefined) return level;
  const message = `There is no level ${JSON.stringify(text)}. Use one of ${LOG_LEVELS.join(', ')}.`;
  throw new AppError('invalid_argument', message, { details: { level: text, levels: LOG_LEVELS } });
}

async function regexOf(query: URLSearchParams): Promise<LogFilter['regex']> {
  const source = query.get('regex');
  if (source === null || source === '') return null;
  // the engine is big, and most servers are never asked for one
  const { compileLogRegex } = await import('@/lib/projections/log-regex');
  const outcome = compileLogRegex(source);
  if (outcome.kind === 'compiled') return outcome.regex;
  const message = `The regex can’t be used: ${outcome.reason}. Its syntax is that of RE2: no lookaround, no backreferences.`;
  throw new AppError('invalid_argument', message, {
    details: { regex: cutText(source, MAX_LOG_SEARCH_LENGTH), reason: outcome.reason },
  });
}

function placeOf(query: URLSearchParams): LogPlace {
  const given = PLACES.filter((name) => query.has(name));
  const [name, other] = given;
  if (other !== undefined) throw invalid(other, query.get(other) ?? '', `left out where ${name} is given`);
  if (name === undefined) return { kind: 'newest' };
  if (name === 'at') return { kind: 'at', at: timeOf(query, 'at') ?? 0 };
  if (name === 'line') return { kind: 'line', line: lineOf(query) };
  return { kind: name, position: positionOf(query, name) ?? 0 };
}

function lineOf(query: URLSearchParams): number {
  const text = query.get('line') ?? '';
  if (!/^[1-9]\d{0,9}$/.test(text)) throw invalid('line', text, 'the number of a line, from 1');
  return Number(text);
}
