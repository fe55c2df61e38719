import { until } from '../replay/player';

/**
 * Which agents of the demo rest. Each rests for its own time, but never so many at once that none is seen at work.
 *
 * Ordering: who has rested longest is called back first.
 */
export class Rota {
  readonly #agents: number;
  readonly #leastAtWork: number;
  readonly #resting: AbortController[] = [];

  constructor(agents: number, leastAtWork: number) {
    this.#agents = agents;
    this.#leastAtWork = leastAtWork;
  }

  /** Ends after `ms`, or earlier: with `signal`, or when too many rest. */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const call = new AbortController();
    this.#resting.push(call);
    if (this.#agents - this.#resting.length < this.#leastAtWork) this.#resting.shift()?.abort();
    await until(Date.now() + ms, AbortSignal.any([signal, call.signal]));
    const place = this.#resting.indexOf(call);
    if (place >= 0) this.#resting.splice(place, 1);
  }
}
