import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { KINDS } from '@/lib/runner/sources/kinds';
import manifest from '../../package.json';
import { runCli, runShell } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { tempDir } from '../support/temp-dir';

test.each(['--version', '-V'])('%s tells the version, wherever it is called', async (flag) => {
  const end = await runCli([flag], {}, await tempDir());
  expect(end).toEqual({ exitCode: 0, stdout: `interlude ${manifest.version}\n`, stderr: '' });
});

test('--help names every command and --version', async () => {
  const { stdout } = await callCli(['--help']);
  for (const name of [
    'replay',
    'demo',
    'runner',
    'hooks',
    'mcp',
    'wait',
    'outbox',
    'tokens',
    'sign-in',
    'conformance',
    '--version',
  ])
    expect(stdout).toContain(name);
});

test('the help of a runner is that of the kind that was named; what stands behind -- is the agent’s', async () => {
  const all = (await callCli(['runner', '--help'])).stdout;
  for (const kind of Object.keys(KINDS)) expect(all).toMatch(new RegExp(`^  ${kind} +\\S`, 'm'));
  const { exitCode, stdout } = await callCli(['runner', 'codex', '--help']);
  expect(exitCode).toBe(0);
  expect(stdout.match(/^Usage: .+ runner codex /gm)).toHaveLength(1);
  expect((await callCli(['help', 'runner', 'codex'])).stdout).toBe(stdout);
  const end = await callCli(['runner', 'acp', '--', 'no-such-agent', '--help'], {
    INTERLUDE_DATA_DIR: await tempDir(),
  });
  expect(end).toEqual({
    exitCode: 3,
    stdout: '',
    stderr: expect.stringMatching(/^interlude: there is no no-such-agent .+\n$/),
  });
});

test('called through npm from another folder, paths are meant from there, as is what it says to do next', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'my run.jsonl'), 'no recording');
  const env = { INTERLUDE_DATA_DIR: join(folder, 'data'), INTERLUDE_URL: 'http://127.0.0.1:9', INTERLUDE_TOKEN: 'x' };
  const npm = (args: string) => runShell(`npm --prefix ${process.cwd()} run -s interlude -- ${args}`, env, folder);
  expect((await npm("replay './my run.jsonl'")).stderr).toMatch(/my run.jsonl.*line 1/);
  expect((await npm('runner claude --cwd project')).stderr).toContain(`${join(folder, 'project')} is not a folder`);
  const installed = await npm('hooks install --settings settings.json');
  expect(installed.stdout).toContain(`the hooks are in ${join(folder, 'settings.json')}`);
  const next = /^ {2}(.+ runner hooks)$/m.exec(installed.stdout)?.[1] ?? '';
  expect(next).toBe(`INTERLUDE_DATA_DIR=${folder}/data npm --prefix ${process.cwd()} run -s interlude -- runner hooks`);
  const { exitCode, stdout } = await runShell(`${next} --help`, {}, folder);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(`npm --prefix ${process.cwd()} run -s interlude -- hooks install`);
});

test.each(['', 'replay', 'demo', 'runner', 'hooks', 'mcp', 'wait', 'outbox', 'tokens', 'sign-in'])(
  'the help of "%s" has commands that run as they are pasted where they are read, with the data folder that was named',
  async (name) => {
    const folder = await tempDir();
    const program = `INTERLUDE_DATA_DIR=${folder}/data npm --prefix ${process.cwd()} run -s interlude --`;
    const { stdout } = await runShell(`${program} ${name} --help`, {}, folder);
    const usages = [...stdout.matchAll(/^Usage: (.+?)(?: [<[].*)?$/gm)].map(([, command = '']) => command);
    expect(usages.length).toBeGreaterThan(0);
    // Whatever else it says to run has the program's whole name as well.
    expect(stdout.replaceAll(`${program} `, '')).not.toMatch(
      /interlude (?:replay|demo|runner|hooks|mcp|wait|outbox|tokens|sign-in|<)/,
    );
    for (const usage of usages) {
      expect(usage).toContain(program);
      expect(await runShell(`${usage} --help`, {}, folder)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining(`Usage: ${usage}`),
      });
    }
  },
);

test('the help of the start has a command that runs as it is pasted', async () => {
  const folder = await tempDir();
  const { stdout } = await runShell(`npm --prefix ${process.cwd()} -s start -- --help`, {}, folder);
  const usage = /^Usage: (.+) \[options\]$/m.exec(stdout)?.[1] ?? '';
  expect(await runShell(`${usage} --help`, {}, folder)).toMatchObject({ exitCode: 0 });
});

test('a usage error says the command that helps, and that one works', async () => {
  const folder = await tempDir();
  const end = await runCli(['replay'], {}, folder);
  const command = /see "(.+)"\n$/.exec(end.stderr)?.[1] ?? '';
  expect(await runShell(command, {}, folder)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('Usage: '),
  });
});

test('a runner that npm was asked to run ends when npm is ended, though no signal comes through', async () => {
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
  let said = '';
  npm.stderr.on('data', (chunk) => {
    said += chunk;
  });
  // The runner holds it open for as long as it lives, whoever its parent is.
  const closed = once(npm.stderr, 'close');
  await expect.poll(() => said).toContain('follows the terminals');
  npm.kill('SIGTERM');
  await closed;
});
