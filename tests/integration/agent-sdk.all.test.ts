import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { installedPackage } from '@interlude/runner/cli/install-package';
import { describe, expect, test } from 'vitest';
import { InTerminal, runCli, startCli } from '../support/cli';
import { fakeNpm, RUNS, SDK_NAME, sdkStage } from '../support/sdk-stage';
import { tempDir } from '../support/temp-dir';

describe('on a terminal', () => {
  test('the runner names the whole path of a distant folder, and installs nothing on n', async () => {
    const { data, claude, calls, inTerminal } = await sdkStage();
    const terminal = inTerminal(claude(), {}, await tempDir());
    await terminal.shows(`Install ${SDK_NAME} into ${join(data, 'agents')}? [Y/n] `);
    terminal.type('perhaps\r');
    await expect.poll(() => terminal.shown.split('[Y/n]').length).toBe(3);
    terminal.type('n\r');
    expect(await terminal.ended).toBe(3);
    expect(terminal.shown).toContain(`the Agent SDK is not installed; run: npm install --prefix ${data}/agents`);
    expect(await calls()).toEqual([]);
  });

  test('Ctrl-C at the question ends the runner', async () => {
    const { claude, calls, inTerminal } = await sdkStage();
    const terminal = inTerminal(claude());
    await terminal.shows('[Y/n] ');
    terminal.type('\x03');
    expect(await terminal.ended).toBe(130);
    expect(await calls()).toEqual([]);
  });

  test('Ctrl-C during the install ends npm and removes the partial install', async () => {
    const { data, claude, inTerminal } = await sdkStage();
    const terminal = inTerminal(claude(), { NPM_DOES: 'waits' });
    await terminal.shows('[Y/n] ');
    terminal.type('y\r');
    await terminal.shows('npm stands in');
    terminal.type('\x03');
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown).toContain('stopped; nothing was installed');
    expect(await readdir(join(data, 'agents'))).toEqual(['.install.lock']);
  });

  test('a failed install prints what to do below npm’s output', async () => {
    const { home, claude, inTerminal } = await sdkStage();
    const terminal = inTerminal(claude('--yes'), { NPM_DOES: 'fails' });
    expect(await terminal.ended).toBe(3);
    expect(terminal.shown).toMatch(
      /npm error 404 no such package\r\ninterlude: the Agent SDK was not installed: npm failed \(exit 7\); fix that, then run: npm install --prefix [^\n]+\r\n$/,
    );
    expect(existsSync(home)).toBe(false);
  });
});

describe('without a terminal', () => {
  test('the runner installs nothing and prints a command that works when pasted', async () => {
    const { base, env, claude, calls } = await sdkStage();
    const end = await runCli(claude(), env, base);
    expect(end).toMatchObject({ exitCode: 3, stdout: '' });
    const command = /^interlude: the Agent SDK is not installed; run: npm (.+)\n$/.exec(end.stderr)?.[1];
    expect(await calls()).toEqual([]);
    const elsewhere = await tempDir();
    const pasted = new InTerminal(['sh', '-c', `node ${fakeNpm} ${command}`], { ...process.env, ...env }, elsewhere);
    expect(await pasted.ended).toBe(0);
    expect(await runCli(claude(), env, base)).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
  });

  test('a named folder with its own packages is left unchanged', async () => {
    const { base, env, claude, calls } = await sdkStage();
    const named = join(base, 'named');
    await mkdir(join(named, 'node_modules', 'mine'), { recursive: true });
    const end = await runCli(claude('--yes', '--sdk', named), env, base);
    expect(end).toMatchObject({ exitCode: 3, stderr: expect.stringContaining(`npm install --prefix ${named} `) });
    expect(await calls()).toEqual([]);
    expect(await readdir(named)).toEqual(['node_modules']);
  });

  test('a missing npm is reported on one line', async () => {
    const { base, env, claude } = await sdkStage();
    const { npm_execpath: _, ...rest } = env;
    const bare = join(base, 'bin');
    await mkdir(bare);
    const end = await runCli(claude('--yes'), { ...rest, npm_execpath: '', PATH: bare }, base);
    expect(end.exitCode).toBe(3);
    expect(end.stderr).toContain('the Agent SDK was not installed: npm is not installed; ');
  });
});

describe('a half-installed SDK', () => {
  test('is reinstalled when its package can’t be loaded', async () => {
    const { base, env, home, claude, plantHalf } = await sdkStage();
    await plantHalf();
    await writeFile(join(home, 'index.cjs'), 'exports.query = (');
    expect((await runCli(claude(), env, base)).exitCode).toBe(3);
    expect(await runCli(claude('--yes'), env, base)).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
  });

  test('counts as missing without its file, its program or an entry in npm’s list', async () => {
    const { data, home, plantHalf } = await sdkStage();
    const isInstalled = () => installedPackage(join(data, 'agents'), SDK_NAME) !== null;
    await plantHalf();
    expect(isInstalled()).toBe(false);
    await writeFile(join(home, 'index.cjs'), '');
    expect(isInstalled()).toBe(true);
    const list = join(data, 'agents', 'node_modules', '.package-lock.json');
    await writeFile(list, JSON.stringify({ packages: { 'node_modules/other': { version: '1.0.0' } } }));
    expect(isInstalled()).toBe(false);
    await writeFile(list, JSON.stringify({ packages: { [`node_modules/${SDK_NAME}`]: { version: '0.0.1' } } }));
    expect(isInstalled()).toBe(true);
    const optionalDependencies = { [`${SDK_NAME}-${process.platform}-${process.arch}`]: '0.0.1' };
    const manifest = { name: SDK_NAME, version: '0.0.1', main: 'index.cjs', optionalDependencies };
    await writeFile(join(home, 'package.json'), JSON.stringify(manifest));
    expect(isInstalled()).toBe(false);
  });

  test('is reinstalled after runner and npm were killed, leaving nothing behind', async () => {
    const { base, data, env, claude, calls } = await sdkStage();
    const first = startCli(claude('--yes'), { ...env, NPM_DOES: 'waits' }, base);
    await expect.poll(async () => (await calls()).length).toBe(1);
    first.process.kill('SIGKILL');
    expect((await runCli(claude(), env, base)).exitCode).toBe(3);
    await writeFile(env.NPM_GO ?? '', '');
    await first.ended;
    expect((await runCli(claude('--yes'), env, base)).exitCode).toBe(0);
    expect((await readdir(join(data, 'agents'))).filter((name) => /^\.(new|old)-/.test(name))).toEqual([]);
  });
});

test('two runners that start together install once, and both start', async () => {
  const { base, data, env, claude, calls } = await sdkStage();
  const first = startCli(claude('--yes', '--agent', 'one'), { ...env, NPM_DOES: 'waits' }, base);
  await expect.poll(async () => (await calls()).length).toBe(1);
  const second = startCli(claude('--yes', '--agent', 'two'), env, base);
  const printed: string[] = [];
  second.process.stderr?.on('data', (chunk) => printed.push(String(chunk)));
  await expect.poll(() => printed.join('')).toContain('waiting for process ');
  await writeFile(env.NPM_GO ?? '', '');
  for (const { ended } of [first, second]) expect(await ended).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
  expect(await calls()).toHaveLength(1);
  expect(dirname((await calls())[0]?.prefix ?? '')).toBe(join(data, 'agents'));
});
