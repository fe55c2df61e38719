import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import { answerId, newMessages, type RunInput, runOf, type StreamName } from './agui-frames';

const MAX_POSTED = 16;
const MAX_ATTRIBUTED = 512;

/** Posted runs that no stream has started. */
export class PostedRuns {
  readonly #inputs = new Map<string, RunInput>();
  /** Messages already attributed to a turn. */
  readonly #attributed = new Map<string, true>();
  /** Last message of the most recently started run. */
  #lastMessage: string | null = null;

  add(input: RunInput): void {
    setBounded(this.#inputs, input.runId, input, MAX_POSTED);
  }

  has(runId: string): boolean {
    return this.#inputs.has(runId);
  }

  /** Removes a started or refused run. */
  remove(runId: string): RunInput | undefined {
    const input = this.#inputs.get(runId);
    this.#inputs.delete(runId);
    if (input !== undefined) this.#lastMessage = textOf(input.messages.at(-1)?.id);
    return input;
  }

  /** Finds the posted run of a RUN_STARTED by id or last message. */
  idIn(started: Fields): string | null {
    const input = fieldsOf(started.input);
    for (const name of [runOf(started), textOf(input.runId)]) if (name !== null && this.#inputs.has(name)) return name;
    const ids = new Set(listOf(input.messages).map((message) => textOf(fieldsOf(message).id)));
    for (const [runId, { messages }] of this.#inputs) {
      const last = textOf(messages.at(-1)?.id);
      if (last !== null && ids.has(last)) return runId;
    }
    return null;
  }

  /** True if a RUN_STARTED repeats the last message of the most recently started run. */
  isLast(started: Fields): boolean {
    const last = textOf(fieldsOf(listOf(fieldsOf(started.input).messages).at(-1)).id);
    return last !== null && last === this.#lastMessage;
  }

  /** Messages of people that no turn has answered. A failed attempt counts as an answer. */
  unansweredMessages({ messages }: RunInput): { id: string; content: unknown }[] {
    return newMessages(messages).flatMap(({ id: name, role, toolCallId, content }) => {
      const id = textOf(name);
      const isFromPerson = role === 'user' || (role === 'tool' && id !== answerId(textOf(toolCallId) ?? ''));
      if (!isFromPerson || id === null || this.#attributed.has(id)) return [];
      const short = truncateText(id, MAX_ID_LENGTH);
      setBounded(this.#attributed, short, true, MAX_ATTRIBUTED);
      return [{ id: short, content }];
    });
  }
}

/** Events compared per run. */
const MAX_COMPARED = 4_096;
const MAX_REPLAYED = 32_768;

/**
 * Detects events that both streams carry for the last posted run. Events have no ids, so each event is written as often
 * as it occurs on the stream with more copies.
 */
export class DuplicateEvents {
  readonly #seen = new Map<string, Record<StreamName, number>>();

  /** Forgets the run, which was superseded or ended normally: no more duplicates follow. */
  clear(): void {
    this.#seen.clear();
  }

  /** Counts the event. @returns true if the other stream already had it */
  isCopy(stream: StreamName, event: Fields): boolean {
    const key = digestOf(event);
    const seen = this.#seen.get(key) ?? { run: 0, events: 0 };
    seen[stream] += 1;
    setBounded(this.#seen, key, seen, MAX_COMPARED);
    return seen[stream] <= seen[stream === 'run' ? 'events' : 'run'];
  }
}

/**
 * Detects the replay of a run when its event stream is reopened. A replay repeats events in order, so the first
 * different event ends it; a repeated RUN_STARTED alone drops nothing.
 */
export class Replay {
  #runId: string | null = null;
  #events: string[] = [];
  /** Index of the next expected event; null outside a replay. */
  #next: number | null = null;

  begin(runId: string | null): void {
    this.#runId = runId;
    this.#events = [];
    this.#next = null;
  }

  /** Digest of the run's first event. */
  get first(): string | null {
    return this.#events[0] ?? null;
  }

  isOf(runId: string | null): boolean {
    return runId !== null && runId === this.#runId;
  }

  restart(): void {
    this.#next = 0;
  }

  /** Records the event. @returns true for a repeat */
  repeats(event: Fields): boolean {
    const key = digestOf(event);
    if (this.#next !== null && this.#next < this.#events.length && this.#events[this.#next] === key) {
      this.#next += 1;
      return true;
    }
    this.#next = null;
    if (this.#events.length < MAX_REPLAYED) this.#events.push(key);
    return false;
  }
}

/** FNV-1a with two accumulators, fast enough for frames of megabytes. */
export function digestOf(event: Fields): string {
  const json = JSON.stringify(event);
  let [one, two] = [0x811c9dc5, 0x01000193];
  for (let index = 0; index < json.length; index += 1) {
    const unit = json.charCodeAt(index);
    one = Math.imul(one ^ unit, 0x01000193);
    two = Math.imul(two ^ (unit + index), 0x85ebca6b);
  }
  return `${json.length}:${one}:${two}`;
}
