import type { CommandBodies } from '@interlude/protocol/commands';
import { parseJson } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/vocabulary';

import * as z from 'zod';
import type { CommandOutcome } from '../host/seen-commands';
import type { OutboxClock } from '../outbox/delivery';
import type { Outbox } from '../outbox/outbox';

export interface LevelChange {
  level: LogLevel;
  previous: LogLevel;
  /** Author of the change: a person, `control-port` or TIME_LIMIT. */
  by: string;
  /** True if it was restored from an earlier process. Such a change is not logged. */
  isRestored?: true;
}

const TIME_LIMIT = 'time-limit';

/** The stored state of a switch. */
export interface StoredLevel {
  /** Null: not set. */
  level: LogLevel | null;
  /** Epoch milliseconds; null: without limit. */
  until: number | null;
  by: string;
  /** The last request of the dashboard that was applied, even if the level has changed since. */
  requestId: string | null;
}

export interface LevelRequest {
  /** Milliseconds until the level resets; without a limit if absent. */
  ttlMs?: number;
  by: string;
  requestId?: string;
}

export type LevelClock = Pick<OutboxClock, 'now' | 'after'>;

/** Its timers don't keep the process alive. */
const wallClock: LevelClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

const DEFAULT_LEVEL: LogLevel = 'info';

/** The longest timer. Timers stop while a machine sleeps, so the clock is checked regularly. */
const MAX_TIMER_MS = 30_000;

/**
 * The current log level: one set at run time, else INTERLUDE_LOG_LEVEL, else info. A level with a time limit resets itself,
 * so that a forgotten debug session does not fill a disk.
 */
export class LevelSwitch {
  readonly base: LogLevel;
  /** The warning about an invalid INTERLUDE_LOG_LEVEL; null if it is valid. */
  readonly warning: string | null;
  readonly #clock: LevelClock;
  readonly #changeListeners = new Set<(change: LevelChange) => void>();
  readonly #setListeners = new Set<(stored: StoredLevel) => void>();
  #stored: StoredLevel = { level: null, until: null, by: '', requestId: null };
  #cancelTimer = () => {};

  constructor(env: string | undefined, clock: LevelClock = wallClock) {
    this.base = parseLevel(env) ?? DEFAULT_LEVEL;
    this.warning = invalidLevelWarning(env);
    this.#clock = clock;
  }

  get(): LogLevel {
    return this.#stored.level ?? this.base;
  }

  get stored(): StoredLevel {
    return this.#stored;
  }

  /** @param level null resets it */
  set(level: LogLevel | null, { ttlMs, by, requestId }: LevelRequest): LevelChange {
    const until = level === null || ttlMs === undefined ? null : this.#clock.now() + ttlMs;
    const previous = this.get();
    this.#stored = { level, until, by, requestId: requestId ?? this.#stored.requestId };
    for (const listener of this.#setListeners) listener(this.#stored);
    this.#startTimer();
    const change = { level: this.get(), previous, by };
    if (change.level !== previous) this.#notify(change);
    return change;
  }

  /** Applies the state of an earlier process, unless it has expired. */
  restore(stored: StoredLevel): void {
    const previous = this.get();
    this.#stored = stored;
    const level = this.get();
    if (level !== previous) this.#notify({ level, previous, by: stored.by, isRestored: true });
    this.#checkExpiry();
  }

  onChange(listener: (change: LevelChange) => void): void {
    this.#changeListeners.add(listener);
  }

  /** @param listener called on every `set`, even without a change */
  onSet(listener: (stored: StoredLevel) => void): void {
    this.#setListeners.add(listener);
  }

  close(): void {
    this.#cancelTimer();
  }

  #checkExpiry(): void {
    const { until } = this.#stored;
    if (until !== null && until <= this.#clock.now()) this.set(null, { by: TIME_LIMIT });
    else this.#startTimer();
  }

  #startTimer(): void {
    this.#cancelTimer();
    this.#cancelTimer = () => {};
    const { until } = this.#stored;
    if (until === null) return;
    const leftMs = Math.max(0, until - this.#clock.now());
    this.#cancelTimer = this.#clock.after(Math.min(leftMs, MAX_TIMER_MS), () => this.#checkExpiry());
  }

  #notify(change: LevelChange): void {
    for (const listener of this.#changeListeners) listener(change);
  }
}

/** @returns null if the variable is valid or empty */
export function invalidLevelWarning(env: string | undefined): string | null {
  if (env === undefined || env.trim() === '' || parseLevel(env) !== null) return null;
  const value = JSON.stringify(truncateText(env, 100));
  return `INTERLUDE_LOG_LEVEL is ${value}, not one of ${LOG_LEVELS.join(', ')}; using ${DEFAULT_LEVEL}`;
}

export function parseLevel(text: unknown): LogLevel | null {
  const level = typeof text === 'string' ? text.trim().toLowerCase() : '';
  return (LOG_LEVELS as readonly string[]).includes(level) ? (level as LogLevel) : null;
}

/**
 * Stores a level switch in the outbox's file, so that it outlives the process.
 *
 * Ordering: changes are stored in order. A command is answered once its change is stored.
 * Failure: a change that can't be stored still applies to this process; the log has a warning.
 */
export class PersistentLevel {
  readonly #level: LevelSwitch;
  readonly #outbox: Pick<Outbox, 'cursor' | 'enqueue'>;
  readonly #onTrouble: (message: string) => void;
  #stored: Promise<void> = Promise.resolve();

