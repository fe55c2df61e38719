import { setTimeout as pause } from 'node:timers/promises';
import { type MarkedProcess, markedProcesses, topmost } from './marked-processes';

/** What an agent or a runner that was killed leaves behind. */

const END_WITHIN_MS = 3_000;
const LOOK_EVERY_MS = 50;

/**
 * Ends the CLI of a runner that was killed, which may still be at work: two on one conversation would tear it apart.
 * A process that only has the number, and not the mark, is somebody else's and stays.
 */
export async function endOrphan(pid: number, mark: string): Promise<void> {
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
export async function leftBehind(mark: string, known: ReadonlySet<number>): Promise<MarkedProcess[]> {
  return topmost((await markedProcesses(mark)) ?? []).filter(({ pid }) => !known.has(pid));
}

export function leftBehindText(left: readonly MarkedProcess[]): string {
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
