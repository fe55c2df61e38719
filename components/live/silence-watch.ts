import { HEARTBEAT_MS } from '@interlude/protocol/limits';

/**
 * A server that has said nothing for this long is away, whatever TCP thinks: it would have said at least a heartbeat,
 * and that may be late by some seconds. With the time between two looks it is less than 25 s.
 */
export const SILENCE_MS = HEARTBEAT_MS + 7_000;
const LOOK_MS = 1_000;

/**
 * Tells once when nothing was heard for too long.
 *
 * Failure: a machine that slept is noticed at its first look, as its wall clock went on; a wall clock that is put back
 * hides nothing, as the other clock goes on.
 */
export class SilenceWatch {
  readonly #onSilent: () => void;
  #timer: ReturnType<typeof setInterval> | null = null;
  #heard = { wall: 0, steady: 0 };

  constructor(onSilent: () => void) {
    this.#onSilent = onSilent;
  }

  /** Silence counts from now on; where it is watched already, from where it did. */
  start(): void {
    if (this.#timer !== null) return;
    this.heard();
    this.#timer = setInterval(() => this.look(), LOOK_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  heard(): void {
    this.#heard = { wall: Date.now(), steady: performance.now() };
  }

  get silentMs(): number {
    return Math.max(Date.now() - this.#heard.wall, performance.now() - this.#heard.steady);
  }

  /** Looks at once, as when somebody comes back to a page that slept. */
  look(): void {
    if (this.#timer === null || this.silentMs < SILENCE_MS) return;
    this.stop();
    this.#onSilent();
  }
}
