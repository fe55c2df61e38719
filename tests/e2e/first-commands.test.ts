import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { SessionSummary } from '@/lib/protocol/read-models';
import { type CliRun, runShell, startShell } from '../support/cli';
import { startLiveServer } from '../support/live-server';
import { tempDir } from '../support/temp-dir';
import { type OwnVisit, visitOwn } from '../support/visit';

/**
 * What the first page, the README and the terminal say to paste, pasted into a shell that has nothing of ours in its
 * environment. Only the Agent SDK is a stand-in: it says that it was asked to run an agent.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));

let it: OwnVisit;
let token: string;
let home: string;
const running: CliRun[] = [];
beforeAll(async () => {
  // without a token in its environment it makes one, as for a new user
  it = await visitOwn({ signedIn: false, env: { INTERLUDE_TOKEN: '' } });
  token = (await readFile(join(it.server.dataDir, 'token'), 'utf8')).trim();
  const sdk = join(it.server.dataDir, 'agents/node_modules/@anthropic-ai/claude-agent-sdk');
  await mkdir(sdk, { recursive: true });
  await writeFile(join(sdk, 'package.json'), '{"main":"index.cjs"}');
  // In the demo's own project it fails, which keeps none of the recordings from being played.
  const runs = `if (!/my-project$/.test(options.cwd)) throw new Error('no agent');
    console.log('the agent runs');
    process.exit(0);`;
  await writeFile(join(sdk, 'index.cjs'), `exports.query = ({ options }) => { ${runs} };`);
});
afterAll(() => it.close());
afterEach(async () => {
  for (const { process: started, ended } of running.splice(0)) {
    if (started.pid !== undefined && started.exitCode === null) process.kill(-started.pid, 'SIGINT');
    await ended;
  }
});

/** As a new user's terminal has it. */
async function environment(): Promise<Record<string, string>> {
  home = await tempDir();
  return { HOME: home };
}

async function paste(command: string): Promise<CliRun> {
  const run = startShell(command, await environment(), root);
  running.push(run);
  return run;
}

const sessions = async () => {
  const response = await fetch(`${it.server.url}/api/v1/sessions`, { headers: { authorization: `Bearer ${token}` } });
  return ((await response.json()) as { sessions: SessionSummary[] }).sessions;
};

const agents = async () => {
  const response = await fetch(`${it.server.url}/api/v1/agents`, { headers: { authorization: `Bearer ${token}` } });
  return ((await response.json()) as { agents: { id: string }[] }).agents;
};

async function welcome(): Promise<{ page: Page; commands: string[] }> {
  const page = await it.open(`/sign-in?token=${token}`);
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  await page.getByText(`${it.server.url}/api/v1/events`).waitFor();
  return { page, commands: await page.getByRole('listitem').locator('code').allInnerTexts() };
}

describe('the start page', () => {
  let commands: string[];
  const named = (words: string) => commands.find((command) => command.includes(words)) ?? '';

  test('has commands for a server with a data folder of its own, and copies them as they are shown', async () => {
    const start = await welcome();
    commands = start.commands;
    expect(commands).toHaveLength(5);
    await it.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied: string[] = [];
    for (const item of await start.page
      .getByRole('listitem')
      .filter({ has: start.page.locator('code') })
      .all()) {
      await item.getByRole('button', { name: 'Copy command' }).click();
      await item.getByRole('button', { name: 'Copied' }).waitFor();
      copied.push(await start.page.evaluate(() => navigator.clipboard.readText()));
    }
    expect(copied).toEqual(commands);
    await start.page.close();
  });

  test('its first one runs Claude Code in a project', async () => {
    const run = await paste(named('runner claude'));
    // it may have told the address of its session before
    expect(await run.ended).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^(?:http\S+\n)?the agent runs\n$/),
    });
  });

  test('its next one puts the hooks in place and follows the terminals', async () => {
    const run = await paste(named('hooks install'));
    await expect.poll(async () => (await agents()).map(({ id }) => id).join()).toContain('terminals@');
    expect(await readFile(join(home, '.claude', 'settings.json'), 'utf8')).toContain(it.server.dataDir);
    expect(run.process.exitCode).toBe(null);
  });

  test.each([
    ['demo', /^checkout-service-/],
    ['replay', /^test-run-/],
  ])('its %s shows sessions', async (words, id) => {
    await paste(named(`-- ${words}`));
    await expect.poll(async () => (await sessions()).map((one) => one.id)).toContainEqual(expect.stringMatching(id));
  });

  test('its curl posts a first turn, that is of now, at each time anew', async () => {
    for (const turnCount of [1, 2]) {
      const before = Date.now();
      expect(JSON.parse((await (await paste(named('curl'))).ended).stdout)).toMatchObject({ ackedSeq: 3, accepted: 3 });
      const mine = (await sessions()).find(({ id }) => id === 's1');
      expect(mine).toMatchObject({ agentId: 'my-agent', state: 'idle', turnCount, lastText: 'Hello.' });
      expect(mine?.lastHeardAt).toBeGreaterThan(before - 2_000);
      // it counts in seconds
      await expect.poll(() => Math.floor(Date.now() / 1_000)).toBeGreaterThan(Math.floor(before / 1_000) + 1);
    }
  });
});

