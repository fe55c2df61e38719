import { birthOf, isGone, type TerminalProcess } from '../hooks/terminal-process';

const LOOK_EVERY_MS = 1_000;

/**
 * Processes that an agent has started and whose ends it does not tell: looked at every second until they are gone.
 *
 * Failure: one that is not there at the first look has ended already, or its number is that of another machine.
 */
export class FollowedProcesses {
  readonly #onEnded: (pid: number, wasSeen: boolean) => void;
  readonly #lookEveryMs: number;
  readonly #followed = new Map<number, TerminalProcess | null>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onEnded: (pid: number, wasSeen: boolean) => void, lookEveryMs = LOOK_EVERY_MS) {
    this.#onEnded = onEnded;
    this.#lookEveryMs = lookEveryMs;
  }

  /** Follows these and no others. */
  follow(pids: readonly number[]): void {
    for (const pid of this.#followed.keys()) if (!pids.includes(pid)) this.#followed.delete(pid);
    const fresh = pids.filter((pid) => !this.#followed.has(pid));
    for (const pid of fresh) this.#followed.set(pid, null);
    if (this.#followed.size === 0) this.close();
    else this.#timer ??= setInterval(() => void this.#look(), this.#lookEveryMs).unref();
    if (fresh.length > 0) void this.#look();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    for (const [pid, known] of [...this.#followed]) {
      const seen = known ?? { pid, birth: await birthOf(pid) };
      const isEnded = seen.birth === 'dead' || (await isGone(seen));
      if (!this.#followed.has(pid)) continue;
      this.#followed.set(pid, seen);
      if (!isEnded) continue;
      this.#followed.delete(pid);
      this.#onEnded(pid, known !== null || seen.birth !== null);
    }
  }
}
