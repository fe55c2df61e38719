import { retryMs } from '../host/server-request';
import type { Delivery, OutboxClock } from './delivery';

export type DrainState = 'idle' | 'sending' | 'sendingAgain' | 'sendingKicked' | 'waiting' | 'fenced' | 'stopped';
export type DrainEvent = 'work' | 'kick' | 'due' | 'progressed' | 'emptied' | 'failed' | 'fenced' | 'stop';

type Step = { to: DrainState; send?: true };
const stay = (to: DrainState): Step => ({ to });
const sendIn = (to: DrainState): Step => ({ to, send: true });

/** Every state × event. Impossible events keep the state. */
const DRAIN: Record<DrainState, Record<DrainEvent, Step>> = {
  idle: {
    work: sendIn('sending'),
    kick: sendIn('sending'),
    due: stay('idle'),
    progressed: stay('idle'),
    emptied: stay('idle'),
    failed: stay('idle'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  sending: {
    work: stay('sendingAgain'),
    kick: stay('sendingKicked'),
    due: stay('sending'),
    progressed: sendIn('sending'),
    emptied: stay('idle'),
    failed: stay('waiting'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  sendingAgain: {
    work: stay('sendingAgain'),
    kick: stay('sendingKicked'),
    due: stay('sendingAgain'),
    progressed: sendIn('sending'),
    emptied: sendIn('sending'),
    failed: stay('waiting'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  sendingKicked: {
    work: stay('sendingKicked'),
    kick: stay('sendingKicked'),
    due: stay('sendingKicked'),
    progressed: sendIn('sending'),
    emptied: sendIn('sending'),
    failed: sendIn('sending'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  waiting: {
    work: stay('waiting'),
    kick: sendIn('sending'),
    due: sendIn('sending'),
    progressed: stay('waiting'),
    emptied: stay('waiting'),
    failed: stay('waiting'),
    fenced: stay('fenced'),
    stop: stay('stopped'),
  },
  fenced: allStay('fenced', { stop: stay('stopped') }),
  stopped: allStay('stopped'),
};

function allStay(state: DrainState, but: Partial<Record<DrainEvent, Step>> = {}): Record<DrainEvent, Step> {
  const at = stay(state);
  return { work: at, kick: at, due: at, progressed: at, emptied: at, failed: at, fenced: at, stop: at, ...but };
}

export interface Trouble {
  kind: 'unavailable' | 'unauthorized' | 'refused' | 'fenced' | 'storage';
  message: string;
  since: number;
  /** Failed attempts since the trouble began. */
  tries: number;
  /** Epoch milliseconds; null without a retry. */
  retryAt: number | null;
}

/**
 * State machine that decides when to send the queue. It knows nothing of records or HTTP.
 *
 * Ordering: one delivery at a time, so the queue leaves first in, first out. `work` during a delivery causes another
 * delivery after it (`sendingAgain`).
 * Failure: a failed delivery is retried forever with increasing waits. `kick` skips the wait; a `kick` during a
 * delivery (`sendingKicked`) skips the wait after it.
 */
export class Drain {
  readonly #clock: OutboxClock;
  readonly #deliver: (signal: AbortSignal) => Promise<Delivery>;
  readonly #onChange: () => void;
  readonly #abort = new AbortController();
  #state: DrainState = 'idle';
  #trouble: Trouble | null = null;
  #cancelTimer: (() => void) | null = null;
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

  work(): void {
    this.#on('work');
  }

  /** Ends the current wait, because the server seems to be back. */
  kick(): void {
    this.#on('kick');
  }

  /** Aborts the current request. Resolves when no delivery is running. */
  stop(): Promise<void> {
    this.#on('stop');
    this.#abort.abort();
    return this.#running;
  }

  #on(event: DrainEvent): void {
    const step = DRAIN[this.#state][event];
    const isChange = step.to !== this.#state || event === 'progressed' || event === 'failed';
    this.#state = step.to;
    if (step.to !== 'waiting') {
      this.#cancelTimer?.();
      this.#cancelTimer = null;
    }
    if (step.send) this.#running = this.#running.then(() => this.#once());
    if (isChange) this.#onChange();
  }

  async #once(): Promise<void> {
    if (this.#state === 'stopped' || this.#state === 'fenced') return;
    // The delivery that is starting covers everything up to this point.
    this.#state = 'sending';
    const delivery = await this.#deliver(this.#abort.signal).catch(
      (error): Delivery => ({ kind: 'failed', cause: 'storage', message: String(error), retryAfterMs: null }),
    );
    // `emptied` clears the trouble too: a full disk may have stored the batch after all.
    if (delivery.kind === 'progressed' || delivery.kind === 'emptied') this.#trouble = null;
    if (delivery.kind === 'failed') this.#retryLater(delivery);
    if (delivery.kind === 'fenced') this.#note('fenced', delivery.message, null);
    this.#on(delivery.kind);
  }

  #retryLater(delivery: Extract<Delivery, { kind: 'failed' }>): void {
    if (this.#state === 'stopped') return;
    const tries = (this.#trouble?.tries ?? 0) + 1;
    const waitMs = Math.max(retryMs(delivery.cause, tries, this.#clock.random()), delivery.retryAfterMs ?? 0);
    this.#note(delivery.cause, delivery.message, this.#clock.now() + waitMs);
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(waitMs, () => this.#on('due'));
  }

  #note(kind: Trouble['kind'], message: string, retryAt: number | null): void {
    const since = this.#trouble?.since ?? this.#clock.now();
    this.#trouble = { kind, message, since, tries: (this.#trouble?.tries ?? 0) + 1, retryAt };
  }
}
