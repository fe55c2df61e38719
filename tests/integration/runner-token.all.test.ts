import { readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { keepRunnerToken } from '@/lib/launch/local-credentials.mjs';
import { ScriptedAcpAgent } from '../support/acp-agent';
import { startCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { tempDir } from '../support/temp-dir';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('the runner’s token is created later when the start could not create it', async () => {
  const dataDir = await tempDir();
  dashboard.cutsOff = (path) => path === '/api/v1/tokens';
  await keepRunnerToken(dataDir, { url: dashboard.url, token: dashboard.token });
  expect(readdirSync(dataDir)).toEqual([]);
  dashboard.cutsOff = () => false;
  await expect.poll(() => readdirSync(dataDir)).toEqual(['runner-token']);
});

test('a runner with a revoked token prints once what to do, and its agent continues', async () => {
  const dataDir = await tempDir();
  const { token, credential } = await dashboard.request<{ token: string; credential: { id: string } }>('/tokens', {
    agentPrefix: 'own-',
  });
  const given = join(dataDir, 'given');
  await writeFile(given, `${token}\n`, { mode: 0o600 });
  const agent = await ScriptedAcpAgent.open();
  const flags = ['--agent', 'own-1', '--session', 'own-session', '--token-file', given];
  const { process: started, ended } = startCli(['runner', 'acp', ...flags, '--', ...agent.command], {
    INTERLUDE_DATA_DIR: join(dataDir, 'data'),
    INTERLUDE_URL: dashboard.url,
  });
  onTestFinished(() => void started.kill('SIGKILL'));
  let printed = '';
  started.stderr?.on('data', (chunk) => {
    printed += chunk;
  });
  const connection = async () => {
    const { agents } = await dashboard.request<{ agents: { id: string; connection: string }[] }>('/agents');
    return agents.find(({ id }) => id === 'own-1')?.connection;
  };
  await expect.poll(connection).toBe('connected');
  await dashboard.request(`/credentials/${credential.id}`, undefined, 'DELETE');
  await expect.poll(() => printed).toMatch(/refuses the token/);
  expect(started.exitCode).toBe(null);
  started.kill('SIGINT');
  const { stderr } = await ended;
  const lines = stderr.split('\n').filter((line) => line.includes('token'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(
    /^interlude: the dashboard refuses the token \(.*revoked.*\); write another token to \S+given, /,
  );
  expect(stderr).not.toContain(token);
});
