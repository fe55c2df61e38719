import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CredentialSummary, Me, NewToken } from '@interlude/protocol/access';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { LocalDashboard } from '../support/local-dashboard';
import { tempDir } from '../support/temp-dir';

let dashboard: LocalDashboard;
let env: Record<string, string>;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  const folder = join(await tempDir(), 'data');
  env = { INTERLUDE_DATA_DIR: folder, INTERLUDE_URL: dashboard.url, INTERLUDE_TOKEN: dashboard.token };
});

const TOKEN = /^ilt_[A-Za-z0-9_-]{43}\n$/;

function ask(path: string, token: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${dashboard.url}/api/v1${path}`, { ...init, headers: { authorization: `Bearer ${token.trim()}` } });
}

async function meOf(token: string): Promise<Me> {
  return (await (await ask('/me', token)).json()) as Me;
}

async function created(...flags: string[]): Promise<{ token: string; id: string }> {
  const { exitCode, stdout, stderr } = await callCli(['tokens', 'create', ...flags], env);
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(TOKEN) });
  return { token: stdout.trim(), id: /revoke (token-\S+)/.exec(stderr)?.[1] ?? '' };
}

describe('tokens create', () => {
  test('prints only the token on stdout, which is a runner’s token of that agent', async () => {
    const { token } = await created('--agent', 'build-1', '--name', 'Build box');
    expect(await meOf(token)).toMatchObject({
      name: 'Build box',
      kind: 'runner',
      role: 'runner',
      scope: { kind: 'agents', ids: ['build-1'], prefixes: [] },
      expiresAt: null,
    });
    expect((await ask('/sessions', token)).status).toBe(403);
  });

  test('creates a token with the given prefix, role and expiry', async () => {
    const before = Date.now();
    const { token } = await created('--agent-prefix', 'ci-', '--role', 'operator', '--expires', '90d');
    const me = await meOf(token);
    expect(me).toMatchObject({ role: 'operator', scope: { kind: 'agents', ids: [], prefixes: ['ci-'] } });
    expect((me.expiresAt ?? 0) - before).toBeGreaterThanOrEqual(90 * 86_400_000);
    expect((me.expiresAt ?? 0) - Date.now()).toBeLessThanOrEqual(90 * 86_400_000);
  });

  test('replaces a file that only its owner can read, and prints no token', async () => {
    const file = join(await tempDir(), 'runner.token');
    await writeFile(file, 'an old one', { mode: 0o644 });
    const { exitCode, stdout, stderr } = await callCli(['tokens', 'create', '--agent', 'a', '--out', file], env);
    const token = await readFile(file, 'utf8');
    expect([exitCode, stdout, token]).toEqual([0, '', expect.stringMatching(TOKEN)]);
    expect(stderr).not.toContain(token.trim());
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await meOf(token)).role).toBe('runner');
  });

  test('creates no token when its file can’t be written', async () => {
    const before = await callCli(['tokens', 'list', '--json'], env);
    const end = await callCli(['tokens', 'create', '--agent', 'a', '--out', '/proc/no/token'], env);
    expect(end).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'interlude: /proc/no/token can’t be written (ENOENT); name another file with --out\n',
    });
    expect(await callCli(['tokens', 'list', '--json'], env)).toEqual(before);
  });

  test.each([
    [['create'], /add --agent ID/],
    [['create', '--agent', 'a', '--role', 'king'], /--role must be one of runner, viewer, operator, admin, issuer/],
    [['create', '--agent', 'a', '--expires', 'soon'], /--expires must be a time like 30m, 12h, 90d or 52w/],
    [['create', '--agent', 'a', '--expires', '99999w'], /at most 10 years/],
    [['create', '--agent', '..'], /--agent must be an id/],
    [['create', 'a'], /"create" takes options only/],
    [['revoke'], /pass token ids as shown by "list"/],
    [[], /use create, list or revoke/],
  ])('refuses %j as a usage error with what to do', async (args, message) => {
    const { exitCode, stdout, stderr } = await callCli(['tokens', ...args], env);
    expect([exitCode, stdout, stderr.trim().split('\n').length]).toEqual([2, '', 1]);
    expect(stderr).toMatch(message);
  });

  test('accepts a token argument of an old script, and recommends where to put it', async () => {
    const { exitCode, stderr } = await callCli(['tokens', 'list', '--token', 'a-secret-of-some-length'], env);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^interlude: --token exposes the token to every user of this machine; pass it with --token-file/,
    );
    expect(stderr).not.toContain('a-secret');
  });

  test('prints the server’s refusal of an impossible token', async () => {
    const end = await callCli(['tokens', 'create', '--role', 'admin', '--agent', 'a'], env);
    expect(end).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^interlude: .*role admin.*\n$/) });
  });
});

describe('tokens list and revoke', () => {
  test('list a credential until it is revoked and opens nothing', async () => {
    const { token, id } = await created('--agent', 'listed', '--name', 'To be listed');
    await meOf(token);
    const listed = async (...flags: string[]) => (await callCli(['tokens', 'list', ...flags], env)).stdout;
    expect(await listed()).toMatch(
      new RegExp(`^${id} +To be listed +runner +listed +(never|20\\S+ \\S+Z) +never$`, 'm'),
    );
    expect(await listed()).not.toContain(token);

    expect(await callCli(['tokens', 'revoke', id], env)).toEqual({
      exitCode: 0,
      stdout: `${id} (To be listed) is revoked\n`,
      stderr: '',
    });
    expect((await ask('/me', token)).status).toBe(401);
    expect(await listed()).not.toContain(id);
    const all = (await listed('--all', '--json')).trim().split('\n');
    const credential = all.map((line) => JSON.parse(line) as CredentialSummary).find((one) => one.id === id);
    expect(credential?.revokedAt).toEqual(expect.any(Number));
  });

  test('revoke valid ids, report unknown ones, and fail', async () => {
    const { token, id } = await created('--agent', 'one');
    const end = await callCli(['tokens', 'revoke', 'token-of-nobody', id], env);
    expect(end).toMatchObject({ exitCode: 1, stdout: expect.stringContaining(id) });
    expect(end.stderr).toMatch(/^interlude: There is no credential "token-of-nobody"[^\n]+\n$/);
    expect((await ask('/me', token)).status).toBe(401);
  });
});

describe('sign-in', () => {
  test('prints a link that signs in once', async () => {
    const { exitCode, stdout, stderr } = await callCli(['sign-in'], env);
    expect([exitCode, stderr]).toEqual([0, 'interlude: works once, for 5 min\n']);
    expect(stdout).toMatch(new RegExp(`^${dashboard.url}/sign-in\\?token=ilc_[A-Za-z0-9_-]{43}\n$`));
    const open = () => fetch(stdout.trim(), { redirect: 'manual' });
    const first = await open();
    expect([first.status, first.headers.get('location')]).toEqual([303, '/']);
    expect(first.headers.get('set-cookie')).toContain('interlude=ils_');
    expect((await open()).headers.get('location')).toBe('/signed-out?reason=old-link');
  });

  test('refuses a runner’s token, like the tokens commands, and names who may use it', async () => {
    const { token } = await created('--agent', 'x');
    for (const args of [['sign-in'], ['tokens', 'list'], ['tokens', 'create', '--agent', 'y']]) {
      const end = await callCli(args, { ...env, INTERLUDE_TOKEN: token });
      expect(end).toMatchObject({ exitCode: 1, stdout: '' });
      expect(end.stderr).toMatch(/^interlude: This requires the admin role[^\n]+runner\.\n$/);
    }
  });

  test('says what to do without a token, with a wrong one, or without a server', async () => {
    const { INTERLUDE_TOKEN: _, ...without } = env;
    const output = async (more: Record<string, string>) => {
      const { exitCode, stdout, stderr } = await callCli(['sign-in'], { ...without, ...more });
      expect([exitCode, stdout, stderr.trim().split('\n').length]).toEqual([1, '', 1]);
      return stderr;
    };
    expect(await output({})).toMatch(/no token for http\S+; start Interlude on this machine, or pass its owner’s/);
    expect(await output({ INTERLUDE_TOKEN: 'wrong-wrong-wrong' })).toMatch(/refuses the token; pass its owner’s/);
    expect(await output({ INTERLUDE_TOKEN: 'x'.repeat(20), INTERLUDE_URL: 'http://127.0.0.1:9' })).toMatch(
      /http:\/\/127.0.0.1:9 does not answer \(.+\); start Interlude/,
    );
  });
});

describe('the token of a command', () => {
  test('comes from --token-file, INTERLUDE_TOKEN_FILE, INTERLUDE_TOKEN or the data folder, in this order', async () => {
    const folder = await tempDir();
    const [wrong, right] = [join(folder, 'wrong'), join(folder, 'right')];
    await writeFile(wrong, 'wrong-wrong-wrong\n', { mode: 0o600 });
    await writeFile(right, `${dashboard.token}\n`, { mode: 0o600 });
    const ends = async (flags: string[], more: Record<string, string>) =>
      (await callCli(['tokens', 'list', '--json', ...flags], { ...env, ...more })).exitCode;
    expect(await ends(['--token-file', right], { INTERLUDE_TOKEN_FILE: wrong, INTERLUDE_TOKEN: 'no' })).toBe(0);
    expect(await ends(['--token-file', wrong], { INTERLUDE_TOKEN_FILE: right })).toBe(1);
    expect(await ends([], { INTERLUDE_TOKEN_FILE: right, INTERLUDE_TOKEN: 'no' })).toBe(0);
    expect(await ends([], { INTERLUDE_TOKEN_FILE: wrong })).toBe(1);
    expect(await ends([], { INTERLUDE_DATA_DIR: folder, INTERLUDE_TOKEN: '' })).toBe(1);
    await writeFile(join(folder, 'token'), dashboard.token, { mode: 0o600 });
    expect(await ends([], { INTERLUDE_DATA_DIR: folder, INTERLUDE_TOKEN: '' })).toBe(0);
  });

  test.each([
    ['that does not exist', null, /can’t be read \(ENOENT\)/],
    ['that is empty', '', /must contain one token/],
    ['with more than a token', 'INTERLUDE_TOKEN=abc def', /must contain one token/],
  ])('refuses a file %s at once, also for a runner', async (_, content, message) => {
    const file = join(await tempDir(), 'token');
    if (content !== null) await writeFile(file, content);
    for (const args of [['sign-in'], ['demo']]) {
      const { exitCode, stderr } = await callCli([...args, '--token-file', file], env);
      expect([exitCode, stderr.trim().split('\n').length]).toEqual([1, 1]);
      expect(stderr).toMatch(message);
    }
  });
});

test('a token for any agent is limited to runners, and names none', async () => {
  const created = await dashboard.request<NewToken>('/tokens', { anyAgent: true });
  expect(await meOf(created.token)).toMatchObject({ role: 'runner', scope: { kind: 'everything' } });
  expect((await ask('/sessions', created.token)).status).toBe(403);
  for (const body of [{ anyAgent: true, role: 'viewer' }, { anyAgent: true, agent: 'a' }, {}]) {
    await expect(dashboard.request('/tokens', body)).rejects.toThrow('answered 400');
  }
});
