/** Beyond this many producers with an open gap, the oldest counts are forgotten: they are only statistics. */
const MAX_PRODUCERS = 10_000;

/**
 * Counts how often each producer was refused for a gap. A refusal stores nothing, so the count waits in memory and goes
 * to disk with the next batch that is taken.
 */
export class GapTally {
  readonly #counts = new Map<string, number>();

  count(producerId: string): number {
    return this.#counts.get(producerId) ?? 0;
  }

  add(producerId: string): void {
    this.#counts.set(producerId, this.count(producerId) + 1);
    if (this.#counts.size > MAX_PRODUCERS) this.#counts.delete(this.#counts.keys().next().value as string);
  }

  /** Takes off what has been written. */
  subtract(producerId: string, written: number): void {
    const left = this.count(producerId) - written;
    if (left > 0) this.#counts.set(producerId, left);
    else this.#counts.delete(producerId);
  }
}
