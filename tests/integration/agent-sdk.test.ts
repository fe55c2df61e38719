import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { runCli, startCli } from '../support/cli';
import { InTerminal } from '../support/in-terminal';
import { tempDir } from '../support/temp-dir';

/** `interlude runner claude` where the Agent SDK is not there yet, with an npm that installs one of its own. */

const NAME = '@anthropic-ai/claude-agent-sdk';
const RUNS = 'the agent runs';
const standIn = fileURLToPath(new URL('../support/npm-stand-in.mjs', import.meta.url));
const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));

let base: string;
let data: string;
let env: Record<string, string>;
beforeEach(async () => {
  base = await tempDir();
  data = join(base, 'data');
  env = {
    INTERLUDE_DATA_DIR: data,
    INTERLUDE_URL: 'http://127.0.0.1:9',
    npm_execpath: standIn,
    npm_config_loglevel: 'silent',
    NPM_TELLS: join(base, 'told'),
    NPM_GO: join(base, 'go'),
  };
});

const calls = async () => {
  const text = existsSync(env.NPM_TELLS ?? '') ? await readFile(env.NPM_TELLS ?? '', 'utf8') : '';
  const lines = text.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as { args: string[]; prefix: string; kept: string[]; mode: string });
};
const home = () => join(data, 'agents', 'node_modules', ...NAME.split('/'));
const claude = (...flags: string[]) => ['runner', 'claude', '--cwd', base, ...flags];

function inTerminal(args: string[], more: Record<string, string> = {}, cwd = base): InTerminal {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(INTERLUDE_|npm_|INIT_CWD$)/.test(name));
  const all = { ...Object.fromEntries(inherited), ...env, ...more } as NodeJS.ProcessEnv;
  const terminal = new InTerminal([process.execPath, program, ...args], all, cwd);
  onTestFinished(() => terminal.close());
  return terminal;
}

async function plantHalf(): Promise<void> {
  await mkdir(home(), { recursive: true });
  await writeFile(join(home(), 'package.json'), JSON.stringify({ name: NAME, version: '0.0.1', main: 'index.cjs' }));
}

describe('on a terminal', () => {
  test('it asks, installs into the data folder on Enter, and goes on with the run', async () => {
    const terminal = inTerminal(claude());
    await terminal.shows(`Install ${NAME} into data/agents? [Y/n] `);
    expect(await calls()).toEqual([]);
    terminal.type('\r');
    await terminal.shows(RUNS);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown).toContain('npm stands in');
    const [call, ...more] = await calls();
    expect(more).toEqual([]);
    expect(call?.args.slice(0, 2)).toEqual(['install', '--prefix']);
    expect(call?.args.slice(3, -1)).toEqual(['--ignore-scripts', '--no-audit', '--no-fund']);
    expect(call?.args.at(-1)).toMatch(new RegExp(`^${NAME}@\\d+\\.\\d+\\.\\d+$`));
    expect(call).toMatchObject({ kept: [], mode: '700' });
  });

  test('it says the whole folder where that is elsewhere, and takes no for an answer', async () => {
    const terminal = inTerminal(claude(), {}, await tempDir());
    await terminal.shows(`Install ${NAME} into ${join(data, 'agents')}? [Y/n] `);
    terminal.type('perhaps\r');
    await expect.poll(() => terminal.shown.split('[Y/n]').length).toBe(3);
    terminal.type('n\r');
    expect(await terminal.ended).toBe(3);
    expect(terminal.shown).toContain(`the Agent SDK is not installed; run: npm install --prefix ${data}/agents`);
    expect(await calls()).toEqual([]);
  });

  test('Ctrl-C at the question ends it', async () => {
    const terminal = inTerminal(claude());
    await terminal.shows('[Y/n] ');
    terminal.type('\x03');
    expect(await terminal.ended).toBe(130);
    expect(await calls()).toEqual([]);
  });

  test('Ctrl-C while npm is at it ends both, and what was begun is gone', async () => {
    const terminal = inTerminal(claude(), { NPM_DOES: 'waits' });
    await terminal.shows('[Y/n] ');
    terminal.type('y\r');
    await terminal.shows('npm stands in');
    terminal.type('\x03');
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown).toContain('stopped; nothing was installed');
    expect(await readdir(join(data, 'agents'))).toEqual(['.install.lock']);
  });

  test('a failure of npm is told with what to do, below npm’s own words', async () => {
    const terminal = inTerminal(claude('--yes'), { NPM_DOES: 'fails' });
    expect(await terminal.ended).toBe(3);
    expect(terminal.shown).toMatch(
      /npm error 404 no such package\r\ninterlude: the Agent SDK was not installed: npm failed \(exit 7\); mend that, then run: npm install --prefix [^\n]+\r\n$/,
    );
    expect(existsSync(home())).toBe(false);
  });
});

