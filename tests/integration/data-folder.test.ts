import { spawn } from 'node:child_process';
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLogger } from '@interlude/runner/logger/logger';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { describe, expect, onTestFinished, test } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { canMount, smallDisk } from '../support/small-disk';
import { tempDir } from '../support/temp-dir';

const start = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));
const recording = fileURLToPath(new URL('../../lib/runner/cli/demo/recordings/research.jsonl', import.meta.url));

test('the runner’s files are readable by their owner only, under any umask', async () => {
  const mask = process.umask(0);
  onTestFinished(() => void process.umask(mask));
  const folder = join(await tempDir(), 'data');
  const outbox = await Outbox.open(join(folder, 'outboxes', 'runner.db'), {
    producerId: 'p',
    agentId: 'a',
    endpoint: async () => ({ url: 'http://127.0.0.1:9', token: undefined }),
  });
  const logger = createLogger({ agentId: 'a', dir: join(folder, 'logs'), onRecord: () => undefined });
  logger.info('a line');
  await outbox.enqueue({ kind: 'log', agentId: 'a', occurredAt: 1, log: { level: 'info', message: 'm' } } as never);
  const modes = async (name: string) =>
    Object.fromEntries(
      await Promise.all(
        (await readdir(join(folder, name))).map(async (file) => [
          file,
          ((await stat(join(folder, name, file))).mode & 0o777).toString(8),
        ]),
      ),
    );
  const owners = '600';
  expect(await modes('outboxes')).toMatchObject({
    'runner.db': owners,
    'runner.db-wal': owners,
    'runner.db-shm': owners,
    'runner.db.lock': owners,
  });
  for (const name of ['outboxes', 'logs']) expect([...new Set(Object.values(await modes(name)))]).toEqual([owners]);
  expect(await modes('')).toEqual({ outboxes: '700', logs: '700' });
  await outbox.stop();
  logger.close();
});

const COMMANDS = [
  ['npm start', []],
  ['runner claude', ['runner', 'claude', '--yes']],
  ['runner hooks', ['runner', 'hooks']],
  ['replay', ['replay', recording]],
  ['demo', ['demo']],
] as const;

describe.each(COMMANDS)('%s explains an unwritable data folder and what to do', (_name, args) => {
  test('below a file', async () => {
    const file = join(await tempDir(), 'file');
    await writeFile(file, '');
    expect(await refusal(args, join(file, 'data'))).toMatch(
      /^part of \S+\/file\/data\S* is a file, not a folder; move that file, or set INTERLUDE_DATA_DIR to a folder elsewhere, then try again$/,
    );
  });

  test.runIf(canMount())('on a read-only disk, for existing and missing folders', async () => {
    const disk = smallDisk('ro,size=1m');
    for (const folder of [disk.folder, join(disk.folder, 'data')]) {
      expect(await refusal(args, folder)).toBe(
        `the disk of ${folder} is read-only; make it writable, or set INTERLUDE_DATA_DIR to a folder elsewhere, then try again`,
      );
    }
  });

  test.runIf(canMount())('on a full disk', async () => {
    const disk = smallDisk('size=4k');
    await writeFile(join(disk.folder, 'ballast'), new Uint8Array(4_096));
    expect(await refusal(args, disk.folder)).toBe(
      `the disk of ${disk.folder} is full; free some space there, or set INTERLUDE_DATA_DIR to a folder elsewhere, then try again`,
    );
  });
});

test.runIf(canMount())(
  'hooks install explains that the disk of the settings file is read-only, and what to do',
  async () => {
    const { folder } = smallDisk('ro,size=1m');
    for (const place of [folder, join(folder, 'config')]) {
      const end = await callCli(['hooks', 'install', '--settings', join(place, 'settings.json')], {
        INTERLUDE_DATA_DIR: join(await tempDir(), 'data'),
      });
      expect(end).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: `interlude: ${place}/settings.json is unchanged: the disk of ${place} is read-only; make it writable, then try again\n`,
      });
    }
  },
);

/** The line that a command prints about a data folder. */
async function refusal(args: readonly string[], folder: string): Promise<string> {
  const env = { INTERLUDE_DATA_DIR: folder, INTERLUDE_URL: 'http://127.0.0.1:9' };
  const { exitCode, stderr } = args.length === 0 ? await startServer(env) : await callCli([...args], env);
  expect(exitCode).toBe(1);
  return /^interlude: (.+)\n$/.exec(stderr)?.[1] ?? stderr;
}

test.each([
  ['npm start', []],
  ['runner claude', ['runner', 'claude']],
  ['runner hooks', ['runner', 'hooks']],
  ['hooks install', ['hooks', 'install', '--settings', '/nowhere/settings.json']],
  ['outbox status', ['outbox', 'status']],
  ['replay', ['replay', recording]],
  ['demo', ['demo']],
])('%s refuses a data folder that others can write, on one line', async (_name, args) => {
  const folder = join(await tempDir(), 'data');
  await mkdir(folder);
  await chmod(folder, 0o777);
  const env = { INTERLUDE_DATA_DIR: folder, INTERLUDE_URL: 'http://127.0.0.1:9' };
  const { exitCode, stderr } = args.length === 0 ? await startServer(env) : await callCli(args, env);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: `interlude: other users can write to ${folder}; check that its files are yours and run "chmod go-w" on it, or set INTERLUDE_DATA_DIR to another folder\n`,
  });
  expect(await readdir(folder)).toEqual([]);
});

function startServer(env: Record<string, string>): Promise<{ exitCode: number | null; stderr: string }> {
  const { INTERLUDE_TOKEN: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [start, '--port', '0'], {
    env: { ...inherited, ...env } as NodeJS.ProcessEnv,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, stderr })));
}
