import { spawn } from 'node:child_process';
import { CpuSampler, MARK, markedProcesses } from '@interlude/runner/host/process-lookup';
import { describe, expect, it } from 'vitest';

/** Reported CPU time of a silent working agent, with an injected clock. */

const BUSY = new Set(['s1']);

/** @param used milliseconds, by sample */
async function seconds(used: (number | null)[], stepMs = 60_000): Promise<(number | null)[]> {
  let looks = -1;
  const watch = new CpuSampler(async () => {
    looks += 1;
    const cpuMs = used[looks];
    return cpuMs == null ? null : [{ cpuMs }];
  });
  watch.emitted('s1', 0);
  const found: (number | null)[] = [];
  for (let at = 120_000; found.length < used.length; at += stepMs) {
    await watch.sample(BUSY, at);
    found.push(watch.secondsOf('s1'));
  }
  return found;
}

describe('the CPU time of a silent agent', () => {
  it('grows with work, not with idle use', async () => {
    expect(await seconds([4_000, 9_000, 9_400, 9_800, 12_000])).toEqual([4, 9, 9, 9, 12]);
  });

  it('changes when a process exits', async () => {
    expect(await seconds([90_000, 4_000, 4_100])).toEqual([90, 4, 4]);
  });

  it('is absent where unknown', async () => {
    expect(await seconds([null, null])).toEqual([null, null]);
  });

  it('is sampled every minute after two silent minutes', async () => {
    let looks = 0;
    const watch = new CpuSampler(async () => [{ cpuMs: ++looks * 5_000 }]);
    watch.emitted('s1', 0);
    for (let index = 0; index < 240_000; index += 10_000) await watch.sample(BUSY, index);
    expect(looks).toBe(2);
    watch.emitted('s1', 240_000);
    expect(watch.secondsOf('s1')).toBeNull();
    await watch.sample(new Set(), 900_000);
    expect(looks).toBe(2);
  });

  it.runIf(process.platform === 'linux')('is read of the processes that carry the mark', async () => {
    const mark = crypto.randomUUID();
    const args = ['-e', 'const end = Date.now() + 60000; console.log(1); while (Date.now() < end);'];
    const child = spawn(process.execPath, args, { env: { ...process.env, [MARK]: mark }, stdio: 'pipe' });
    try {
      await new Promise((resolve) => child.stdout.once('data', resolve));
      const cpuOf = async () => (await markedProcesses(mark))?.[0]?.cpuMs ?? 0;
      const before = await cpuOf();
      await expect.poll(cpuOf).toBeGreaterThan(before);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
