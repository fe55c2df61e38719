import type { CommandBodies } from '@interlude/protocol/commands';
import { cutText } from '@interlude/protocol/cut-text';
import { parseJson } from '@interlude/protocol/fields';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/log-levels';
import * as z from 'zod';
import type { CommandOutcome } from '../host/seen-commands';
import type { OutboxClock } from '../outbox/clock';
import type { Outbox } from '../outbox/outbox';

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

/**
 * A level switch that outlives its process, in the outbox's file: the level, and when it goes back by itself.
 *
 * Ordering: what is set later is stored later. A command is answered once what it set is stored.
 * Failure: a switch that can't be stored is turned all the same, and the log says that the next process won't know.
 */
export class KeptLevel {
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

  /** Goes on where the process before this one was. What the environment says of it and nobody understands is told. */
  static async restore(
    level: LevelSwitch,
    outbox: Pick<Outbox, 'cursor' | 'enqueue'>,
    onTrouble: (message: string) => void,
  ): Promise<KeptLevel> {
    const kept = new KeptLevel(level, outbox, onTrouble);
    const memory = parseMemory(await outbox.cursor(CURSOR));
    level.onSet((set) => kept.#store(set));
    if (memory !== null) level.restore(memory);
    if (level.misread !== null) onTrouble(level.misread);
    return kept;
  }

  /** Does what the dashboard asks, unless it has been done: then whoever has turned it since is not overruled. */
  async obey({ level, ttlSeconds, by, requestId }: CommandBodies['log-level.set']): Promise<CommandOutcome> {
    if (level !== null && parseLevel(level) === null) {
      return { state: 'failed', reason: `this runner has no level ${level}, only ${LOG_LEVELS.join(', ')}` };
    }
    if (requestId === undefined || requestId !== this.#level.memory.requestId) {
      const ttl = ttlSeconds === undefined ? {} : { ttlMs: ttlSeconds * 1_000 };
      this.#level.set(level, { ...ttl, by: by ?? 'the dashboard', requestId });
    }
    await this.#stored;
    return { state: 'done', result: { level: this.#level.get() } };
  }

  /** For the status record. */
  get report() {
    const { level, by, until } = this.#level.memory;
    return { by: level === null ? null : by, until, base: this.#level.base };
  }

  #store(memory: LevelMemory): void {
    this.#stored = this.#enqueue(memory).catch((error) => {
      const why = error instanceof Error ? error.message : String(error);
      this.#onTrouble(`the log level can’t be kept for the next process (${why})`);
    });
  }

  /** Rejects also where the outbox throws at once, because it is stopped. */
  async #enqueue(memory: LevelMemory): Promise<void> {
    await this.#outbox.enqueue([], { name: CURSOR, value: JSON.stringify(memory) });
  }
}

const CURSOR = 'log-level';

const memorySchema: z.ZodType<LevelMemory> = z.object({
  level: z.enum(LOG_LEVELS).nullable().catch(null),
  until: z.number().nullable().catch(null),
  by: z.string().catch(''),
  requestId: z.string().nullable().catch(null),
});

/** @returns null if nothing was ever set, or nothing that can be read */
function parseMemory(text: string | null): LevelMemory | null {
  return memorySchema.safeParse(parseJson(text ?? '')).data ?? null;
}
