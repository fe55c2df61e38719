import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ensureLibsqlServer } from '../support/libsql-server.mjs';
import { tempDir } from '../support/temp-dir';

/** A bench starts its own servers. None of them, nor their files, outlive it. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

suites('the server of a bench', () => {
  test('ends when the bench fails', async () => {
    const { bench, url, folder } = await running('fails');
    bench.send('go on');
    expect(await once(bench, 'exit')).toEqual([1, null]);
    await expectGone(url, folder);
  });

  test('ends when the bench is interrupted', async () => {
    const { bench, url, folder } = await running('waits');
    bench.kill('SIGINT');
    expect(await once(bench, 'exit')).toEqual([130, null]);
    await expectGone(url, folder);
  });

  test('ends when the parent of the bench is killed', async () => {
    const { bench, url, folder } = await running('waits');
    // The bench notices only its closed pipe.
    bench.disconnect();
    expect(await once(bench, 'exit')).toEqual([1, null]);
    await expectGone(url, folder);
  });
});

async function running(how: 'fails' | 'waits'): Promise<{ bench: ChildProcess; url: string; folder: string }> {
  const file = join(await tempDir(), 'some.bench.mts');
  await writeFile(
    file,
    `import { startLibsqlServer } from ${JSON.stringify(pathToFileURL(at('../support/libsql-server.mjs')).href)};
    const { url, folder } = await startLibsqlServer();
    const told = new Promise((resolve) => process.once('message', resolve));
    process.send({ url, folder });
    await told;
    ${how === 'fails' ? "throw new Error('as a bench may');" : 'await new Promise(() => {});'}`,
  );
  const bench = spawn(process.execPath, ['--import', 'tsx', at('../bench/run-one.mjs'), file], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  onTestFinished(() => void bench.kill('SIGKILL'));
  const [server] = (await once(bench, 'message')) as [{ url: string; folder: string }];
  expect((await fetch(`${server.url}/health`)).ok).toBe(true);
  return { bench, ...server };
}

async function expectGone(url: string, folder: string): Promise<void> {
  await expect
    .poll(() =>
      fetch(`${url}/health`).then(
        () => 'there',
        () => 'gone',
      ),
    )
    .toBe('gone');
  await expect.poll(() => existsSync(folder)).toBe(false);
}
