import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import { promisify } from 'node:util';

/**
 * The process of an interactive agent, as it is known beyond the companion's own life.
 *
 * Failure: a pid is given to another process sooner or later, and in a container that starts anew at once. So a process
 * is known by its birth as well, where the system tells; where it does not, one that has its pid counts as the same.
 */
export interface TerminalProcess {
  pid: number;
  /** When it was started, in the system's own words. Null if it does not say. */
  birth: string | null;
}

const run = promisify(execFile);

/** @returns null for a process that is not there, and where the system does not tell */
export async function birthOf(pid: number): Promise<string | null> {
  try {
    if (process.platform === 'linux') {
      const [boot, stat] = await Promise.all([
        readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
        readFile(`/proc/${pid}/stat`, 'utf8'),
      ]);
      // the name in parentheses may hold anything, also parentheses
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // Dead, and nobody has asked what became of it: it is not the one that was born.
      return fields[0] === 'Z' ? 'dead' : `${boot.trim()}/${fields[19]}`;
    }
    if (process.platform === 'win32') return null;
    const { stdout } = await run('ps', ['-o', 'lstart=', '-p', `${pid}`], { env: { ...process.env, LC_ALL: 'C' } });
    return stdout.trim() || null;
  } catch {
    return null;
  }
}

/** Ticks per second of `starttime` in /proc: USER_HZ, which Linux keeps at 100 for programs. */
const TICKS_PER_SECOND = 100;
/** Uptime and start are cut to a tick each, and the clock may have been slewed since. */
const BIRTH_ERROR_MS = 100;

/**
 * @param birth as `birthOf` gave it on this machine, since it was started last
 * @returns epoch milliseconds, early rather than late; null where the system does not say
 */
export function bornAt(birth: string | null): number | null {
  if (birth === null || birth === 'dead') return null;
  if (process.platform !== 'linux') return Date.parse(birth) || null;
  const ticks = Number(birth.slice(birth.lastIndexOf('/') + 1));
  if (!Number.isFinite(ticks)) return null;
  return Math.floor(Date.now() - uptime() * 1000 + (ticks * 1000) / TICKS_PER_SECOND) - BIRTH_ERROR_MS;
}

export async function isGone({ pid, birth }: TerminalProcess): Promise<boolean> {
  if (!isAlive(pid)) return true;
  const now = birth === null ? null : await birthOf(pid);
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
