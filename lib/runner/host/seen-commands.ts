import type { Ack } from '@interlude/protocol/commands';
import type { Position } from '@interlude/protocol/position';
import type { Outbox } from '../outbox/outbox';
import type { Cursor } from '../outbox/statements';

export type CommandOutcome = Pick<Ack, 'state' | 'reason' | 'result'>;

export interface SeenCommand {
  /** Epoch milliseconds. */
  takenAt: number;
  /** Null while it is executed, or if a kill interrupted that. */
  outcome: CommandOutcome | null;
  /** True if the server knows the outcome. */
  acknowledged: boolean;
}

const PREFIX = 'command:';
const POSITION = 'commands-position';
/** Longer than the server keeps any command. */
const RETENTION_MS = 8 * 24 * 60 * 60_000;

/**
 * Stores received commands and their outcomes in the outbox's file, so that a command delivered twice is executed once,
 * even across restarts.
 *
 * Ordering: a command is stored before it is executed, its outcome before it is acknowledged.
 * Failure: a kill between the two leaves a command without an outcome. The process that receives it again knows that it
 * was started.
 */
export class SeenCommands {
  readonly #outbox: Outbox;
  readonly #commands: Map<string, SeenCommand>;
  #position: Position | null;

  private constructor(outbox: Outbox, commands: Map<string, SeenCommand>, position: Position | null) {
    this.#outbox = outbox;
    this.#commands = commands;
    this.#position = position;
  }

  static async load(outbox: Outbox, now: number): Promise<SeenCommands> {
    const stored = await outbox.cursors(PREFIX);
    const commands = new Map(
      [...stored].map(([name, value]) => [name.slice(PREFIX.length), JSON.parse(value) as SeenCommand]),
    );
    const old = forgetOld(commands, now);
    if (old.length > 0) await outbox.enqueue([], old);
    // Without a position the server sends interrupted commands immediately, before their leases expire.
    const isInterrupted = [...commands.values()].some(({ outcome }) => outcome === null);
    return new SeenCommands(outbox, commands, isInterrupted ? null : await outbox.cursor(POSITION));
  }

  /** The position of the newest received command. */
  get position(): Position | null {
    return this.#position;
  }

  get(id: string): SeenCommand | undefined {
    return this.#commands.get(id);
  }

  /** Outcomes that the server may not know. */
  unacknowledged(): { id: string; outcome: CommandOutcome }[] {
    return [...this.#commands].flatMap(([id, { outcome, acknowledged }]) =>
      outcome !== null && !acknowledged ? [{ id, outcome }] : [],
    );
  }

  /** Durable when it returns, so that the command may be executed. */
  async begin(id: string, position: Position | null, now: number): Promise<void> {
    const old = forgetOld(this.#commands, now);
    await this.#store(id, { takenAt: now, outcome: null, acknowledged: false }, position, old);
  }

  async settle(id: string, outcome: CommandOutcome, now: number): Promise<void> {
    const takenAt = this.#commands.get(id)?.takenAt ?? now;
    await this.#store(id, { takenAt, outcome, acknowledged: false }, null);
  }

  async acknowledged(id: string, outcome: CommandOutcome): Promise<void> {
    const seen = this.#commands.get(id);
    // The response to an older outcome does not acknowledge a newer one, such as a delivered message that failed later.
    if (seen === undefined || seen.outcome !== outcome) return;
    await this.#store(id, { ...seen, acknowledged: true }, null);
  }

  /** Called when the server has another database. */
  async forgetPosition(): Promise<void> {
    this.#position = null;
    await this.#outbox.enqueue([], { name: POSITION, value: null });
  }

  async #store(id: string, seen: SeenCommand, position: Position | null, old: Cursor[] = []): Promise<void> {
    const cursors = [...old, { name: `${PREFIX}${id}`, value: JSON.stringify(seen) }];
    if (position !== null) cursors.push({ name: POSITION, value: position });
    await this.#outbox.enqueue([], cursors);
    this.#commands.set(id, seen);
    if (position !== null) this.#position = position;
  }
}

/** @returns updates that remove them from the file */
function forgetOld(commands: Map<string, SeenCommand>, now: number): Cursor[] {
  const old = [...commands].filter(([, { takenAt }]) => now - takenAt > RETENTION_MS);
  return old.map(([id]) => {
    commands.delete(id);
    return { name: `${PREFIX}${id}`, value: null };
  });
}
