import { cutText } from '@interlude/protocol/cut-text';
import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { setBounded } from '../bounded-map';
import { answerId, newMessages, type RunInput, runOf, type StreamName } from './agui-frames';

const MAX_POSTED = 16;
/** Most messages that are remembered as having a turn. */
const MAX_ASKED = 512;

/** Posted runs that no stream has started yet. */
export class PostedRuns {
  readonly #inputs = new Map<string, RunInput>();
  /** Messages that a turn has named. */
  readonly #asked = new Map<string, true>();
  /** Id of the last message of the run that was taken last. */
  #lastAsked: string | null = null;

  add(input: RunInput): void {
    setBounded(this.#inputs, input.runId, input, MAX_POSTED);
  }

  has(runId: string): boolean {
    return this.#inputs.has(runId);
  }

  /** Removes a run that has started or was refused. */
  take(runId: string): RunInput | undefined {
    const input = this.#inputs.get(runId);
    this.#inputs.delete(runId);
    if (input !== undefined) this.#lastAsked = textOf(input.messages.at(-1)?.id);
    return input;
  }

  /** Id of the posted run that a RUN_STARTED starts, by its name or by its last message; null if there is none. */
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

  /** Whether a RUN_STARTED answers the message that the run taken last has answered. */
  isLast(started: Fields): boolean {
    const last = textOf(fieldsOf(listOf(fieldsOf(started.input).messages).at(-1)).id);
    return last !== null && last === this.#lastAsked;
  }

  /** Messages of people that no turn has answered yet. Earlier failed attempts count as answered. */
  newlyAsked({ messages }: RunInput): { id: string; content: unknown }[] {
    return newMessages(messages).flatMap(({ id: name, role, toolCallId, content }) => {
      const id = textOf(name);
      const isPersons = role === 'user' || (role === 'tool' && id !== answerId(textOf(toolCallId) ?? ''));
      if (!isPersons || id === null || this.#asked.has(id)) return [];
      const short = cutText(id, MAX_ID_LENGTH);
      setBounded(this.#asked, short, true, MAX_ASKED);
      return [{ id: short, content }];
    });
  }
}

/** Most events of a run that are compared. */
const MAX_COMPARED = 4_096;
const MAX_REPLAYED = 32_768;

/**
 * What both streams say of the run that was posted last. Events have no ids, so each is told as often as the stream
 * that says it most.
 */
export class DuplicateEvents {
  readonly #seen = new Map<string, Record<StreamName, number>>();

  /** Another run, or one that has ended in good order: nothing more is said of it twice. */
  clear(): void {
    this.#seen.clear();
  }

  /** Counts the event. @returns whether the other stream has said it already */
  isCopy(stream: StreamName, event: Fields): boolean {
    const key = digestOf(event);
    const seen = this.#seen.get(key) ?? { run: 0, events: 0 };
    seen[stream] += 1;
    setBounded(this.#seen, key, seen, MAX_COMPARED);
    return seen[stream] <= seen[stream === 'run' ? 'events' : 'run'];
  }
}

/**
 * Recognises a run that a server replays from its beginning when its stream of events is reopened. A replay repeats the
 * events in order, so the first event that differs ends it: a repeated RUN_STARTED alone drops nothing.
 */
export class Replay {
  #runId: string | null = null;
  #events: string[] = [];
  /** Index of the next event that a replay repeats; null outside of one. */
  #next: number | null = null;

  begin(runId: string | null): void {
    this.#runId = runId;
    this.#events = [];
    this.#next = null;
  }

  /** The first event of the run, if one was recorded. */
  get first(): string | null {
    return this.#events[0] ?? null;
  }

  isOf(runId: string | null): boolean {
    return runId !== null && runId === this.#runId;
  }

  restart(): void {
    this.#next = 0;
  }

  /** Records an event of the run. @returns whether it repeats one that was recorded before */
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

/** FNV-1a in two halves: frames of megabytes are compared, too. */
export function digestOf(event: Fields): string {
  const json = JSON.stringify(event);
  let [one, two] = [0x811c9dc5, 0x01000193];
  for (let at = 0; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    two = Math.imul(two ^ (unit + at), 0x85ebca6b);
  }
  return `${json.length}:${one}:${two}`;
}
