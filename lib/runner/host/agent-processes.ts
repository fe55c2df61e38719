import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Environment variable that marks the processes an agent started. Background shells outlive a killed CLI and keep it.
 */
export const MARK = 'INTERLUDE_AGENT_SESSION';

export interface MarkedProcess {
  pid: number;
  parentPid: number;
  command: string;
  /** CPU time including that of exited children. */
  cpuMs: number;
}

/** Linux reports CPU time in hundredths of a second on every kernel. */
const TICK_MS = 10;

/** @returns null except on Linux */
export async function markedProcesses(mark: string): Promise<MarkedProcess[] | null> {
  const names = await readdir('/proc').catch(() => null);
  if (names === null) return null;
  const found = await Promise.all(
    names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).map((name) => readMarked(name, mark)),
  );
  return found.filter((one) => one !== null);
}

/** Processes whose parent is not in the list: a shell stands for everything it runs. */
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
    // the process name in parentheses may itself contain parentheses
    const [state, parentPid, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return null;
    const ticks = fields.slice(9, 13).reduce((sum, field) => sum + Number(field), 0);
    const cpuMs = ticks * TICK_MS;
    return { pid: Number(name), parentPid: Number(parentPid), command: commandOf(commandLine), cpuMs };
  } catch {
    // exited, or owned by another user
    return null;
  }
}

/** The command as a person typed it: Claude Code wraps it into `eval '…'`. */
function commandOf(commandLine: string): string {
  const text = commandLine.split('\0').join(' ').trim();
  const inner = /\beval '((?:[^']|'\\''|'"'"')*)'/.exec(text)?.[1];
  return (inner ?? text).replaceAll(/'\\''|'"'"'/g, "'").slice(0, 200);
}

const END_WITHIN_MS = 3_000;
const POLL_MS = 50;

/**
 * Ends the CLI that a killed runner left behind: two processes must not write to one conversation. A process with the
 * same PID but without the mark stays.
 */
export async function terminateOrphan(pid: number, mark: string): Promise<void> {
  const isThere = async () => (await markedProcesses(mark))?.some((one) => one.pid === pid) ?? false;
  if (!(await isThere())) return;
  kill(pid, 'SIGTERM');
  const deadline = Date.now() + END_WITHIN_MS;
  while (await isThere()) {
    if (Date.now() > deadline) return kill(pid, 'SIGKILL');
    await pause(POLL_MS);
  }
}

/** Commands that still run although their CLI exited. @param known PIDs already reported */
export async function survivingProcesses(mark: string, known: ReadonlySet<number>): Promise<MarkedProcess[]> {
  return topmost((await markedProcesses(mark)) ?? []).filter(({ pid }) => !known.has(pid));
}

export function survivorsNotice(left: readonly MarkedProcess[]): string {
  const which = left.length === 1 ? 'A command it started is still running' : 'Commands it started are still running';
  const list = left.map(({ pid, command }) => `${command} (process ${pid})`).join('; ');
  return `${which}, and how it ends won't be reported: ${list}`;
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // already gone
  }
}

/** Silence before the first CPU sample, and the interval of further ones. */
const SILENT_MS = 120_000;
const EVERY_MS = 60_000;
/** Less between two samples counts as idle; a waiting agent uses some CPU too. */
const WORK_MS = 1_000;

interface Watched {
  emittedAt: number;
  sampledAt: number;
  cpuMs: number | null;
  seconds: number | null;
}

/**
 * Samples the CPU time of silent agents with an open turn, since a long build may print nothing. Covers the marked
 * processes of a session, on Linux only.
 */
export class CpuSampler {
  readonly #watched = new Map<string, Watched>();
  readonly #processesOf: (mark: string) => Promise<Pick<MarkedProcess, 'cpuMs'>[] | null>;

  constructor(processesOf: (mark: string) => Promise<Pick<MarkedProcess, 'cpuMs'>[] | null> = markedProcesses) {
    this.#processesOf = processesOf;
  }

  /** Restarts the silence. @param now monotonic milliseconds */
  emitted(sessionId: string, now: number): void {
    this.#watched.set(sessionId, { emittedAt: now, sampledAt: now, cpuMs: null, seconds: null });
  }

  /** Null before the first sample, and where the system provides none. */
  secondsOf(sessionId: string): number | null {
    return this.#watched.get(sessionId)?.seconds ?? null;
  }

  /** @param busy sessions with an open turn */
  async sample(busy: ReadonlySet<string>, now: number): Promise<void> {
    // includes turns left open by the previous process
    for (const sessionId of busy) if (!this.#watched.has(sessionId)) this.emitted(sessionId, now);
    for (const [sessionId, watched] of this.#watched) {
      if (!busy.has(sessionId)) this.#watched.delete(sessionId);
      else if (now - watched.emittedAt >= SILENT_MS && now - watched.sampledAt >= EVERY_MS) {
        watched.sampledAt = now;
        await this.#sampleSession(sessionId, watched);
      }
    }
  }

  async #sampleSession(sessionId: string, watched: Watched): Promise<void> {
    const processes = (await this.#processesOf(sessionId)) ?? [];
    if (processes.length === 0) return;
    const cpuMs = processes.reduce((sum, process) => sum + process.cpuMs, 0);
    const used = watched.cpuMs === null ? WORK_MS : Math.abs(cpuMs - watched.cpuMs);
    watched.cpuMs = cpuMs;
    // an exiting process may reduce the sum, which counts as work too
    if (used >= WORK_MS) watched.seconds = Math.round(cpuMs / 1_000);
  }
}
