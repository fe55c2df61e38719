import { scaled } from './timeouts';

/** A reproducible random number generator. */
export interface Random {
  seed: number;
  /** Uniform in [0, 1). */
  next(): number;
  /** An integer from `from` to `to`, inclusive. */
  between(from: number, to: number): number;
  pick<T>(values: readonly T[]): T;
}

/**
 * Seeded by FAULTS_SEED, otherwise by a fixed seed, or by the clock in a soak. Prints the seed, so that a failure can
 * be repeated.
 */
export function seededRandom(what: string): Random {
  const seed = Number(process.env.FAULTS_SEED ?? scaled(1, Date.now() % 0x7fffffff));
  process.stdout.write(`${what}: FAULTS_SEED=${seed}\n`);
  return randomFrom(seed);
}

/** mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return { seed, next, between, pick: (values) => values[between(0, values.length - 1)] as (typeof values)[number] };
}
