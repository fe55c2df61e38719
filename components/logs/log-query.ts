import type { LogRegex } from '@interlude/protocol/projections/log-filter';
import { EVERY_LINE, type LogFilter, parseTerms } from '@interlude/protocol/projections/log-filter';
import type { LogPage } from '@interlude/protocol/read-models';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';

/** A log query, as in the URL. */
export interface LogQuery {
  /** Minimum level. */
  level: LogLevel | null;
  /** Any of these components; empty for all. */
  components: readonly string[];
  text: string;
  /** True if `text` is a regular expression. */
  isRegex: boolean;
  /** Epoch milliseconds, inclusive. */
  from: number | null;
  to: number | null;
}

export const UNFILTERED: LogQuery = {
  level: null,
  components: [],
  text: '',
  isRegex: false,
  from: null,
  to: null,
};

/** The page, the read model and the download use the same parameters. */
const NAMES = ['level', 'component', 'q', 'regex', 'from', 'to'] as const;

/** @param prefix of the parameters' names, on a page with other parameters */
export function queryFromParams(params: URLSearchParams, prefix = ''): LogQuery {
  const get = (name: (typeof NAMES)[number]) => params.get(prefix + name);
  const regex = get('regex');
  return {
    level: LOG_LEVELS.find((level) => level === get('level')) ?? null,
    components: params.getAll(`${prefix}component`),
    text: regex ?? get('q') ?? '',
    isRegex: regex !== null,
    from: timeOf(get('from')),
    to: timeOf(get('to')),
  };
}

export function paramsFromQuery({ level, components, text, isRegex, from, to }: LogQuery): URLSearchParams {
  const params = new URLSearchParams();
  if (level !== null && level !== LOG_LEVELS[0]) params.set('level', level);
  for (const component of components) params.append('component', component);
  // Regex mode is kept while the expression is still empty.
  if (isRegex) params.set('regex', text);
  else if (text !== '') params.set('q', text);
  if (from !== null) params.set('from', String(from));
  if (to !== null) params.set('to', String(to));
  return params;
}

/** Replaces the query in the URL's parameters. */
export function withQuery(params: URLSearchParams, query: LogQuery, prefix: string): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const name of NAMES) next.delete(prefix + name);
  for (const [name, value] of paramsFromQuery(query)) next.append(prefix + name, value);
  return next;
}

export function withoutText(query: LogQuery): LogQuery {
  return { ...query, text: '', isRegex: false };
}

/** True if the query may exclude lines. */
export function isFiltered(query: LogQuery): boolean {
  return paramsFromQuery(query.text === '' ? withoutText(query) : query).size > 0;
}

export function filterOf(query: LogQuery, regex: LogRegex | null): LogFilter {
  const { level, components, from, to } = query;
  const terms = query.isRegex ? [] : parseTerms(query.text);
  return { ...EVERY_LINE, level, components, terms, regex, from, to };
}

function timeOf(text: string | null): number | null {
  return text !== null && /^\d{1,16}$/.test(text) ? Number(text) : null;
}

/** The newest page of a log, read with the page itself: the first paint needs no further request. */
export interface FirstLog {
  query: LogQuery;
  page: LogPage;
  /** Epoch milliseconds on the server's clock. */
  readAt: number;
}

/** Number of lines in the first page. */
export const FIRST_LINES = 200;
/** Lines in the server's markup: as many as the tallest screens show. */
export const LINES_IN_MARKUP = 110;
/** An older page, restored by the Back button, is read again: that is faster than catching up. */
const FRESH_MS = 30_000;

export function isFresh({ readAt }: FirstLog): boolean {
  return Math.abs(Date.now() - readAt) < FRESH_MS;
}
