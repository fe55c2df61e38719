import { spawn } from 'node:child_process';
import { chmod, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '@/lib/runner/logger/logger';
import { Outbox } from '@/lib/runner/outbox/outbox';
import { runCli } from '../support/cli';
import { tempDir } from '../support/temp-dir';

const start = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));
const recording = fileURLToPath(new URL('../fixtures/recordings/demo/research.jsonl', import.meta.url));

test('what a runner keeps is readable by its owner only, whatever the mask of its shell', async () => {
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

test.each([
  ['npm start', []],
  ['runner claude', ['runner', 'claude']],
  ['runner hooks', ['runner', 'hooks']],
  ['hooks install', ['hooks', 'install', '--settings', '/nowhere/settings.json']],
  ['outbox status', ['outbox', 'status']],
  ['replay', ['replay', recording]],
  ['demo', ['demo']],
])('%s refuses a data folder that others can write, in one line', async (_name, args) => {
  const folder = join(await tempDir(), 'data');
  await mkdir(folder);
  await chmod(folder, 0o777);
  const env = { INTERLUDE_DATA_DIR: folder, INTERLUDE_URL: 'http://127.0.0.1:9' };
  const { exitCode, stderr } = args.length === 0 ? await startServer(env) : await runCli(args, env);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: `interlude: other users can write in ${folder}; look that what is in it is yours and run "chmod go-w" on it, or set INTERLUDE_DATA_DIR to another folder\n`,
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
