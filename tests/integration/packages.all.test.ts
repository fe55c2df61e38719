import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { root } from '../../lib/launch/paths.mjs';
import { type CliRun, runShell, startShell } from '../support/cli';
import { reservePort } from '../support/reserve-port.mjs';
import { tempDir } from '../support/temp-dir';

/** From the archives in an empty folder, as a new user installs them. */
describe('the packages', { timeout: 180_000 }, () => {
  const archives = () => readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.tgz'));
  const archive = (start: string) => join(root, 'dist', archives().find((name) => name.startsWith(start)) ?? '');
  let folder: string;
  let env: Record<string, string>;
  let server: CliRun;
  let url: string;

  beforeAll(async () => {
    execFileSync(process.execPath, ['lib/launch/packages.mjs'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
    folder = await tempDir();
    const port = await reservePort();
    url = `http://127.0.0.1:${port}`;
    env = { HOME: await tempDir(), PORT: String(port), npm_config_update_notifier: 'false' };
    const packed = [archive('interlude-0'), archive('interlude-runner')].join(' ');
    expect(await runShell(`npm install --no-save --no-fund --no-audit ${packed}`, env, folder)).toMatchObject({
      exitCode: 0,
    });
  }, 180_000);
  afterAll(async () => {
    if (server?.process.pid !== undefined) process.kill(-server.process.pid, 'SIGINT');
    await server?.ended;
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

  test('start the dashboard by npx within 20 s, with its data in the home folder', async () => {
    server = startShell('npx interlude', env, folder);
    const ready = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(ready, { timeout: 20_000 }).toBe(true);
    expect((await fetch(`${url}/signed-out`)).status).toBe(200);
    expect(existsSync(join(env.HOME ?? '', '.interlude', 'interlude.db'))).toBe(true);
    expect((await runShell('npx interlude db check', env, folder)).exitCode).toBe(0);
    const help = await runShell('npx interlude --help', env, folder);
    expect(help.stdout).toContain('Usage: npx interlude <command>');
  });

  test('connect an agent by npx', async () => {
    const agent = join(folder, 'agent.mjs');
    await writeFile(agent, "process.stdin.resume().on('end', () => process.exit());");
    run(`npx @interlude/runner acp --agent packed -- node ${agent}`);
    await expect
      .poll(async () => (await sessions()).map(({ agentId }) => agentId), { timeout: 20_000 })
      .toContain('packed');
    const help = await runShell('npx @interlude/runner --help', env, folder);
    expect(help.stdout).toContain('Usage: npx @interlude/runner <command>');
  });

  test('play the demo', async () => {
    run('npx interlude demo');
    await expect.poll(async () => (await sessions()).length, { timeout: 20_000 }).toBeGreaterThan(3);
  });
});
