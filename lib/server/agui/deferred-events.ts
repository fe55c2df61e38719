import { CUSTOM, customName, customValue, taskEventId } from '@interlude/protocol/event-fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { type ClientParts, messageIdOf } from './client-parts';

/** Maximum deferred messages, and maximum other deferred events. */
const MAX_MESSAGES = 64;
const MAX_OTHERS = 256;
/** Maximum JSON of all deferred events, in UTF-16 code units. */
const MAX_TEXT = 4 * 1024 * 1024;

/**
 * Defers events between runs: people's messages until the run that answers them, other events until the next run.
 *
 * Failure: beyond the limits the oldest events are dropped and counted.
 */
export class DeferredEvents {
  readonly #parts: ClientParts;
  /** By the message's id in the log. The entries carry its client's id. */
  readonly #messages = new Map<string, EventEntry[]>();
  /** Messages that are never written, because the client sent them itself or they were dropped. */
  readonly #skipped = new Set<string>();
  #others: EventEntry[] = [];
  readonly #sizes = new WeakMap<EventEntry, number>();
  #size = 0;
  #dropped = 0;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  get isEmpty(): boolean {
    return this.#messages.size === 0 && this.#others.length === 0;
  }

  /**
   * @param isInTurn true if a message that the agent reports may be written immediately
   * @returns true if the event must not be written now, because its message is deferred or the client's own
   */
  deferMessage(entry: EventEntry, isInTurn: boolean): boolean {
    const { event } = entry;
    const [input] = inputsOf(event);
    if (input?.kind !== 'text') return false;
    const { id } = input;
    if (this.#skipped.has(id)) return true;
    const earlier = this.#messages.get(id);
    const begins = event.type === 'TEXT_MESSAGE_START' || event.type === 'TEXT_MESSAGE_CHUNK';
    if (earlier === undefined && (!begins || event.role !== 'user' || typeof event.subagentRunId === 'string'))
      return false;
    const { clientId, delivery } = readInterlude(event);
    const name = earlier?.[0]?.event.messageId ?? messageIdOf(clientId) ?? id;
    if (earlier !== undefined) {
      earlier.push(this.#measured(renamed(entry, name)));
      this.#enforceLimits();
    } else if (this.#parts.hasId(String(name))) this.#skipped.add(id);
    else if (isInTurn && delivery === undefined) return false;
    else this.#deferNew(id, renamed(entry, name));
    return true;
  }

  defer(entry: EventEntry): void {
    // A task's newest progress replaces the earlier one.
    const task = progressingTask(entry);
    const earlier = task === null ? undefined : this.#others.find((other) => progressingTask(other) === task);
    if (earlier !== undefined) {
      this.#others.splice(this.#others.indexOf(earlier), 1);
      this.#subtractSize([earlier]);
    }
    this.#others.push(this.#measured(entry));
    this.#enforceLimits();
  }

  /** @param ids of the messages to release with all other events; null for all messages */
  release(ids: readonly string[] | null): { entries: EventEntry[]; dropped: number } {
    const released = { entries: [...this.#others], dropped: this.#dropped };
    this.#subtractSize(this.#others);
    for (const id of ids ?? [...this.#messages.keys()]) {
      this.#subtractSize(this.#messages.get(id) ?? []);
      released.entries.push(...(this.#messages.get(id) ?? []));
      this.#messages.delete(id);
    }
    this.#others = [];
    this.#dropped = 0;
    return released;
  }

  #deferNew(id: string, entry: EventEntry): void {
    this.#messages.set(id, [this.#measured(entry)]);
    this.#enforceLimits();
  }

  /** Drops messages last, because a run may answer them. */
  #enforceLimits(): void {
    while (this.#others.length > MAX_OTHERS || (this.#size > MAX_TEXT && this.#others.length > 0)) {
      this.#subtractSize(this.#others.splice(0, 1));
      this.#dropped += 1;
    }
    for (const [oldest, entries] of this.#messages) {
      if (this.#messages.size <= MAX_MESSAGES && this.#size <= MAX_TEXT) return;
      this.#messages.delete(oldest);
      this.#skipped.add(oldest);
      this.#subtractSize(entries);
      this.#dropped += 1;
    }
  }

  #measured(entry: EventEntry): EventEntry {
    const size = JSON.stringify(entry.event).length;
    this.#sizes.set(entry, size);
    this.#size += size;
    return entry;
  }

  #subtractSize(entries: readonly EventEntry[]): void {
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
