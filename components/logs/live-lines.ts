import type { Position } from '@interlude/protocol/position';
import { type LogFilter, matchesLine } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { inSlice } from '@/components/ui/idle-queue';
import { whenIdle } from '@/components/ui/when-idle';

export interface LiveLinesListener {
  /** All that match up to `to`. */
  matched(lines: readonly LogLine[], to: Position): void;
  /** Nobody looked at what came up to `to`. */
  skipped(to: Position): void;
}

/**
 * Matches what comes live against the filter, a slice of time at a time: a regex may take tens of milliseconds over one
 * line of 64 KiB, and a burst brings thousands.
 *
 * Ordering: as it came.
 * Failure: a search that is slower than the log would fall further behind for ever. When too much waits, it is given up
 * as a whole and told to be skipped.
 */
export class LiveLines {
  readonly #filter: LogFilter;
  readonly #mostChars: number;
  readonly #listener: LiveLinesListener;
  #waiting: LogLine[] = [];
  /** How many of those have been looked at. */
  #seen = 0;
  #chars = 0;
  #turn: { cancel(): void } | null = null;

  /** @param mostChars of messages that wait, in UTF-16 units */
  constructor(filter: LogFilter, mostChars: number, listener: LiveLinesListener) {
    this.#filter = filter;
    this.#mostChars = mostChars;
    this.#listener = listener;
  }

  push(lines: readonly LogLine[]): void {
    for (const line of lines) {
      this.#waiting.push(line);
      this.#chars += line.message.length;
    }
    // A filter that takes no time lets nothing wait.
    if (this.#turn === null) this.#goOn();
    if (this.#chars > this.#mostChars) this.#skip();
  }

  close(): void {
    this.#turn?.cancel();
    this.#turn = null;
    this.#forget();
  }

  #goOn(): void {
    this.#turn = null;
    const matching: LogLine[] = [];
    inSlice((goesOn) => {
      do {
        const line = this.#waiting[this.#seen];
        if (line === undefined) return;
        this.#seen += 1;
        this.#chars -= line.message.length;
        if (matchesLine(this.#filter, line)) matching.push(line);
      } while (goesOn());
    });
    const last = this.#waiting[this.#seen - 1];
    if (this.#seen < this.#waiting.length) this.#turn = whenIdle(() => this.#goOn());
    else this.#forget();
    if (last !== undefined) this.#listener.matched(matching, last.position);
  }

  #skip(): void {
    const last = this.#waiting.at(-1) as LogLine;
    this.close();
    this.#listener.skipped(last.position);
  }

  #forget(): void {
    this.#waiting = [];
    this.#seen = 0;
    this.#chars = 0;
  }
}
