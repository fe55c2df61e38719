import { AppError } from '@/lib/protocol/errors';
import { isPosition, positionToNumber } from '@/lib/protocol/position';

/** @throws AppError `invalid_argument` unless it is absent or a whole number within the limits */
export function limitOf(query: URLSearchParams, byDefault: number, most: number): number {
  const text = query.get('limit');
  if (text === null) return byDefault;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > most) throw invalid('limit', text, `a whole number from 1 to ${most}`);
  return limit;
}

/** @throws AppError `invalid_argument` unless it is absent or a position */
export function positionOf(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (!isPosition(text)) throw invalid(name, text, 'a position, as another answer gave it');
  return positionToNumber(text);
}

/** @throws AppError `invalid_argument` unless it is absent or a time in epoch milliseconds */
export function timeOf(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (!/^\d{1,15}$/.test(text)) throw invalid(name, text, 'a time in epoch milliseconds');
  return Number(text);
}

/**
 * For routes where a filter that is not applied would be taken for one that is: who asked for errors must not be
 * answered with everything.
 *
 * @throws AppError `invalid_argument` when there is any other argument
 */
export function onlyKnown(query: URLSearchParams, names: readonly string[]): void {
  for (const [name, text] of query) {
    if (names.includes(name)) continue;
    const message = `${JSON.stringify(name)} is not known here. Use ${names.join(', ')}, or leave it out.`;
    throw new AppError('invalid_argument', message, { details: { [name]: text } });
  }
}

export function invalid(name: string, text: string, wanted: string): AppError {
  const message = `${name}=${JSON.stringify(text)} can’t be used: it must be ${wanted}.`;
  return new AppError('invalid_argument', message, { details: { [name]: text } });
}