  private constructor(
    level: LevelSwitch,
    outbox: Pick<Outbox, 'cursor' | 'enqueue'>,
    onTrouble: (message: string) => void,
  ) {
    this.#level = level;
    this.#outbox = outbox;
    this.#onTrouble = onTrouble;
  }

  /**
   * Restores the level of the previous process. Passes warnings, including those about the environment, to `onTrouble`.
   */
  static async restore(
    level: LevelSwitch,
    outbox: Pick<Outbox, 'cursor' | 'enqueue'>,
    onTrouble: (message: string) => void,
  ): Promise<PersistentLevel> {
    const persistent = new PersistentLevel(level, outbox, onTrouble);
    const stored = parseStoredLevel(await outbox.cursor(CURSOR));
    level.onSet((set) => persistent.#store(set));
    if (stored !== null) level.restore(stored);
    if (level.warning !== null) onTrouble(level.warning);
    return persistent;
  }

  /** Applies a request of the dashboard, unless it was applied before: later changes by others then stay. */
  async apply({ level, ttlSeconds, by, requestId }: CommandBodies['log-level.set']): Promise<CommandOutcome> {
    if (level !== null && parseLevel(level) === null) {
      return { state: 'failed', reason: `unknown level ${level}; use ${LOG_LEVELS.join(', ')}` };
    }
    if (requestId === undefined || requestId !== this.#level.stored.requestId) {
      const ttl = ttlSeconds === undefined ? {} : { ttlMs: ttlSeconds * 1_000 };
      this.#level.set(level, { ...ttl, by: by ?? 'the dashboard', requestId });
    }
    await this.#stored;
    return { state: 'done', result: { level: this.#level.get() } };
  }

  /** Fields for the status record. */
  get report() {
    const { level, by, until } = this.#level.stored;
    return { by: level === null ? null : by, until, base: this.#level.base };
  }

  #store(stored: StoredLevel): void {
    this.#stored = this.#enqueue(stored).catch((error) => {
      const why = error instanceof Error ? error.message : String(error);
      this.#onTrouble(`could not store the log level for the next process (${why})`);
    });
  }

  /** Async, so that it rejects when a stopped outbox throws. */
  async #enqueue(stored: StoredLevel): Promise<void> {
    await this.#outbox.enqueue([], { name: CURSOR, value: JSON.stringify(stored) });
  }
}

const CURSOR = 'log-level';

const storedLevelSchema: z.ZodType<StoredLevel> = z.object({
  level: z.enum(LOG_LEVELS).nullable().catch(null),
  until: z.number().nullable().catch(null),
  by: z.string().catch(''),
  requestId: z.string().nullable().catch(null),
});

/** @returns null if nothing valid is stored */
function parseStoredLevel(text: string | null): StoredLevel | null {
  return storedLevelSchema.safeParse(parseJson(text ?? '')).data ?? null;
}
