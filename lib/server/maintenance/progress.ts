import { say } from '@interlude/runner/cli/command';

/** How often a terminal is told, and a file that keeps the output. */
const TERMINAL_MS = 200;
const FILE_MS = 5_000;

/** Says how far long work has come: in place on a terminal, else a line now and then. */
export class Progress {
  readonly #moves = process.stderr.isTTY === true;
  #toldAt = performance.now();
  #isShown = false;

  /** @param line made only when it is time to tell it */
  tell(line: () => string): void {
    const now = performance.now();
    if (now - this.#toldAt < (this.#moves ? TERMINAL_MS : FILE_MS)) return;
    this.#toldAt = now;
    if (!this.#moves) {
      say(line());
      return;
    }
    process.stderr.write(`\r\x1b[K${line()}`);
    this.#isShown = true;
  }

  /** Before anything else is said. */
  end(): void {
    if (this.#isShown) process.stderr.write('\r\x1b[K');
    this.#isShown = false;
  }
}
