import { type MarkedProcess, markedProcesses } from './marked-processes';

/** An agent that has told nothing for this long is looked at, this often. */
const SILENT_MS = 120_000;
const EVERY_MS = 60_000;
/** An agent that waits uses a little, too: less than this from one look to the next is no work. */
const WORK_MS = 1_000;

interface Watched {
  toldAt: number;
  lookedAt: number;
  cpuMs: number | null;
  /** As it is reported. */
  seconds: number | null;
}

/**
 * The processor time of agents in the middle of a turn that tell nothing: a build may be silent for long, and work. Known
 * of the processes that carry their session's mark, and on Linux alone.
 */
export class CpuWatch {
  readonly #watched = new Map<string, Watched>();
  readonly #processesOf: (mark: string) => Promise<Pick<MarkedProcess, 'cpuMs'>[] | null>;

  constructor(processesOf: (mark: string) => Promise<Pick<MarkedProcess, 'cpuMs'>[] | null> = markedProcesses) {
    this.#processesOf = processesOf;
  }

  /** The session's agent has told something. @param now milliseconds of a steady clock */
  told(sessionId: string, now: number): void {
    this.#watched.set(sessionId, { toldAt: now, lookedAt: now, cpuMs: null, seconds: null });
  }

  /** Null while the agent tells something, and where it is not known. */
  secondsOf(sessionId: string): number | null {
    return this.#watched.get(sessionId)?.seconds ?? null;
  }

  /** @param busy the sessions in the middle of a turn */
  async look(busy: ReadonlySet<string>, now: number): Promise<void> {
    // a turn that the runner before this one left open
    for (const sessionId of busy) if (!this.#watched.has(sessionId)) this.told(sessionId, now);
    for (const [sessionId, watched] of this.#watched) {
      if (!busy.has(sessionId)) this.#watched.delete(sessionId);
      else if (now - watched.toldAt >= SILENT_MS && now - watched.lookedAt >= EVERY_MS) {
        watched.lookedAt = now;
        await this.#lookAt(sessionId, watched);
      }
    }
  }

  async #lookAt(sessionId: string, watched: Watched): Promise<void> {
    const processes = (await this.#processesOf(sessionId)) ?? [];
    if (processes.length === 0) return;
    const cpuMs = processes.reduce((sum, process) => sum + process.cpuMs, 0);
    const used = watched.cpuMs === null ? WORK_MS : Math.abs(cpuMs - watched.cpuMs);
    watched.cpuMs = cpuMs;
    // the time of what has ended may be lost: less than before is work, too
    if (used >= WORK_MS) watched.seconds = Math.round(cpuMs / 1_000);
  }
}
