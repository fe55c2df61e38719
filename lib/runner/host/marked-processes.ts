import { readdir, readFile } from 'node:fs/promises';

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
