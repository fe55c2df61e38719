import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runShell } from '../support/cli';
import { type FirstStart, firstStart, newUser, root, runPasted } from '../support/first-start';

let site: FirstStart;
/** The commands of the start page. */
let commands: string[];
beforeAll(async () => {
  site = await firstStart();
});
afterAll(() => site.close());

const named = (words: string) => commands.find((command) => command.includes(words)) ?? '';

/** The curl command numbers its epochs by the second. */
async function nextSecond(): Promise<void> {
  const second = () => Math.floor(Date.now() / 1_000);
  const now = second();
  await expect.poll(second).toBeGreaterThan(now);
}

test('the start page shows a command for each way to begin, and copies them as they are shown', async () => {
  const start = await site.welcome();
  commands = start.commands;
  expect(commands).toHaveLength(16);
  await site.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const copied: string[] = [];
  const items = start.page.getByRole('listitem').filter({ has: start.page.locator('code') });
  for (const item of await items.all()) {
    await item.getByRole('button', { name: 'Copy command' }).click();
    await item.getByRole('button', { name: 'Copied' }).waitFor();
    copied.push(await start.page.evaluate(() => navigator.clipboard.readText()));
  }
  expect(copied).toEqual(commands);
  await start.page.close();
});

test('the curl command of the start page posts a turn of now, each time anew', async () => {
  for (const turnCount of [1, 2]) {
    const before = Date.now();
    const { stdout } = await runPasted(named('curl'), await newUser()).ended;
    expect(JSON.parse(stdout)).toMatchObject({ ackedSeq: 3, accepted: 3 });
    const session = (await site.sessions()).find(({ id }) => id === 's1');
    expect(session).toMatchObject({ agentId: 'my-agent', state: 'idle', turnCount, lastText: 'Hello.' });
    expect(session?.lastHeardAt).toBeGreaterThan(before - 2_000);
    await nextSecond();
  }
});

test('every shell line of README.md and docs/api.md works with a new server', async () => {
  const pages = await Promise.all(['README.md', 'docs/api.md'].map((page) => readFile(join(root, page), 'utf8')));
  const blocks = pages.flatMap((page) =>
    [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block.trim()),
  );
  const user = await newUser();
  const env = { ...user, INTERLUDE_DATA_DIR: site.server.dataDir };
  await mkdir(join(user.HOME, '.claude'));
  const here = (block: string) =>
    block
      .replaceAll('http://127.0.0.1:4319', site.server.url)
      .replaceAll('.interlude/runner-token', join(site.server.dataDir, 'runner-token'))
      .replaceAll('my-agent.token', join(site.server.dataDir, 'my-agent.token'))
      .replaceAll('.interlude/token', join(site.server.dataDir, 'token'));
  const ends: Record<string, string> = {
    // commands that don't end by themselves print their help; other tests run them
    'npm start': 'npm start -- --help',
    'npm test': 'npm test -- no-such-stage || test $? -eq 2',
    'npx interlude demo': 'npx interlude demo --help',
    'npx interlude runner hooks': 'npx interlude runner hooks --help',
  };
  for (const block of blocks) {
    const lines = here(block)
      .split('\n')
      .map((line) => ends[line] ?? line.replace(/curl -sN (.*)/, 'curl -sN --max-time 1 $1 || test $? -eq 28'));
    const end = await runShell(`set -e\n${lines.join('\n')}`, env, root);
    expect(end, block).toMatchObject({ exitCode: 0 });
    expect(end.stdout, block).not.toContain('{"error"');
  }
  expect(blocks.length).toBeGreaterThanOrEqual(7);

  const curl = here(blocks.find((block) => block.includes('/events')) ?? '');
  await nextSecond();
  expect(JSON.parse((await runShell(curl, env, root)).stdout)).toMatchObject({ accepted: 3 });
  expect((await site.sessions()).find(({ id }) => id === 's1')?.lastText).toBe('Hello.');
});