test('a second start with a demo says the one command that runs it beside the first, and that one works', async () => {
  const port = new URL(it.server.url).port;
  const env = { INTERLUDE_DATA_DIR: it.server.dataDir };
  const end = await runShell(`npm start -s -- --demo --port ${port}`, env, root);
  expect(end.exitCode).toBe(1);
  const command = /for the demo beside it run: (.+)\n$/.exec(end.stderr)?.[1] ?? '';
  expect(command).toContain('interlude -- demo');
  expect(await runShell(`${command} --help`, {}, root)).toMatchObject({ exitCode: 0 });
});

const byNpm = { npm_lifecycle_event: 'start', npm_package_json: join(root, 'package.json') };

test('the terminal it was started in says commands for where it was started', async () => {
  const folder = await tempDir();
  const server = await startLiveServer({ env: { INIT_CWD: folder, ...byNpm } });
  const commands = server.output.split('\n').flatMap((line) => /^ {4}(.+)$/.exec(line)?.[1] ?? []);
  expect(commands).toHaveLength(6);
  const link = await runShell(commands.find((one) => one.includes('sign-in')) ?? '', {}, folder);
  // this server was started with a token of somebody's choice, which is in no file
  expect(link).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('INTERLUDE_TOKEN') });
  for (const command of commands.filter((one) => one.includes('replay'))) {
    const end = await runShell(`${command} --speed max`, {}, folder);
    expect(end).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`${server.url}/sessions/test-run-`) });
  }
  expect(commands.filter((one) => !one.includes(`npm --prefix ${root.replace(/\/$/, '')} `))).toEqual([]);
  await server.stop();
});

const replay = 'npm run -s interlude -- replay tests/fixtures/recordings/demo';

test('every shell line of the README runs, at this server', async () => {
  const readme = await readFile(join(root, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block.trim());
  const env = { ...(await environment()), INTERLUDE_DATA_DIR: it.server.dataDir };
  await mkdir(join(home, '.claude'));
  const here = (block: string) =>
    block
      .replaceAll('http://127.0.0.1:4319', it.server.url)
      .replaceAll('.interlude/runner-token', join(it.server.dataDir, 'runner-token'))
      .replaceAll('my-agent.token', join(it.server.dataDir, 'my-agent.token'));
  const ends: Record<string, string> = {
    // what would go on, or begin all over, is asked what it is; each of them is run elsewhere
    'npm start': 'npm start -- --help',
    'npm test': 'npm test -- no-such-stage || test $? -eq 2',
    'npm run -s interlude -- demo': 'npm run -s interlude -- demo --help',
    'npm run -s interlude -- runner hooks': 'npm run -s interlude -- runner hooks --help',
    [`${replay}/research.jsonl`]: `${replay}/research.jsonl --speed max`,
  };
  for (const block of blocks) {
    const lines = here(block)
      .split('\n')
      .map((line) => ends[line] ?? line);
    const end = await runShell(`set -e\n${lines.join('\n')}`, env, root);
    expect(end, block).toMatchObject({ exitCode: 0 });
    expect(end.stdout, block).not.toContain('"error"');
  }
  expect(blocks.length).toBeGreaterThanOrEqual(7);

  // tried a second time, the curl says the same again, not twice as much
  const curl = here(blocks.find((block) => block.includes('curl')) ?? '');
  expect(JSON.parse((await runShell(`sleep 1; ${curl}`, env, root)).stdout)).toMatchObject({ accepted: 3 });
  expect((await sessions()).find(({ id }) => id === 's1')?.lastText).toBe('Hello.');
});
