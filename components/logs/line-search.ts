import type { Position } from '@interlude/protocol/position';
import { findHits, type Hit, joinHits, type LogFilter, matchesText } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { hasTime, inSlice } from '@/components/ui/idle-queue';

/** The result of a search for one line. */
export interface LineResult {
  /** Null while unknown, or without a search. */
  isFound: boolean | null;
  /** Ranges to mark in the shown text, as far as they are known. */
  hits: readonly Hit[];
  /** True once the result is complete. */
  isDone: boolean;
}

export const UNSEARCHED: LineResult = { isFound: null, hits: [], isDone: true };

interface Progress {
  text: string;
  result: LineResult;
  found: Hit[];
  rest: Iterator<Hit | null>;
}

/** Longer lines, in UTF-16 units, are searched in the idle queue. */
const MAX_IMMEDIATE_LENGTH = 4_000;
/** Size of the cache: more lines than are ever laid out. */
const MAX_LINES = 1_000;

/**
 * A search, and its results for the lines that are laid out. A regular expression may take tens of milliseconds on one
 * line, so each line is searched once: during the render while there is time, then in the idle queue.
 */
export class LineSearch {
  readonly filter: LogFilter;
  readonly #dims: boolean;
  readonly #progress = new Map<Position, Progress>();

  /** @param dims lines that don't match stay visible and are dimmed */
  constructor(filter: LogFilter, dims: boolean) {
    this.filter = filter;
    this.#dims = dims;
  }

  /** @param text the shown part of the line */
  result(line: LogLine, text: string): LineResult {
    const { result } = this.#of(line, text);
    if (result.isDone) return result;
    // Cheap without a regular expression, and the server's markup includes it.
    if (this.filter.regex === null && !this.#dims) return this.#work(line, text, () => true);
    return line.message.length <= MAX_IMMEDIATE_LENGTH && hasTime() ? this.advance(line, text) : result;
  }

  /** Continues the search for one slice of time. */
  advance(line: LogLine, text: string): LineResult {
    return inSlice((hasTimeLeft) => this.#work(line, text, hasTimeLeft));
  }

  #work(line: LogLine, text: string, hasTimeLeft: () => boolean): LineResult {
    const progress = this.#of(line, text);
    let { isFound, isDone } = progress.result;
    while (!isDone) {
      if (this.#dims && isFound === null) {
        isFound = matchesText(this.filter, line.message);
        isDone = !isFound;
      } else {
        const { value, done } = progress.rest.next();
        if (value) progress.found.push(value);
        isDone = done === true;
      }
      if (!hasTimeLeft()) break;
    }
    progress.result = { isFound, isDone, hits: joinHits(progress.found) };
    return progress.result;
  }

  #of({ position }: LogLine, text: string): Progress {
    const known = this.#progress.get(position);
    if (known?.text === text) return known;
    const isFound = known?.result.isFound ?? null;
    const progress: Progress = {
      text,
      result: { isFound, hits: [], isDone: isFound === false },
      found: [],
      rest: findHits(this.filter, text),
    };
    this.#progress.set(position, progress);
    const oldest = this.#progress.keys().next().value;
    if (this.#progress.size > MAX_LINES && oldest !== undefined) this.#progress.delete(oldest);
    return progress;
  }
}
