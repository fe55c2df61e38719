import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { uptime } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isLoopback } from './server-request';

const run = promisify(execFile);
const LSOF_MS = 3_000;

/**
 * Finds the local process that listens on an address, which identifies an external agent server. Uses /proc on Linux
 * and lsof on macOS.
 *
 * Failure: a server on another machine, in a container or of another user is not found.
 *
 * @param address an http address or the path of a Unix socket
 * @returns the index in `pids` of the first listener; null if there is none or the system does not say
 */
export async function findListener(pids: readonly number[], address: string): Promise<number | null> {
  const port = portOf(address);
  if (pids.length === 0 || port === null) return null;
  const find = process.platform === 'linux' ? byProc : byLsof;
  const listening = await find(pids, address, port).catch(() => new Set<number>());
  const index = pids.findIndex((pid) => listening.has(pid));
  return index < 0 ? null : index;
}

/** @returns undefined for a socket path, null for an address on another machine */
function portOf(address: string): number | null | undefined {
  if (!/^https?:/.test(address)) return undefined;
  if (!isLoopback(address)) return null;
  const { port, protocol } = new URL(address);
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

type Find = (pids: readonly number[], address: string, port: number | undefined) => Promise<Set<number>>;

const byProc: Find = async (pids, address, port) => {
  const inodes = port === undefined ? await inodesAtPath(await realpath(address)) : await inodesAtPort(port);
  const holds = async (pid: number) => {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const targets = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => '')));
    return targets.some((target) => inodes.has(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? ''));
  };
  const found = await Promise.all(pids.map(async (pid) => ((await holds(pid)) ? [pid] : [])));
  return new Set(found.flat());
};

const LISTENING_TCP = '0A';
/** SO_ACCEPTCON */
const LISTENING_UNIX = 0x10000;

/** @see proc_pid_net(5): `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode` */
async function inodesAtPort(port: number): Promise<Set<string>> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  const rows = tables.flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)));
  const isOurs = ([, local = '', , state]: string[]) =>
    state === LISTENING_TCP && Number.parseInt(local.split(':')[1] ?? '', 16) === port;
  return new Set(rows.filter(isOurs).flatMap((row) => row[9] ?? []));
}

/** @see proc_pid_net(5): `Num RefCount Protocol Flags Type St Inode Path` */
async function inodesAtPath(path: string): Promise<Set<string>> {
  const found = new Set<string>();
  for (const line of (await readFile('/proc/net/unix', 'utf8')).split('\n')) {
    const [, flags = '0', inode = '', at] = /^\S+ \S+ \S+ (\S+) \S+ \S+\s+(\d+)(?: (.*))?$/.exec(line) ?? [];
    const isListening = (Number.parseInt(flags, 16) & LISTENING_UNIX) !== 0;
    if (isListening && at !== undefined && (await realpath(at).catch(() => at)) === path) found.add(inode);
  }
  return found;
}

/** `-F` prints one field per line: `p4711` starts a process, `n…` is a name. */
export const byLsof: Find = async (pids, address, port) => {
  const what = port === undefined ? ['-U'] : ['-i', `TCP:${port}`, '-s', 'TCP:LISTEN', '-n', '-P'];
  const { stdout } = await run('lsof', ['-a', '-p', pids.join(','), ...what, '-F', 'pn'], { timeout: LSOF_MS });
  const found = new Set<number>();
  let pid = 0;
  for (const line of stdout.split('\n')) {
    if (line.startsWith('p')) pid = Number(line.slice(1));
    // Linux appends the type to the path.
    else if (line.startsWith('n') && (port !== undefined || line.slice(1).split(' ')[0] === address)) found.add(pid);
  }
  return found;
};

/**
 * Identifies a process across restarts of the runner.
 *
 * Failure: PIDs are reused, in a restarted container immediately. The start mark tells processes apart; where the
 * system provides none, the same PID counts as the same process.
 */
export interface ProcessIdentity {
  pid: number;
  /** Opaque start time of the process; null if unknown. */
  birth: string | null;
}

const execFileAsync = promisify(execFile);

