import { cutText } from '@interlude/protocol/cut-text';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/log-levels';
import type { OutboxClock } from '../outbox/delivery';

export interface LevelChange {
  level: LogLevel;
  previous: LogLevel;
  /** Who asked: a person, `control-port`, TIME_LIMIT. */
  by: string;
  /** As it was set in an earlier process: nothing changes in the log. */
  isRestored?: true;
}

/** The name of what ends a level when its time is over. */
export const TIME_LIMIT = 'time-limit';

/** What was set, stored beyond the process. */
export interface LevelMemory {
  /** Null: nothing is set. */
  level: LogLevel | null;
  /** Epoch milliseconds; null: until it is set otherwise. */
  until: number | null;
  by: string;
  /** What the dashboard asked for last and was done here, also where somebody else has turned it since. */
  requestId: string | null;
}

export interface LevelWish {
  /** After this it is as if nothing had been set. */
  ttlMs?: number;
  by: string;
  requestId?: string;
}

export type LevelClock = Pick<OutboxClock, 'now' | 'after'>;

/** A level's time keeps no process alive. */
const wallClock: LevelClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

const DEFAULT_LEVEL: LogLevel = 'info';

/** How often the clock is checked: timers stand still while a machine sleeps, and no timer runs for months. */
const LOOK_MS = 30_000;

/**
 * Which level is written: a switch set at run time, else INTERLUDE_LOG_LEVEL, else info. A switch with a time limit
 * goes back by itself, so that nobody's debug session fills a disk for weeks.
 */
export class LevelSwitch {
  readonly base: LogLevel;
  /** What to say about an INTERLUDE_LOG_LEVEL that is not a level; else null. */
  readonly misread: string | null;
  readonly #clock: LevelClock;
  readonly #changed = new Set<(change: LevelChange) => void>();
  readonly #kept = new Set<(memory: LevelMemory) => void>();
  #memory: LevelMemory = { level: null, until: null, by: '', requestId: null };
  #callOff = () => {};

  constructor(env: string | undefined, clock: LevelClock = wallClock) {
    this.base = parseLevel(env) ?? DEFAULT_LEVEL;
    this.misread = misreadLevel(env);
    this.#clock = clock;
  }

  get(): LogLevel {
    return this.#memory.level ?? this.base;
  }

  get memory(): LevelMemory {
    return this.#memory;
  }

  /** @param level null: nothing is set any more */
  set(level: LogLevel | null, { ttlMs, by, requestId }: LevelWish): LevelChange {
    const until = level === null || ttlMs === undefined ? null : this.#clock.now() + ttlMs;
    const previous = this.get();
    this.#memory = { level, until, by, requestId: requestId ?? this.#memory.requestId };
    for (const keep of this.#kept) keep(this.#memory);
    this.#watch();
    const change = { level: this.get(), previous, by };
    if (change.level !== previous) this.#tell(change);
    return change;
  }

  /** Goes on with what an earlier process had set, or ends it where its time ran out since. */
  restore(memory: LevelMemory): void {
    const previous = this.get();
    this.#memory = memory;
    const level = this.get();
    if (level !== previous) this.#tell({ level, previous, by: memory.by, isRestored: true });
    this.#look();
  }

  onChange(listener: (change: LevelChange) => void): void {
    this.#changed.add(listener);
  }

  /** @param listener called whenever the level is set, even to what it was */
  onSet(listener: (memory: LevelMemory) => void): void {
    this.#kept.add(listener);
  }

  /** Its time runs no longer. */
  close(): void {
    this.#callOff();
  }

  #look(): void {
    const { until } = this.#memory;
    if (until !== null && until <= this.#clock.now()) this.set(null, { by: TIME_LIMIT });
    else this.#watch();
  }

  #watch(): void {
    this.#callOff();
    this.#callOff = () => {};
    const { until } = this.#memory;
    if (until === null) return;
    const leftMs = Math.max(0, until - this.#clock.now());
    this.#callOff = this.#clock.after(Math.min(leftMs, LOOK_MS), () => this.#look());
  }

  #tell(change: LevelChange): void {
    for (const tell of this.#changed) tell(change);
  }
}

/** @returns null for a level, and for nothing */
export function misreadLevel(env: string | undefined): string | null {
  if (env === undefined || env.trim() === '' || parseLevel(env) !== null) return null;
  const value = JSON.stringify(cutText(env, 100));
  return `INTERLUDE_LOG_LEVEL is ${value}, which is none of ${LOG_LEVELS.join(', ')}; ${DEFAULT_LEVEL} is used`;
}

export function parseLevel(text: unknown): LogLevel | null {
  const level = typeof text === 'string' ? text.trim().toLowerCase() : '';
  return (LOG_LEVELS as readonly string[]).includes(level) ? (level as LogLevel) : null;
}
