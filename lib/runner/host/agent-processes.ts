import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * The processes an agent has started, known by a mark in the environment they inherited. A shell that runs in the
 * background outlives a CLI that was killed, and belongs to nobody then.
 */
export const MARK = 'INTERLUDE_AGENT_SESSION';

export interface MarkedProcess {
  pid: number;
  parentPid: number;
  command: string;
  /** The processor time that it has used, with that of its children that have ended. */
  cpuMs: number;
}

/** Linux counts processor time in hundredths of a second, whatever its kernel's own clock. */
const TICK_MS = 10;

/** @returns null if the system does not tell (only Linux does) */
export async function markedProcesses(mark: string): Promise<MarkedProcess[] | null> {
  const names = await readdir('/proc').catch(() => null);
  if (names === null) return null;
  const found = await Promise.all(
    names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).map((name) => readMarked(name, mark)),
  );
  return found.filter((one) => one !== null);
}

/** Those whose parent is not among them: one line for a shell and all it runs. */
export function topmost(processes: readonly MarkedProcess[]): MarkedProcess[] {
  const pids = new Set(processes.map(({ pid }) => pid));
  return processes.filter(({ parentPid }) => !pids.has(parentPid));
}

async function readMarked(name: string, mark: string): Promise<MarkedProcess | null> {
  try {
    const environment = await readFile(`/proc/${name}/environ`, 'utf8');
    if (!environment.split('\0').includes(`${MARK}=${mark}`)) return null;
    const [stat, commandLine] = await Promise.all([
      readFile(`/proc/${name}/stat`, 'utf8'),
      readFile(`/proc/${name}/cmdline`, 'utf8'),
    ]);
    // the name in parentheses may hold anything, also parentheses
    const [state, parentPid, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return null;
    const ticks = fields.slice(9, 13).reduce((sum, field) => sum + Number(field), 0);
    const cpuMs = ticks * TICK_MS;
    return { pid: Number(name), parentPid: Number(parentPid), command: commandOf(commandLine), cpuMs };
  } catch {
    // gone meanwhile, or somebody else's
    return null;
  }
}

/** What a person would recognise: Claude Code wraps a command into `eval '…'` with its own preparations around it. */
function commandOf(commandLine: string): string {
  const text = commandLine.split('\0').join(' ').trim();
  const inner = /\beval '((?:[^']|'\\''|'"'"')*)'/.exec(text)?.[1];
  return (inner ?? text).replaceAll(/'\\''|'"'"'/g, "'").slice(0, 200);
}

/** What an agent or a runner that was killed leaves behind. */

const END_WITHIN_MS = 3_000;
const LOOK_EVERY_MS = 50;

/**
 * Ends the CLI of a runner that was killed, which may still be at work: two on one conversation would tear it apart.
 * A process that only has the number, and not the mark, is somebody else's and stays.
 */
export async function terminateOrphan(pid: number, mark: string): Promise<void> {
  const isThere = async () => (await markedProcesses(mark))?.some((one) => one.pid === pid) ?? false;
  if (!(await isThere())) return;
  kill(pid, 'SIGTERM');
  const deadline = Date.now() + END_WITHIN_MS;
  while (await isThere()) {
    if (Date.now() > deadline) return kill(pid, 'SIGKILL');
    await pause(LOOK_EVERY_MS);
  }
}

/** Commands that go on though the CLI that started them is gone. @param known those that were told of already */
export async function survivingProcesses(mark: string, known: ReadonlySet<number>): Promise<MarkedProcess[]> {
  return topmost((await markedProcesses(mark)) ?? []).filter(({ pid }) => !known.has(pid));
}

export function survivorsNotice(left: readonly MarkedProcess[]): string {
  const which = left.length === 1 ? 'A command it had started still runs' : 'Commands it had started still run';
  const list = left.map(({ pid, command }) => `${command} (process ${pid})`).join('; ');
  return `${which}, and nobody will be told how that ends: ${list}`;
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // gone already
  }
}

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
export class CpuSampler {
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
