import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startCli } from '../support/cli';
import { tempDir } from '../support/temp-dir';

const READY = /follows the terminals/;

test('a runner reports a damaged outbox in its log, with the path of the old file', async () => {
  const home = await tempDir();
  await companionOnce(home);
  const folder = join(home, 'outboxes');
  const file = readdirSync(folder).find((name) => name.endsWith('.db')) ?? '';
  for (const suffix of ['-wal', '-shm']) rmSync(join(folder, file + suffix), { force: true });
  writeFileSync(join(folder, file), 'not a database any more '.repeat(400));
  await companionOnce(home);

  const aside = readdirSync(folder).find((name) => name.includes('.corrupt-')) ?? 'none is kept';
  const logs = join(home, 'logs');
  const log = readdirSync(logs).map((name) => readFileSync(join(logs, name), 'utf8'));
  const reported = log.flatMap((text) => text.split('\n')).filter((line) => line.includes('the outbox was damaged'));
  expect(reported).toHaveLength(1);
  expect(reported[0]).toContain(aside);
});

/** Starts a companion without a dashboard, and stops it once it runs. */
async function companionOnce(home: string): Promise<void> {
  const env = { INTERLUDE_DATA_DIR: home, INTERLUDE_URL: 'http://127.0.0.1:9', INTERLUDE_TOKEN: 'x'.repeat(20) };
  const run = startCli(['runner', 'hooks', '--agent', 'damaged'], env);
  onTestFinished(() => void run.process.kill('SIGKILL'));
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    run.process.stderr?.on('data', (chunk) => {
      printed += chunk;
      if (READY.test(printed)) resolve();
    });
    void run.ended.then(({ stderr }) => reject(new Error(stderr)));
  });
  run.process.kill('SIGINT');
  await run.ended;
}
