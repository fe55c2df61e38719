import type { LogPage } from '@interlude/protocol/read-models';
import type { LogQuery } from './log-query';

/** The newest page of a log, read with the page of the console: the first paint needs no further request. */
export interface FirstLog {
  query: LogQuery;
  page: LogPage;
  /** Epoch milliseconds, by the server's clock. */
  readAt: number;
}

/** Lines of the first page. */
export const FIRST_LINES = 200;
/** Most of them in the server's markup: as many as the highest screens show. */
export const LINES_IN_MARKUP = 110;
/** An older one, which a browser kept for its Back button, is read anew: catching up may take longer than beginning. */
const FRESH_MS = 30_000;

export function isFresh({ readAt }: FirstLog): boolean {
  return Math.abs(Date.now() - readAt) < FRESH_MS;
}
