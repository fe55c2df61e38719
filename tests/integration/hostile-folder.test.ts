import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { runCli } from '../support/cli';
import { tempDir } from '../support/temp-dir';

/**
 * A repository that somebody else made, with everything in it that a program might take from the folder it works in.
 * Whatever of it runs, in whichever process, leaves a mark.
 */
const TOKEN = 'a-token-nobody-else-may-see';
const SDK = 'node_modules/@anthropic-ai/claude-agent-sdk';

let repo: string;
let mark: string;
beforeEach(async () => {
  const base = await tempDir();
  repo = join(base, 'repo');
  mark = join(base, 'mark');
  const url = 'http://127.0.0.1:9';
  const acts = `require('node:fs').appendFileSync(${JSON.stringify(mark)}, __filename + '\\n');`;
  const packages = ['tsx', 'zod', '@libsql/client', 'eventsource-parser', '@anthropic-ai/claude-agent-sdk'];
  for (const name of packages) {
    await plant(`node_modules/${name}/package.json`, JSON.stringify({ name, version: '9.9.9', main: 'index.js' }));
    await plant(`node_modules/${name}/index.js`, acts);
  }
  await plant('package.json', JSON.stringify({ type: 'commonjs', imports: { '#*': './planted.js' } }));
  await plant('planted.js', acts);
  await plant('lib/runner/cli/main.ts', acts);
  await plant(
    'tsconfig.json',
    JSON.stringify({ compilerOptions: { baseUrl: '.', paths: { '@/*': ['./planted.js'] } } }),
  );
  await plant('.env', `INTERLUDE_URL=${url}\nINTERLUDE_TOKEN=${TOKEN}\nNODE_OPTIONS=--require=${repo}/planted.js\n`);
  await plant('.npmrc', `node-options=--require=${repo}/planted.js\n`);
  await plant('.interlude/server.json', JSON.stringify({ url, pid: process.pid }));
  await plant('.interlude/token', `${TOKEN}\n`);
});

async function plant(path: string, text: string): Promise<void> {
  const file = join(repo, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const marks = async () => (existsSync(mark) ? await readFile(mark, 'utf8') : '');

describe('of a repository that somebody else made', () => {
  test.each([
    ['is worked in', () => process.cwd(), () => ({})],
    ['is also where the runner was started from', () => repo, () => ({})],
    ['also has the data folder in it', () => repo, () => ({ INTERLUDE_DATA_DIR: join(repo, 'kept') })],
  ])('nothing runs in a runner, where it %s', async (_where, cwd, more) => {
    const home = { INTERLUDE_DATA_DIR: join(await tempDir(), "it's here"), INTERLUDE_TOKEN: TOKEN, ...more() };
    const end = await runCli(['runner', 'claude', '--cwd', repo], home, cwd());
    expect(end.exitCode).toBe(3);
    const agents = join(home.INTERLUDE_DATA_DIR, 'agents').replace(/^(.*)'(.*)$/, `'$1'\\''$2'`);
    expect(end.stderr).toContain(`interlude: the Agent SDK is not installed; run: npm install --prefix ${agents} `);
    expect(end.stderr.split('\n')).toHaveLength(2);
    expect(await marks()).toBe('');
  });

  test('no folder passes for the data folder, though that is said to be ".interlude"', async () => {
    const settings = join(dirname(repo), 'settings.json');
    const env = { INTERLUDE_DATA_DIR: '.interlude' };
    expect(await runCli(['hooks', 'install', '--settings', settings], env, repo)).toMatchObject({ exitCode: 0 });
    const hooks = await readFile(settings, 'utf8');
    expect(hooks).toContain(join(process.cwd(), '.interlude'));
    expect(hooks).not.toContain(repo);
    expect(await marks()).toBe('');
  });
});

/** An SDK that tells what it sees: when it is loaded, and what the agent's process would be given. */
const TELLING = `
  const { writeFileSync } = require('node:fs');
  const tell = (name, environment) =>
    writeFileSync(process.env.TOLD_TO + name, JSON.stringify(Object.entries(environment)));
  tell('loaded', process.env);
  exports.query = ({ options }) => {
    tell('asked', process.env);
    tell('agent', options.env);
    process.exit(0);
  };
`;

describe('the Agent SDK', () => {
  test.each([
    ['of the data folder', (home: string) => join(home, 'agents'), () => []],
    ['of a folder that was named', (home: string) => join(home, '..', 'named'), (sdk: string) => ['--sdk', sdk]],
  ])('%s is loaded, and neither it nor the agent is given what is Interlude’s own', async (_where, place, flags) => {
    const base = await tempDir();
    const home = join(base, 'data');
    const sdk = place(home);
    await mkdir(join(sdk, SDK), { recursive: true });
    await writeFile(join(sdk, SDK, 'package.json'), '{"main":"index.cjs"}');
    await writeFile(join(sdk, SDK, 'index.cjs'), TELLING);
    const env = {
      INTERLUDE_DATA_DIR: home,
      INTERLUDE_URL: 'http://127.0.0.1:9',
      INTERLUDE_TOKEN: TOKEN,
      INTERLUDE_DATABASE_AUTH_TOKEN: `${TOKEN}-of-the-database`,
      ANTHROPIC_API_KEY: 'the-agents-own',
      // as `npm --prefix` sets it for what it runs
      npm_config_prefix: '/where/interlude/is',
      TOLD_TO: join(base, 'told-'),
    };
    const end = await runCli(['runner', 'claude', '--cwd', repo, ...flags(sdk)], env, repo);
    expect(end).toMatchObject({ exitCode: 0 });
    for (const name of ['loaded', 'asked', 'agent']) {
      const seen = JSON.parse(await readFile(join(base, `told-${name}`), 'utf8')) as [string, string][];
      expect(seen).toContainEqual(['ANTHROPIC_API_KEY', 'the-agents-own']);
      expect(JSON.stringify(seen)).not.toContain(TOKEN);
      if (name === 'agent') expect(JSON.stringify(seen)).not.toContain('/where/interlude/is');
    }
    expect(await marks()).toBe('');
  });
});
