import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { InTerminal } from './cli';
import { tempDir } from './temp-dir';

/** `interlude runner claude` in a folder without the Agent SDK, with a fake npm that installs a fake SDK. */

export const SDK_NAME = '@anthropic-ai/claude-agent-sdk';
/** Output of the fake SDK. */
export const RUNS = 'the agent runs';
/** Path of the fake npm, a Node script. The runner requires a name that starts with `npm`. */
export const fakeNpm = fileURLToPath(new URL('npm-fake.mjs', import.meta.url));
const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));

interface NpmCall {
  args: string[];
  prefix: string;
  kept: string[];
  mode: string;
}

export async function sdkStage() {
  const base = await tempDir();
  const data = join(base, 'data');
  const env: Record<string, string> = {
    INTERLUDE_DATA_DIR: data,
    INTERLUDE_URL: 'http://127.0.0.1:9',
    npm_execpath: fakeNpm,
    npm_config_loglevel: 'silent',
    NPM_TELLS: join(base, 'told'),
    NPM_GO: join(base, 'go'),
  };
  const home = join(data, 'agents', 'node_modules', ...SDK_NAME.split('/'));
  return {
    base,
    data,
    env,
    /** The SDK's install folder. */
    home,
    claude: (...flags: string[]) => ['runner', 'claude', '--cwd', base, ...flags],
    /** npm calls so far. */
    async calls(): Promise<NpmCall[]> {
      const callsFile = join(base, 'told');
      const lines = existsSync(callsFile) ? (await readFile(callsFile, 'utf8')).split('\n').filter(Boolean) : [];
      return lines.map((line) => JSON.parse(line) as NpmCall);
    },
    inTerminal(args: string[], more: Record<string, string> = {}, cwd = base): InTerminal {
      const inherited = Object.entries(process.env).filter(([name]) => !/^(INTERLUDE_|npm_|INIT_CWD$)/.test(name));
      const all = { ...Object.fromEntries(inherited), ...env, ...more } as NodeJS.ProcessEnv;
      const terminal = new InTerminal([process.execPath, program, ...args], all, cwd);
      onTestFinished(() => terminal.close());
      return terminal;
    },
    /** Creates an incomplete package without its main file. */
    async plantHalf(): Promise<void> {
      await mkdir(home, { recursive: true });
      const manifest = { name: SDK_NAME, version: '0.0.1', main: 'index.cjs' };
      await writeFile(join(home, 'package.json'), JSON.stringify(manifest));
    },
  };
}
