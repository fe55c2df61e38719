import { markedProcesses } from '@interlude/runner/host/process-lookup';

/** Power off for a session's Claude Code and all it runs. */
export async function killMarked(sessionId: string): Promise<void> {
  for (const { pid } of (await markedProcesses(sessionId)) ?? []) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended by itself since it was listed
    }
  }
}
