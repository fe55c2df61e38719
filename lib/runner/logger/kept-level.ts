import type { CommandBodies } from '@interlude/protocol/commands';
import { parseJson } from '@interlude/protocol/fields';
import { LOG_LEVELS } from '@interlude/protocol/record-vocabulary';
import * as z from 'zod';
import type { CommandOutcome } from '../commands/seen-commands';
import type { Outbox } from '../outbox/outbox';
import { type LevelMemory, type LevelSwitch, parseLevel } from './level-switch';

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
