import { printNotice } from '@interlude/runner/cli/command';

const TERMINAL_MS = 200;
const FILE_MS = 5_000;

/** Shows progress: in place on a terminal, otherwise a line every few seconds. */
export class Progress {
  readonly #isTerminal = process.stderr.isTTY === true;
  #reportedAt = performance.now();
  #isShown = false;

  /** @param line called only when a line is due */
  report(line: () => string): void {
    const now = performance.now();
    if (now - this.#reportedAt < (this.#isTerminal ? TERMINAL_MS : FILE_MS)) return;
    this.#reportedAt = now;
    if (!this.#isTerminal) {
      printNotice(line());
      return;
    }
    process.stderr.write(`\r\x1b[K${line()}`);
    this.#isShown = true;
  }

  /** Clears the progress line. Call before other output. */
  clear(): void {
    if (this.#isShown) process.stderr.write('\r\x1b[K');
    this.#isShown = false;
  }
}

/** `412 B`, `1.3 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, at] = [bytes, 0];
  while (value >= 1024 && at < units.length - 1) [value, at] = [value / 1024, at + 1];
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

/** `340 ms`, `2.4 s`. */
export function formatDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
