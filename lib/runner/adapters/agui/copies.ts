import type { Fields } from '@interlude/protocol/fields';
import { remember } from '../remember';
import type { StreamName } from './agui-frames';

/** Most events of a run that are compared. */
const MAX_COMPARED = 4_096;
const MAX_RETOLD = 32_768;

/**
 * What both streams say of the run that was posted last. Events have no ids, so each is told as often as the stream
 * that says it most.
 */
export class Copies {
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
    remember(this.#seen, key, seen, MAX_COMPARED);
    return seen[stream] <= seen[stream === 'run' ? 'events' : 'run'];
  }
}

/**
 * Recognises a run that a server replays from its beginning when its stream of events is reopened. A replay repeats the
 * events in order, so the first event that differs ends it: a repeated RUN_STARTED alone drops nothing.
 */
export class Replay {
  #runId: string | null = null;
  #told: string[] = [];
  /** Index of the next event that a replay repeats; null outside of one. */
  #next: number | null = null;

  begin(runId: string | null): void {
    this.#runId = runId;
    this.#told = [];
    this.#next = null;
  }

  /** The first event of the run, if one was recorded. */
  get first(): string | null {
    return this.#told[0] ?? null;
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
    if (this.#next !== null && this.#next < this.#told.length && this.#told[this.#next] === key) {
      this.#next += 1;
      return true;
    }
    this.#next = null;
    if (this.#told.length < MAX_RETOLD) this.#told.push(key);
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
