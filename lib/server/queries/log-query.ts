import { AppError } from '@interlude/protocol/errors';
import { MAX_LOG_SEARCH_LENGTH } from '@interlude/protocol/limits';
import { type LogFilter, parseTerms } from '@interlude/protocol/projections/log-filter';
import type { LogFilterQuery, LogQuery } from '@interlude/protocol/queries';
import { truncateText } from '@interlude/protocol/text';
import type { LogPlace } from './read-log-lines';

/** @throws AppError `invalid_argument` for a regex that can't be used */
export async function logFilterOf(query: LogFilterQuery): Promise<LogFilter> {
  const { level, component, q, regex, from, to } = query;
  const components = [...new Set(component)];
  return { level, components, terms: parseTerms(q), regex: regex ? await compiled(regex) : null, from, to };
}

async function compiled(source: string): Promise<LogFilter['regex']> {
  // the regex engine is big, and most servers never need it
  const { compileLogRegex } = await import('@interlude/protocol/projections/log-regex');
  const outcome = compileLogRegex(source);
  if (outcome.kind === 'compiled') return outcome.regex;
  const message = `The regex can’t be used: ${outcome.reason}. Its syntax is that of RE2: no lookaround, no backreferences.`;
  throw new AppError('invalid_argument', message, {
    details: { regex: truncateText(source, MAX_LOG_SEARCH_LENGTH), reason: outcome.reason },
  });
}

/** At most one of them is given. */
export function logPlaceOf({ before, after, around, line, at }: LogQuery): LogPlace {
  if (before !== null) return { kind: 'before', position: before };
  if (after !== null) return { kind: 'after', position: after };
  if (around !== null) return { kind: 'around', position: around };
  if (line !== null) return { kind: 'line', line };
  return at === null ? { kind: 'newest' } : { kind: 'at', at };
}