/** @returns null for a missing process, and where the system provides none */
export async function startMarkOf(pid: number): Promise<string | null> {
  try {
    if (process.platform === 'linux') {
      const [boot, stat] = await Promise.all([
        readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
        readFile(`/proc/${pid}/stat`, 'utf8'),
      ]);
      // the process name in parentheses may itself contain parentheses
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // A zombie is not the process that was started.
      return fields[0] === 'Z' ? 'dead' : `${boot.trim()}/${fields[19]}`;
    }
    if (process.platform === 'win32') return null;
    const { stdout } = await execFileAsync('ps', ['-o', 'lstart=', '-p', `${pid}`], {
      env: { ...process.env, LC_ALL: 'C' },
    });
    return stdout.trim() || null;
  } catch {
    return null;
  }
}

/** Ticks per second of `starttime` in /proc (USER_HZ), 100 on Linux. */
const TICKS_PER_SECOND = 100;
/** Both values are truncated to a tick, and the clock may have been slewed. */
const BIRTH_ERROR_MS = 100;

/**
 * @param birth from `startMarkOf` during the current boot
 * @returns epoch milliseconds, at the latest the actual start; null if unknown
 */
export function startTimeOf(birth: string | null): number | null {
  if (birth === null || birth === 'dead') return null;
  if (process.platform !== 'linux') return Date.parse(birth) || null;
  const ticks = Number(birth.slice(birth.lastIndexOf('/') + 1));
  if (!Number.isFinite(ticks)) return null;
  const at = Math.floor(Date.now() - uptime() * 1000 + (ticks * 1000) / TICKS_PER_SECOND) - BIRTH_ERROR_MS;
  // In some containers uptime starts with the container but ticks with the machine.
  return at > Date.now() ? null : at;
}

export async function hasExited({ pid, birth }: ProcessIdentity): Promise<boolean> {
  if (!isAlive(pid)) return true;
  const now = birth === null ? null : await startMarkOf(pid);
  return now !== null && now !== birth;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const POLL_MS = 1_000;

/**
 * Watches processes whose ends the agent does not report.
 *
 * Failure: a process missing at the first check has already ended, or its PID belongs to another machine.
 */
export class ProcessExitWatcher {
  readonly #onEnded: (pid: number, wasSeen: boolean) => void;
  readonly #pollMs: number;
  readonly #watched = new Map<number, ProcessIdentity | null>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onEnded: (pid: number, wasSeen: boolean) => void, pollMs = POLL_MS) {
    this.#onEnded = onEnded;
    this.#pollMs = pollMs;
  }

  /** Replaces the watched PIDs. */
  watch(pids: readonly number[]): void {
    for (const pid of this.#watched.keys()) if (!pids.includes(pid)) this.#watched.delete(pid);
    const fresh = pids.filter((pid) => !this.#watched.has(pid));
    for (const pid of fresh) this.#watched.set(pid, null);
    if (this.#watched.size === 0) this.close();
    else this.#timer ??= setInterval(() => void this.#poll(), this.#pollMs).unref();
    if (fresh.length > 0) void this.#poll();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #poll(): Promise<void> {
    for (const [pid, known] of [...this.#watched]) {
      const seen = known ?? { pid, birth: await startMarkOf(pid) };
      const isEnded = seen.birth === 'dead' || (await hasExited(seen));
      if (!this.#watched.has(pid)) continue;
      this.#watched.set(pid, seen);
      if (!isEnded) continue;
      this.#watched.delete(pid);
      this.#onEnded(pid, known !== null || seen.birth !== null);
    }
  }
}

/**
 * Environment variable that marks the processes an agent started. Background shells outlive a killed CLI and keep it.
 */
export const MARK = 'INTERLUDE_AGENT_SESSION';

interface MarkedProcess {
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
function topmost(processes: readonly MarkedProcess[]): MarkedProcess[] {
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
const EXIT_POLL_MS = 50;

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
    await pause(EXIT_POLL_MS);
  }
}

/** Commands that still run although their CLI exited. @param known PIDs already reported */
export async function survivingProcesses(mark: string, known: ReadonlySet<number>): Promise<MarkedProcess[]> {
  return topmost((await markedProcesses(mark)) ?? []).filter(({ pid }) => !known.has(pid));
}

export function survivorsNotice(survivors: readonly MarkedProcess[]): string {
  const which =
    survivors.length === 1 ? 'A command it started is still running' : 'Commands it started are still running';
  const list = survivors.map(({ pid, command }) => `${command} (process ${pid})`).join('; ');
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
/** Less than this between two samples counts as idle, because a waiting agent uses some CPU too. */
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
