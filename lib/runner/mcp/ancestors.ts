import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Between an agent and what it starts stand a shell and npm, if anything. */
const MOST_ANCESTORS = 8;

const run = promisify(execFile);

/** The processes above this one, the nearest first: an agent that started it is among them. */
export async function ancestors(): Promise<number[]> {
  const chain: number[] = [];
  for (let pid: number | null = process.ppid; pid !== null && pid > 1 && chain.length < MOST_ANCESTORS; ) {
    chain.push(pid);
    pid = await parentOf(pid);
  }
  return chain;
}

/** @returns null where the system does not tell */
async function parentOf(pid: number): Promise<number | null> {
  try {
    if (process.platform === 'linux') {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      // the name in parentheses may hold anything, also parentheses
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    }
    if (process.platform === 'win32') return null;
    const { stdout } = await run('ps', ['-o', 'ppid=', '-p', `${pid}`]);
    return Number(stdout) || null;
  } catch {
    return null;
  }
}
