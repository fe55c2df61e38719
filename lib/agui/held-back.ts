import type { EventEntry } from '@/lib/projections/event-entry';
import { customName, customValue, idField, taskEventId } from '@/lib/projections/event-fields';
import { interludeOf } from '@/lib/projections/interlude-metadata';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import type { ClientParts } from './client-parts';
import { messageIdOf } from './run-input';

/** Most messages, and most other events, that wait for a run. */
const MOST_MESSAGES = 64;
const MOST_OTHERS = 256;

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
  /** Messages that the client has, because it sent them. */
  readonly #own = new Set<string>();
  #others: EventEntry[] = [];
  #leftOut = 0;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  get isEmpty(): boolean {
    return this.#messages.size === 0 && this.#others.length === 0;
  }

  /**
   * @param mayStand whether a message that the agent itself tells of may be told where it is
   * @returns whether the event is about a message that is held back, or is the client's own
   */
  takeMessage(entry: EventEntry, mayStand: boolean): boolean {
    const { event } = entry;
    const id = event.type.startsWith('TEXT_MESSAGE_') ? idField(event, 'messageId') : null;
    if (id === null) return false;
    if (this.#own.has(id)) return true;
    const held = this.#messages.get(id);
    const begins = event.type === 'TEXT_MESSAGE_START' || event.type === 'TEXT_MESSAGE_CHUNK';
    if (held === undefined && (!begins || event.role !== 'user' || typeof event.subagentRunId === 'string'))
      return false;
    const { clientId, delivery } = interludeOf(event);
    const name = held?.[0]?.event.messageId ?? messageIdOf(clientId) ?? id;
    if (held !== undefined) held.push(renamed(entry, name));
    else if (this.#parts.hasId(String(name))) this.#own.add(id);
    else if (mayStand && delivery === undefined) return false;
    else this.#hold(id, renamed(entry, name));
    return true;
  }

  hold(entry: EventEntry): void {
    // Only how far a task has come now is of interest.
    const task = progressingTask(entry);
    if (task !== null) this.#others = this.#others.filter((other) => progressingTask(other) !== task);
    this.#others.push(entry);
    if (this.#others.length <= MOST_OTHERS) return;
    this.#others.shift();
    this.#leftOut += 1;
  }

  /** @param ids of the messages that are meant, besides all else that waits; null for all */
  release(ids: readonly string[] | null): { entries: EventEntry[]; leftOut: number } {
    const meant = ids === null ? [...this.#messages.keys()] : ids;
    const released = { entries: [...this.#others], leftOut: this.#leftOut };
    for (const id of meant) {
      released.entries.push(...(this.#messages.get(id) ?? []));
      this.#messages.delete(id);
    }
    this.#others = [];
    this.#leftOut = 0;
    return released;
  }

  #hold(id: string, entry: EventEntry): void {
    this.#messages.set(id, [entry]);
    if (this.#messages.size <= MOST_MESSAGES) return;
    for (const oldest of this.#messages.keys()) {
      this.#messages.delete(oldest);
      this.#leftOut += 1;
      return;
    }
  }
}

function renamed(entry: EventEntry, messageId: unknown): EventEntry {
  return { ...entry, event: { ...entry.event, messageId } };
}

function progressingTask({ event }: EventEntry): string | null {
  if (customName(event) !== CUSTOM.taskProgress) return null;
  return JSON.stringify([taskEventId(event), customValue(event).run_id]);
}
