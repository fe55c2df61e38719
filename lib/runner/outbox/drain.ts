import { retryMs } from '../retry';
import type { Delivery, OutboxClock } from './delivery';

/**
 * When the queue is sent: a state machine that knows nothing of records or HTTP.
 *
 * Ordering: one delivery at a time, so the queue leaves strictly first in, first out. A call during a delivery has it
 * look once more before it rests (`sendingAgain`), so nothing is left lying.
 * Failure: a delivery that did not get through is repeated without end; only the wait grows. A `kick` cuts a wait off,
 * and one that comes while a doomed delivery is under way (`sendingKicked`) spares the wait after it.
 */
export type DrainState = 'idle' | 'sending' | 'sendingAgain' | 'sendingKicked' | 'waiting' | 'fenced' | 'stopped';
export type DrainEvent = 'work' | 'kick' | 'due' | 'delivered' | 'emptied' | 'held' | 'fenced' | 'stop';

type Step = { to: DrainState; send?: true };
const stay = (to: DrainState): Step => ({ to });
const sendIn = (to: DrainState): Step => ({ to, send: true });

/** Every state × event. What can't happen stays where it is. */
export const DRAIN: Record<DrainState, Record<DrainEvent, Step>> = {
  idle: {
    work: sendIn('sending'),
    kick: sendIn('sending'),
    due: stay('idle'),
    delivered: stay('idle'),
    emptied: stay('idle'),
    held: stay('idle'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  sending: {
    work: stay('sendingAgain'),
    kick: stay('sendingKicked'),
    due: stay('sending'),
    delivered: sendIn('sending'),
    emptied: stay('idle'),
    held: stay('waiting'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  sendingAgain: {
    work: stay('sendingAgain'),
    kick: stay('sendingKicked'),
    due: stay('sendingAgain'),
    delivered: sendIn('sending'),
    emptied: sendIn('sending'),
    held: stay('waiting'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  sendingKicked: {
    work: stay('sendingKicked'),
    kick: stay('sendingKicked'),
    due: stay('sendingKicked'),
    delivered: sendIn('sending'),
    emptied: sendIn('sending'),
    held: sendIn('sending'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  waiting: {
    work: stay('waiting'),
    kick: sendIn('sending'),
    due: sendIn('sending'),
    delivered: stay('waiting'),
    emptied: stay('waiting'),
    held: stay('waiting'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  fenced: allStay('fenced', { stop: stay('stopped') }),
  stopped: allStay('stopped'),
};

function allStay(state: DrainState, but: Partial<Record<DrainEvent, Step>> = {}): Record<DrainEvent, Step> {
  const at = stay(state);
  return { work: at, kick: at, due: at, delivered: at, emptied: at, held: at, fenced: at, stop: at, ...but };
}

export interface Trouble {
  kind: 'unavailable' | 'unauthorized' | 'refused' | 'fenced' | 'storage';
  message: string;
  /** When it began. */
  since: number;
  /** Attempts that have failed since then. */
  tries: number;
  /** Epoch milliseconds; null when it is not tried again. */
  retryAt: number | null;
}

export class Drain {
  readonly #clock: OutboxClock;
  readonly #deliver: (signal: AbortSignal) => Promise<Delivery>;
  readonly #onChange: () => void;
  readonly #abort = new AbortController();
  #state: DrainState = 'idle';
  #trouble: Trouble | null = null;
  #callOffTimer: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(clock: OutboxClock, deliver: (signal: AbortSignal) => Promise<Delivery>, onChange: () => void) {
    this.#clock = clock;
    this.#deliver = deliver;
    this.#onChange = onChange;
  }

  get state(): DrainState {
    return this.#state;
  }

  get trouble(): Trouble | null {
    return this.#trouble;
  }

  /** Something waits in the queue. */
  work(): void {
    this.#on('work');
  }

  /** Something says the server is back: whatever wait there is ends now. */
  kick(): void {
    this.#on('kick');
  }

  /** Cuts the request under way off and resolves when nothing runs any more. */
  stop(): Promise<void> {
    this.#on('stop');
    this.#abort.abort();
    return this.#running;
  }

  #on(event: DrainEvent): void {
    const step = DRAIN[this.#state][event];
    const told = step.to !== this.#state || event === 'delivered' || event === 'held';
    this.#state = step.to;
    if (step.to !== 'waiting') {
      this.#callOffTimer?.();
      this.#callOffTimer = null;
    }
    if (step.send) this.#running = this.#running.then(() => this.#once());
    if (told) this.#onChange();
  }

  async #once(): Promise<void> {
    if (this.#state === 'stopped' || this.#state === 'fenced') return;
    // Whatever is asked for from here on is seen by the delivery that begins now.
    this.#state = 'sending';
    const delivery = await this.#deliver(this.#abort.signal).catch(
      (error): Delivery => ({ kind: 'held', cause: 'storage', message: String(error), retryAfterMs: null }),
    );
    // With nothing left to send there is none either: a disk that was full may have taken what was sent all the same.
    if (delivery.kind === 'delivered' || delivery.kind === 'emptied') this.#trouble = null;
    if (delivery.kind === 'held') this.#hold(delivery);
    if (delivery.kind === 'fenced') this.#note('fenced', delivery.message, null);
    this.#on(delivery.kind);
  }

  #hold(delivery: Extract<Delivery, { kind: 'held' }>): void {
    if (this.#state === 'stopped') return;
    const tries = (this.#trouble?.tries ?? 0) + 1;
    const waitMs = Math.max(retryMs(delivery.cause, tries, this.#clock.random()), delivery.retryAfterMs ?? 0);
    this.#note(delivery.cause, delivery.message, this.#clock.now() + waitMs);
    this.#callOffTimer?.();
    this.#callOffTimer = this.#clock.after(waitMs, () => this.#on('due'));
  }

  #note(kind: Trouble['kind'], message: string, retryAt: number | null): void {
    const since = this.#trouble?.since ?? this.#clock.now();
    this.#trouble = { kind, message, since, tries: (this.#trouble?.tries ?? 0) + 1, retryAt };
  }
}
