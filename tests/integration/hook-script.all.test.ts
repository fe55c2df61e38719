import { spawnSync } from 'node:child_process';
import { controlPath, writeControlFile } from '@interlude/runner/host/control-file';
import { ControlPort, NOT_FOLLOWED } from '@interlude/runner/host/control-port';
import { LevelSwitch } from '@interlude/runner/logger/level-switch';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type HookRun, listenSending, pathWith, startHook } from '../support/hook-script';
import { tempDir } from '../support/temp-dir';
import { resolvesWithin } from '../support/timing';

/** Two seconds by the script's own clock. A busy machine starts it late. */
const WITHIN_MS = 10_000;
const SILENT = { code: 0, stdout: '', stderr: '' };

let dataDir: string;
beforeEach(async () => {
  dataDir = await tempDir();
});

const endOf = ({ ended }: HookRun) => resolvesWithin(WITHIN_MS, ended);

/** A companion that answers every hook with an empty body. */
async function companion(): Promise<void> {
  const handlers = {
    hook: async () => '',
    obligations: () => [],
    logLevel: new LevelSwitch(undefined),
    toolOwner: async () => ({ at: null, refusal: NOT_FOLLOWED }),
    ...Object.fromEntries(
      ['status', 'sessionTurn', 'userPrompt', 'sessionEnd', 'hookFatal'].map((name) => [name, () => {}]),
    ),
  } as unknown as Parameters<typeof ControlPort.open>[0]['handlers'];
  const port = await ControlPort.open({ file: controlPath(dataDir, 'hooks'), handlers });
  onTestFinished(() => port.close());
}

describe('the hook exits in time', () => {
  test.each([
    ['accepts connections and never answers', undefined],
    ['hangs after half an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"decision":"block","rea'],
    ['trickles its answer', 'trickle'],
  ])('when its port %s', async (_, reply) => {
    const { url } = await listenSending(reply);
    await writeControlFile(controlPath(dataDir, 'hooks'), { url, secret: 'x', pid: 1 });
    expect(await endOf(startHook(dataDir, 'Stop'))).toMatchObject(SILENT);
  });

  test('when curl hangs', async () => {
    await companion();
    const PATH = await pathWith({ curl: '#!/bin/sh\nexec sleep 60\n' });
    expect(await endOf(startHook(dataDir, 'Stop', { env: { PATH } }))).toMatchObject(SILENT);
  });

  test('when its input never arrives', async () => {
    await companion();
    const run = startHook(dataDir, 'SessionStart', { input: null });
    onTestFinished(() => void run.child.stdin?.destroy());
    expect(await endOf(run)).toMatchObject(SILENT);
  });

  test('with all of its processes when it is killed', async () => {
    await companion();
    const { child, ended } = startHook(dataDir, 'Stop', { input: null });
    await new Promise((resolve) => setTimeout(resolve, 100));
    process.kill(-(child.pid as number), 'SIGKILL');
    expect((await ended).signal).toBe('SIGKILL');
    const isGone = () => {
      try {
        return !process.kill(-(child.pid as number), 0);
      } catch {
        return true;
      }
    };
    await resolvesWithin(3_000, expect.poll(isGone).toBe(true));
  });
});

test('the hook takes at most four starts of curl and 50 ms', async () => {
  await companion();
  const took: number[] = [];
  const idle: number[] = [];
  // In turns, because the machine may be busy.
  for (let index = 0; index < 11; index += 1) {
    const startedAt = performance.now();
    await startHook(dataDir, 'UserPromptSubmit').ended;
    const endedAt = performance.now();
    spawnSync('/bin/sh', ['-c', 'curl --version'], { stdio: 'ignore' });
    took.push(endedAt - startedAt);
    idle.push(performance.now() - endedAt);
  }
  const median = (all: number[]) => [...all].sort((a, b) => a - b)[5] as number;
  expect(median(took)).toBeLessThan(50 + 4 * median(idle));
});
