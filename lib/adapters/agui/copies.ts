import type { Fields } from '@/lib/protocol/fields';
import { remember } from '../remember';
import type { StreamName } from './agui-frames';

/** Most events of a run that are compared, and the longest of them as JSON. */
const MAX_COMPARED = 4_096;
const MAX_COMPARED_JSON = 4 * 1024;

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
    const key = JSON.stringify(event);
    if (key.length > MAX_COMPARED_JSON) return false;
    const seen = this.#seen.get(key) ?? { run: 0, events: 0 };
    seen[stream] += 1;
    remember(this.#seen, key, seen, MAX_COMPARED);
    return seen[stream] <= seen[stream === 'run' ? 'events' : 'run'];
  }
}
