import { CUSTOM, customName, customValue, taskEventId } from '@interlude/protocol/event-fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import type { ClientParts } from './client-parts';
import { messageIdOf } from './run-input';

/** Most messages, and most other events, that wait for a run. */
const MOST_MESSAGES = 64;
const MOST_OTHERS = 256;
/** Most JSON of all held events, in UTF-16 code units. */
const MOST_TEXT = 4 * 1024 * 1024;

/**
 * What stands outside of runs and waits for one: people's messages for the run that answers them, and what is worth no
 * run of its own for the next.
 *
 * Failure: what is too much is left out, the oldest first, and counted.
 */
export class HeldBack {
  readonly #parts: ClientParts;
  /** By the id of the message in the log; in the entries it has the id that its client gave it. */
  readonly #messages = new Map<string, EventEntry[]>();
  /** Messages that are not written: the client has them, because it sent them, or they were left out. */
  readonly #untold = new Set<string>();
  #others: EventEntry[] = [];
  readonly #sizes = new WeakMap<EventEntry, number>();
  #size = 0;
  #leftOut = 0;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  get isEmpty(): boolean {
    return this.#messages.size === 0 && this.#others.length === 0;
  }

  /**
   * @param mayStand whether a message that the agent itself reports may be written where it is
   * @returns whether the event is about a message that is held back, or is the client's own
   */
  takeMessage(entry: EventEntry, mayStand: boolean): boolean {
    const { event } = entry;
    const [said] = inputsOf(event);
    if (said?.kind !== 'text') return false;
    const { id } = said;
    if (this.#untold.has(id)) return true;
    const held = this.#messages.get(id);
    const begins = event.type === 'TEXT_MESSAGE_START' || event.type === 'TEXT_MESSAGE_CHUNK';
    if (held === undefined && (!begins || event.role !== 'user' || typeof event.subagentRunId === 'string'))
      return false;
    const { clientId, delivery } = readInterlude(event);
    const name = held?.[0]?.event.messageId ?? messageIdOf(clientId) ?? id;
    if (held !== undefined) {
      held.push(this.#weighed(renamed(entry, name)));
      this.#bound();
    } else if (this.#parts.hasId(String(name))) this.#untold.add(id);
    else if (mayStand && delivery === undefined) return false;
    else this.#hold(id, renamed(entry, name));
    return true;
  }

  hold(entry: EventEntry): void {
    // Only how far a task has come now is of interest.
    const task = progressingTask(entry);
    const earlier = task === null ? undefined : this.#others.find((other) => progressingTask(other) === task);
    if (earlier !== undefined) {
      this.#others.splice(this.#others.indexOf(earlier), 1);
      this.#forget([earlier]);
    }
    this.#others.push(this.#weighed(entry));
    this.#bound();
  }

  /** @param ids of the messages that are meant, besides all else that waits; null for all */
  release(ids: readonly string[] | null): { entries: EventEntry[]; leftOut: number } {
    const meant = ids === null ? [...this.#messages.keys()] : ids;
    const released = { entries: [...this.#others], leftOut: this.#leftOut };
    this.#forget(this.#others);
    for (const id of meant) {
      this.#forget(this.#messages.get(id) ?? []);
      released.entries.push(...(this.#messages.get(id) ?? []));
      this.#messages.delete(id);
    }
    this.#others = [];
    this.#leftOut = 0;
    return released;
  }

  #hold(id: string, entry: EventEntry): void {
    this.#messages.set(id, [this.#weighed(entry)]);
    this.#bound();
  }

  /** Others go first: a message is the question to an answer. */
  #bound(): void {
    while (this.#others.length > MOST_OTHERS || (this.#size > MOST_TEXT && this.#others.length > 0)) {
      this.#forget(this.#others.splice(0, 1));
      this.#leftOut += 1;
    }
    for (const [oldest, entries] of this.#messages) {
      if (this.#messages.size <= MOST_MESSAGES && this.#size <= MOST_TEXT) return;
      this.#messages.delete(oldest);
      this.#untold.add(oldest);
      this.#forget(entries);
      this.#leftOut += 1;
    }
  }

  #weighed(entry: EventEntry): EventEntry {
    const size = JSON.stringify(entry.event).length;
    this.#sizes.set(entry, size);
    this.#size += size;
    return entry;
  }

  #forget(entries: readonly EventEntry[]): void {
    for (const entry of entries) this.#size -= this.#sizes.get(entry) ?? 0;
  }
}

function renamed(entry: EventEntry, messageId: unknown): EventEntry {
  return { ...entry, event: { ...entry.event, messageId } };
}

function progressingTask({ event }: EventEntry): string | null {
  if (customName(event) !== CUSTOM.taskProgress) return null;
  return JSON.stringify([taskEventId(event), customValue(event).run_id]);
}
