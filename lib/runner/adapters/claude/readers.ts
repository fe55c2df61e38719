import type { Fields } from '@interlude/protocol/fields';

/** By the name of a message: what reads it. A map, because the name may be anything. */
export function readersOf<Result, More extends unknown[] = []>(
  readers: Record<string, (message: Fields, ...more: More) => Result>,
): ReadonlyMap<unknown, (message: Fields, ...more: More) => Result> {
  return new Map<unknown, (message: Fields, ...more: More) => Result>(Object.entries(readers));
}
