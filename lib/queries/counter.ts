import type { ResultRows } from '@/db/reader';
import { type Position, positionFromNumber } from '@/lib/protocol/position';

/**
 * First statement of every read model's batch: the position at which the rest was read. A stream opened `after` it
 * misses nothing and doubles nothing.
 */
export const COUNTER = 'SELECT position FROM counter';

export function counterOf(result: ResultRows | undefined): Position {
  return positionFromNumber(Number(result?.rows[0]?.position ?? 0));
}
