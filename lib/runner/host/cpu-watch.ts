import { type MarkedProcess, markedProcesses } from './marked-processes';

/** Processor time is sampled after this much silence, and then at this interval. */
const SILENT_MS = 120_000;
const EVERY_MS = 60_000;
/** Less between two samples is no work: a waiting agent uses a little, too. */
const WORK_MS = 1_000;

interface Watched {
  toldAt: number;
  lookedAt: number;
  cpuMs: number | null;
  /** As reported. */
  seconds: number | null;
}

/**
 * Samples the processor time of silent agents in an open turn, since a long build may print nothing. Covers the processes
 * that carry the session's mark, on Linux only.
 */
export class CpuWatch {
  readonly #watched = new Map<string, Watched>();
  readonly #processesOf: (mark: string) => Promise<Pick<MarkedProcess, 'cpuMs'>[] | null>;

  constructor(processesOf: (mark: string) => Promise<Pick<MarkedProcess, 'cpuMs'>[] | null> = markedProcesses) {
    this.#processesOf = processesOf;
  }

  /** Restarts the silence: the session has emitted events. @param now milliseconds of a steady clock */
  told(sessionId: string, now: number): void {
    this.#watched.set(sessionId, { toldAt: now, lookedAt: now, cpuMs: null, seconds: null });
  }

  /** Null before the first sample of a silence, and where the system gives none. */
  secondsOf(sessionId: string): number | null {
    return this.#watched.get(sessionId)?.seconds ?? null;
  }

  /** @param busy the sessions with an open turn */
  async look(busy: ReadonlySet<string>, now: number): Promise<void> {
    // includes a turn left open by the previous process
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
    // a process that ended may take its time along: a smaller sum is work, too
    if (used >= WORK_MS) watched.seconds = Math.round(cpuMs / 1_000);
  }
}
