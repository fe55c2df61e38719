import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runShell } from '../support/cli';
import { tempDir } from '../support/temp-dir';

/** The command line through npm: each call is a process within a process. */

test('npm --prefix resolves paths from the caller’s folder, and prints commands that work there', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'my run.jsonl'), 'no recording');
  const env = { INTERLUDE_DATA_DIR: join(folder, 'data'), INTERLUDE_URL: 'http://127.0.0.1:9', INTERLUDE_TOKEN: 'x' };
  const npm = (args: string) => runShell(`npm --prefix ${process.cwd()} run -s interlude -- ${args}`, env, folder);
  expect((await npm("replay './my run.jsonl'")).stderr).toMatch(/my run.jsonl.*line 1/);
  expect((await npm('runner claude --cwd project')).stderr).toContain(`${join(folder, 'project')} is not a folder`);
  const installed = await npm('hooks install --settings settings.json');
  expect(installed.stdout).toContain(`installed the hooks in ${join(folder, 'settings.json')}`);
  const next = /^ {2}(.+ runner hooks)$/m.exec(installed.stdout)?.[1] ?? '';
  expect(next).toBe(`INTERLUDE_DATA_DIR=${folder}/data npm --prefix ${process.cwd()} run -s interlude -- runner hooks`);
  const { exitCode, stdout } = await runShell(`${next} --help`, {}, folder);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(`npm --prefix ${process.cwd()} run -s interlude -- hooks install`);
});

test.each(['', 'replay', 'demo', 'runner', 'hooks', 'mcp', 'wait', 'outbox', 'tokens', 'sign-in'])(
  '%s --help prints whole commands, with the named data folder',
  async (name) => {
    const folder = await tempDir();
    const program = `INTERLUDE_DATA_DIR=${folder}/data npm --prefix ${process.cwd()} run -s interlude --`;
    const { stdout } = await runShell(`${program} ${name} --help`, {}, folder);
    const usages = [...stdout.matchAll(/^Usage: (.+?)(?: [<[].*)?$/gm)].map(([, command = '']) => command);
    expect(usages.length).toBeGreaterThan(0);
    // Other commands in the text have the full program name as well.
    expect(stdout.replaceAll(`${program} `, '')).not.toMatch(
      /interlude (?:replay|demo|runner|hooks|mcp|wait|outbox|tokens|sign-in|<)/,
    );
    for (const usage of usages) expect(usage).toContain(program);
    // One of them runs: they differ in the command alone.
    if (name !== 'replay') return;
    expect(await runShell(`${usages[0]} --help`, {}, folder)).toMatchObject({ exitCode: 0, stdout });
  },
);

test('npm start --help prints a command that works when pasted', async () => {
  const folder = await tempDir();
  const { stdout } = await runShell(`npm --prefix ${process.cwd()} -s start -- --help`, {}, folder);
  const usage = /^Usage: (.+) \[options\]$/m.exec(stdout)?.[1] ?? '';
  expect(await runShell(`${usage} --help`, {}, folder)).toMatchObject({ exitCode: 0 });
});

test('a runner exits with the npm that started it, which forwards no signal', async () => {
  const env = {
    ...process.env,
    INTERLUDE_DATA_DIR: join(await tempDir(), 'data'),
    INTERLUDE_URL: 'http://127.0.0.1:9',
    INTERLUDE_TOKEN: 'x'.repeat(20),
  };
  const npm = spawn('npm', ['run', '-s', 'interlude', '--', 'runner', 'hooks'], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void npm.kill('SIGKILL'));
  let printed = '';
  npm.stderr.on('data', (chunk) => {
    printed += chunk;
  });
  // The runner, even orphaned, keeps stderr open while it runs.
  const closed = once(npm.stderr, 'close');
  await expect.poll(() => printed).toContain('follows the terminals');
  npm.kill('SIGTERM');
  await closed;
});
