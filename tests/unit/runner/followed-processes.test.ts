import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ProcessExitWatcher } from '@interlude/runner/host/process-lookup';
import { expect, onTestFinished, test } from 'vitest';

function followed() {
  const ended: [pid: number, wasSeen: boolean][] = [];
  const processes = new ProcessExitWatcher((...one) => void ended.push(one), 10);
  onTestFinished(() => processes.close());
  /** Resolves once the watcher has checked the processes. It checks in order; a missing one is last. */
  const watchSeen = async (pids: number[]) => {
    const { pid, end } = await started();
    await end();
    processes.watch([...pids, pid]);
    await expect.poll(() => ended.splice(0), { interval: 5 }).toEqual([[pid, false]]);
  };
  return { processes, ended, watchSeen };
}

/** A process that ends when its input does. */
async function started() {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
  await once(child, 'spawn');
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    pid: child.pid ?? 0,
    async end() {
      const exited = once(child, 'exit');
      child.stdin.end();
      await exited;
    },
  };
}

test('reports a watched process once when it exits', async () => {
  const { processes, ended, watchSeen } = followed();
  const { pid, end } = await started();
  await watchSeen([pid]);
  processes.watch([pid]);
  await end();
  await expect.poll(() => ended, { interval: 5 }).toEqual([[pid, true]]);
});

test('reports a missing process as never seen', async () => {
  const { processes, ended } = followed();
  const { pid, end } = await started();
  await end();
  processes.watch([pid]);
  await expect.poll(() => ended, { interval: 5 }).toEqual([[pid, false]]);
});

test('does not report an unwatched process', async () => {
  const { processes, ended, watchSeen } = followed();
  const [first, second] = [await started(), await started()];
  await watchSeen([first.pid, second.pid]);
  processes.watch([second.pid]);
  await first.end();
  await second.end();
  await expect.poll(() => ended, { interval: 5 }).toEqual([[second.pid, true]]);
});
