import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { runCli } from './cli';
import { tempDir } from './temp-dir';

const TOKEN = 'a-token-nobody-else-may-see';
const SDK = 'node_modules/@anthropic-ai/claude-agent-sdk';

interface HostileRepository {
  repo: string;
  /** Files that ran, one per line. */
  marks(): Promise<string>;
}

/**
 * A hostile repository that contains every file a program might load from its working directory. Each file that runs,
 * in any process, leaves a mark.
 */
export async function hostileRepository(): Promise<HostileRepository> {
  const base = await tempDir();
  const [repo, mark] = [join(base, 'repo'), join(base, 'mark')];
  const plant = async (path: string, text: string) => {
    const file = join(repo, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  };
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
  return { repo, marks: async () => (existsSync(mark) ? await readFile(mark, 'utf8') : '') };
}

/**
 * Expects a runner started in the repository to exit because the Agent SDK is missing, without running any repository
 * file.
 */
export async function expectNothingRuns(
  { repo, marks }: HostileRepository,
  cwd: string,
  more: Record<string, string> = {},
): Promise<void> {
  const home = { INTERLUDE_DATA_DIR: join(await tempDir(), "it's here"), INTERLUDE_TOKEN: TOKEN, ...more };
  const end = await runCli(['runner', 'claude', '--cwd', repo], home, cwd);
  expect(end.exitCode).toBe(3);
  const agents = join(home.INTERLUDE_DATA_DIR, 'agents').replace(/^(.*)'(.*)$/, `'$1'\\''$2'`);
  expect(end.stderr).toContain(`interlude: the Agent SDK is not installed; run: npm install --prefix ${agents} `);
  expect(end.stderr.split('\n')).toHaveLength(2);
  expect(await marks()).toBe('');
}

/** An SDK that records its environment at load, at query, and for the agent process. */
const RECORDING_SDK = `
  const { writeFileSync } = require('node:fs');
  const record = (name, environment) =>
    writeFileSync(process.env.TOLD_TO + name, JSON.stringify(Object.entries(environment)));
  record('loaded', process.env);
  exports.query = ({ options }) => {
    record('asked', process.env);
    record('agent', options.env);
    process.exit(0);
  };
`;

/** Expects an SDK loaded by a runner in the repository to see no Interlude variable. */
export async function expectSdkSeesNoSecret(
  { repo, marks }: HostileRepository,
  place: (home: string) => string,
  flags: (sdk: string) => string[],
): Promise<void> {
  const base = await tempDir();
  const home = join(base, 'data');
  const sdk = place(home);
  await mkdir(join(sdk, SDK), { recursive: true });
  await writeFile(join(sdk, SDK, 'package.json'), '{"main":"index.cjs"}');
  await writeFile(join(sdk, SDK, 'index.cjs'), RECORDING_SDK);
  const env = {
    INTERLUDE_DATA_DIR: home,
    INTERLUDE_URL: 'http://127.0.0.1:9',
    INTERLUDE_TOKEN: TOKEN,
    INTERLUDE_DATABASE_AUTH_TOKEN: `${TOKEN}-of-the-database`,
    ANTHROPIC_API_KEY: 'the-agents-own',
    // `npm --prefix` sets it for its child processes.
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
}
