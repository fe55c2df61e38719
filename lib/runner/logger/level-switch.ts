import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/envelope';

export interface LevelChange {
  level: LogLevel;
  previous: LogLevel;
  /** Who asked: `control-port`, a person, `ttl`. */
  by: string;
}

/**
 * Which level is written: a switch set at run time, else INTERLUDE_LOG_LEVEL, else info. A switch with a time to live
 * goes back by itself, so that nobody's debug session fills a disk for weeks.
 */
export class LevelSwitch {
  readonly #base: LogLevel;
  readonly #listeners = new Set<(change: LevelChange) => void>();
  #set: LogLevel | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(env: string | undefined) {
    this.#base = parseLevel(env) ?? 'info';
  }

  get(): LogLevel {
    return this.#set ?? this.#base;
  }

  /** @param ttlMs after this it is as if nothing had been set; null sets nothing any more at once */
  set(level: LogLevel | null, { ttlMs, by }: { ttlMs?: number; by: string }): LevelChange {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const previous = this.get();
    this.#set = level;
    if (level !== null && ttlMs !== undefined) {
      // Longer than a timer can run is as good as for ever; it would fire at once.
      this.#timer = setTimeout(() => this.set(null, { by: 'ttl' }), Math.min(ttlMs, 2 ** 31 - 1));
      this.#timer.unref();
    }
    const change = { level: this.get(), previous, by };
    if (change.level !== previous) for (const tell of this.#listeners) tell(change);
    return change;
  }

  onChange(listener: (change: LevelChange) => void): void {
    this.#listeners.add(listener);
  }
}

export function parseLevel(text: unknown): LogLevel | null {
  const level = typeof text === 'string' ? text.trim().toLowerCase() : '';
  return (LOG_LEVELS as readonly string[]).includes(level) ? (level as LogLevel) : null;
}
