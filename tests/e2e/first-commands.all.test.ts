import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runShell } from '../support/cli';
import { type FirstStart, firstStart, newUser, root, runPasted } from '../support/first-start';
import { startLiveServer } from '../support/live-server';
import { tempDir } from '../support/temp-dir';

let site: FirstStart;
/** The commands of the start page. */
let commands: string[];
beforeAll(async () => {
  site = await firstStart();
  const { page, commands: shown } = await site.welcome();
  commands = shown;
  await page.close();
});
afterAll(() => site.close());

const named = (words: string) => commands.find((command) => command.includes(words)) ?? '';

test('the first command of the start page runs Claude Code in a project', async () => {
  const run = runPasted(named('runner claude'), await newUser());
  // the address of its session may come before
  expect(await run.ended).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^(?:http\S+\n)?the agent runs\n$/),
  });
});

test('the second command of the start page installs the hooks and follows the terminals', async () => {
  const user = await newUser();
  const run = runPasted(named('hooks install'), user);
  await expect.poll(async () => (await site.agentIds()).join()).toContain('terminals@');
  expect(await readFile(join(user.HOME, '.claude', 'settings.json'), 'utf8')).toContain(site.server.dataDir);
  expect(run.process.exitCode).toBe(null);
});

test.each([
  ['demo', /^checkout-service-/],
  ['replay', /^test-run-/],
])('the %s command of the start page shows sessions', async (words, id) => {
  runPasted(named(`npx interlude ${words}`), await newUser());
  const ids = async () => (await site.sessions()).map(({ id }) => id);
  await expect.poll(ids).toContainEqual(expect.stringMatching(id));
});

test('a second start with a demo names the command that runs the demo beside the first, which works', async () => {
  const port = new URL(site.server.url).port;
  const env = { INTERLUDE_DATA_DIR: site.server.dataDir };
  const end = await runShell(`npm start -s -- --demo --port ${port}`, env, root);
  expect(end.exitCode).toBe(1);
  const command = /add the demo fleet with: (.+)\n$/.exec(end.stderr)?.[1] ?? '';
  expect(command).toContain('npx interlude demo');
  expect(await runShell(`${command} --help`, {}, root)).toMatchObject({ exitCode: 0 });
});

const byNpm = { npm_lifecycle_event: 'start', npm_package_json: join(root, 'package.json') };

test('the terminal names commands that work in the folder it was started in', async () => {
  const folder = await tempDir();
  const server = await startLiveServer({ env: { INIT_CWD: folder, ...byNpm } });
  const named = () => server.output.split('\n').flatMap((line) => /^ {4}(.+)$/.exec(line)?.[1] ?? []);
  // It answers before it has printed everything.
  await expect.poll(named, { timeout: 10_000 }).toHaveLength(6);
  const commands = named();
  const link = await runShell(commands.find((one) => one.includes('sign-in')) ?? '', {}, folder);
  // This server was given its token by the environment, so no file holds it.
  expect(link).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('INTERLUDE_TOKEN') });
  for (const command of commands.filter((one) => one.includes('replay'))) {
    const end = await runShell(`${command} --speed max`, {}, folder);
    expect(end).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`${server.url}/sessions/test-run-`) });
  }
  expect(commands.filter((one) => !one.includes(`npm --prefix ${root.replace(/\/$/, '')} `))).toEqual([]);
  await server.stop();
});