describe('without a terminal', () => {
  test('nothing is asked or installed, and the line it prints is a command that works as pasted', async () => {
    const end = await runCli(claude(), env, base);
    expect(end).toMatchObject({ exitCode: 3, stdout: '' });
    const command = /^interlude: the Agent SDK is not installed; run: npm (.+)\n$/.exec(end.stderr)?.[1];
    expect(await calls()).toEqual([]);
    const elsewhere = await tempDir();
    const pasted = new InTerminal(['sh', '-c', `node ${standIn} ${command}`], { ...process.env, ...env }, elsewhere);
    expect(await pasted.ended).toBe(0);
    expect(await runCli(claude(), env, base)).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
  });

  test('--yes installs without asking, as its owner’s alone', async () => {
    const end = await runCli(claude('--yes'), env, base);
    expect(end).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
    for (const place of [data, join(data, 'agents'), join(data, 'agents', 'node_modules'), home()]) {
      expect((await stat(place)).mode & 0o077, place).toBe(0);
    }
    expect((await runCli(claude(), env, base)).exitCode).toBe(0);
    expect(await calls()).toHaveLength(1);
  });

  test('a folder that was named and has packages of its own is left as it is', async () => {
    const named = join(base, 'named');
    await mkdir(join(named, 'node_modules', 'mine'), { recursive: true });
    const end = await runCli(claude('--yes', '--sdk', named), env, base);
    expect(end).toMatchObject({ exitCode: 3, stderr: expect.stringContaining(`npm install --prefix ${named} `) });
    expect(await calls()).toEqual([]);
    expect(await readdir(named)).toEqual(['node_modules']);
  });

  test('an npm that is not there is told in one line', async () => {
    const { npm_execpath: _, ...rest } = env;
    const bare = join(base, 'bin');
    await mkdir(bare);
    const end = await runCli(claude('--yes'), { ...rest, npm_execpath: '', PATH: bare }, base);
    expect(end.exitCode).toBe(3);
    expect(end.stderr).toContain('the Agent SDK was not installed: npm is not on this machine; ');
  });
});

describe('what is half there is not taken for installed', () => {
  test('a package that can’t be loaded is installed anew', async () => {
    await plantHalf();
    await writeFile(join(home(), 'index.cjs'), 'exports.query = (');
    expect((await runCli(claude(), env, base)).exitCode).toBe(3);
    expect(await runCli(claude('--yes'), env, base)).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
  });

  test('a package without its file, without its program, or not in npm’s own list', async () => {
    await plantHalf();
    expect((await runCli(claude(), env, base)).exitCode).toBe(3);
    await writeFile(join(home(), 'index.cjs'), 'exports.query = () => process.exit(0);');
    expect((await runCli(claude(), env, base)).exitCode).toBe(0);
    const list = join(data, 'agents', 'node_modules', '.package-lock.json');
    await writeFile(list, JSON.stringify({ packages: { 'node_modules/other': { version: '1.0.0' } } }));
    expect((await runCli(claude(), env, base)).exitCode).toBe(3);
    await writeFile(list, JSON.stringify({ packages: { [`node_modules/${NAME}`]: { version: '0.0.1' } } }));
    expect((await runCli(claude(), env, base)).exitCode).toBe(0);
    const optionalDependencies = { [`${NAME}-${process.platform}-${process.arch}`]: '0.0.1' };
    const manifest = { name: NAME, version: '0.0.1', main: 'index.cjs', optionalDependencies };
    await writeFile(join(home(), 'package.json'), JSON.stringify(manifest));
    expect((await runCli(claude(), env, base)).exitCode).toBe(3);
  });

  test('an install in which runner and npm were killed is begun anew, and leaves nothing behind', async () => {
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

test('two runners at once install once, and both go on', async () => {
  const first = startCli(claude('--yes', '--agent', 'one'), { ...env, NPM_DOES: 'waits' }, base);
  await expect.poll(async () => (await calls()).length).toBe(1);
  const second = startCli(claude('--yes', '--agent', 'two'), env, base);
  const said: string[] = [];
  second.process.stderr?.on('data', (chunk) => said.push(String(chunk)));
  await expect.poll(() => said.join('')).toContain('is installing it already; waiting for that');
  await writeFile(env.NPM_GO ?? '', '');
  for (const { ended } of [first, second]) expect(await ended).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
  expect(await calls()).toHaveLength(1);
  expect(dirname((await calls())[0]?.prefix ?? '')).toBe(join(data, 'agents'));
});
