import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SessionSummary } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { type CliRun, startShell } from './cli';
import { tempDir } from './temp-dir';
import { type OwnVisit, visitOwn } from './visit';

/** The repository root, the working directory of a new user's shell. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The folded ways to connect an agent; named after the agents of the test's machine, if it has any. */
export const CONNECT = /^Connect an(?:other)? agent$/;

/** A dashboard of a new user without INTERLUDE_TOKEN. */
export interface FirstStart extends OwnVisit {
  /** The generated token. */
  ownToken: string;
  sessions(): Promise<SessionSummary[]>;
  agentIds(): Promise<string[]>;
  /** Opens the start page. */
  welcome(): Promise<{ page: Page; commands: string[] }>;
}

export async function firstStart(): Promise<FirstStart> {
  const site = await visitOwn({ signedIn: false, env: { INTERLUDE_TOKEN: '' } });
  const ownToken = (await readFile(join(site.server.dataDir, 'token'), 'utf8')).trim();
  await installAgentSdk(site.server.dataDir);
  const get = async <Body>(path: string) => {
    const response = await fetch(`${site.server.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${ownToken}` },
    });
    return (await response.json()) as Body;
  };
  return {
    ...site,
    ownToken,
    sessions: async () => (await get<{ sessions: SessionSummary[] }>('/sessions')).sessions,
    agentIds: async () => (await get<{ agents: { id: string }[] }>('/agents')).agents.map(({ id }) => id),
    async welcome() {
      const page = await site.load(`/sign-in?token=${ownToken}`);
      await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
      for (const fold of [CONNECT, /^Replay a recording, or/]) await page.getByText(fold).click();
      await page.getByText(`${site.server.url}/api/v1/events`).waitFor();
      return { page, commands: await page.getByRole('listitem').locator('code').allInnerTexts() };
    },
  };
}

/** Installs a fake Agent SDK that prints a line when asked to run an agent. */
async function installAgentSdk(dataDir: string): Promise<void> {
  const sdk = join(dataDir, 'agents/node_modules/@anthropic-ai/claude-agent-sdk');
  await mkdir(sdk, { recursive: true });
  await writeFile(join(sdk, 'package.json'), '{"main":"index.cjs"}');
  // it fails in the demo's project; the demo plays its recordings anyway
  const runs = `if (!/my-project$/.test(options.cwd)) throw new Error('no agent');
    console.log('the agent runs');
    process.exit(0);`;
  await writeFile(join(sdk, 'index.cjs'), `exports.query = ({ options }) => { ${runs} };`);
}

/** The environment of a new user's shell, without Interlude variables. */
export async function newUser(): Promise<{ HOME: string }> {
  return { HOME: await tempDir() };
}

/** Runs a command in a new user's shell until the test ends. */
export function runPasted(command: string, env: Record<string, string>): CliRun {
  const run = startShell(command, env, root);
  onTestFinished(async () => {
    const { process: started, ended } = run;
    if (started.pid !== undefined && started.exitCode === null) process.kill(-started.pid, 'SIGINT');
    await ended;
  });
  return run;
}
