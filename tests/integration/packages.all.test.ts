import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { root } from '../../lib/launch/paths.mjs';
import { type CliRun, runShell, startShell } from '../support/cli';
import { reservePort } from '../support/reserve-port.mjs';

/** From the archives in an empty folder, as a new user installs them. */
describe('the packages', () => {
  const archives = () => readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.tgz'));
  const archive = (start: string) => join(root, 'dist', archives().find((name) => name.startsWith(start)) ?? '');
  let base: string;
  let folder: string;
  let env: Record<string, string>;
  let server: CliRun;
  let url: string;

  beforeAll(async () => {
    execFileSync(process.execPath, ['lib/launch/packages.mjs'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
    base = await mkdtemp(join(tmpdir(), 'interlude-packages-'));
    folder = join(base, 'project');
    for (const name of ['project', 'home']) await mkdir(join(base, name));
    const port = await reservePort();
    url = `http://127.0.0.1:${port}`;
    env = { HOME: join(base, 'home'), PORT: String(port), npm_config_update_notifier: 'false' };
    const packed = [archive('interlude-0'), archive('interlude-runner')].join(' ');
    expect(await runShell(`npm install --no-save --no-fund --no-audit ${packed}`, env, folder)).toMatchObject({
      exitCode: 0,
    });
  });
  afterAll(async () => {
    if (server?.process.exitCode === null && server.process.pid !== undefined)
      process.kill(-server.process.pid, 'SIGINT');
    await server?.ended;
    await rm(base, { recursive: true, force: true });
  });

  /** A command in the folder, ended with the test. */
  function run(command: string): CliRun {
    const started = startShell(command, env, folder);
    onTestFinished(async () => {
      if (started.process.pid !== undefined && started.process.exitCode === null) {
        process.kill(-started.process.pid, 'SIGINT');
      }
      await started.ended;
    });
    return started;
  }

  async function sessions(): Promise<{ id: string; agentId: string }[]> {
    const token = await readFile(join(env.HOME ?? '', '.interlude', 'token'), 'utf8');
    const response = await fetch(`${url}/api/v1/sessions`, { headers: { authorization: `Bearer ${token.trim()}` } });
    return ((await response.json()) as { sessions: { id: string; agentId: string }[] }).sessions;
  }

  test('are small, and install no compiler', () => {
    expect(statSync(archive('interlude-runner')).size).toBeLessThan(3_000_000);
    expect(statSync(archive('interlude-0')).size).toBeLessThan(12_000_000);
    expect(existsSync(join(folder, 'node_modules', 'next'))).toBe(false);
    expect(existsSync(join(folder, 'node_modules', 'esbuild'))).toBe(false);
  });

  test('give the library to other runners, with types', async () => {
    await writeFile(
      join(folder, 'own.mts'),
      `import { claimOutbox } from '@interlude/runner/claim-outbox';
import { Outbox } from '@interlude/runner/outbox';
import { RunnerHost } from '@interlude/runner/runner-host';
import { SessionWriter } from '@interlude/runner/session-writer';
// @ts-expect-error an outbox needs its options
export const wrong = [claimOutbox(), new Outbox(), new RunnerHost(), new SessionWriter()];`,
    );
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const checked = await runShell(
      `node ${tsc} --noEmit --strict --module nodenext --target es2022 own.mts`,
      env,
      folder,
    );
    expect(checked).toMatchObject({ exitCode: 0, stdout: '' });
    const loaded = await runShell(
      `node -e "import('@interlude/runner/runner-host').then(({ RunnerHost }) => console.log(typeof RunnerHost))"`,
      env,
      folder,
    );
    expect(loaded.stdout).toBe('function\n');
  });

  test('start the dashboard by npx within 20 s, with its data in the home folder', async () => {
    server = startShell('npx interlude', env, folder);
    let printed = '';
    server.process.stdout?.on('data', (chunk) => {
      printed += chunk;
    });
    const ready = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(ready).toBe(true);
    expect((await fetch(`${url}/signed-out`)).status).toBe(200);
    expect(existsSync(join(env.HOME ?? '', '.interlude', 'interlude.db'))).toBe(true);
    expect((await runShell('npx interlude db check', env, folder)).exitCode).toBe(0);
    expect(printed).toContain('npx interlude runner claude --cwd');
    const help = await runShell('npx interlude --help', env, folder);
    expect(help.stdout).toContain('Usage: npx interlude <command>');
  });

  test('connect an agent by npx', async () => {
    const agent = join(folder, 'agent.mjs');
    await writeFile(agent, "process.stdin.resume().on('end', () => process.exit());");
    run(`npx @interlude/runner acp --agent packed -- node ${agent}`);
    await expect.poll(async () => (await sessions()).map(({ agentId }) => agentId)).toContain('packed');
    for (const name of ['', 'claude', 'hooks', 'hooks install', 'replay', 'mcp', 'wait', 'outbox']) {
      const help = await runShell(`npx @interlude/runner ${name} --help`, env, folder);
      expect(help.stdout).toMatch(/^Usage: npx @interlude\/runner /);
    }
  });

  test('play the demo', async () => {
    run('npx interlude demo');
    await expect.poll(async () => (await sessions()).length).toBeGreaterThan(3);
  });
});
