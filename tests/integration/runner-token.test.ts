import { readdirSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import type { CredentialList, Me } from '@interlude/protocol/access';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ensureRunnerToken, isTerminal, runnerTokenFile, signInLines } from '@/lib/launch/local-credentials.mjs';
import { LocalDashboard } from '../support/local-dashboard';
import { tempDir } from '../support/temp-dir';

/** The runner token that a start creates once its server answers, against the real handlers. */

let dashboard: LocalDashboard;
let dataDir: string;
let file: string;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  dashboard.cutsOff = () => false;
  dataDir = await tempDir();
  file = runnerTokenFile(dataDir);
});

const own = () => ({ url: dashboard.url, token: dashboard.token });
const tokenIn = async () => (await readFile(file, 'utf8')).trim();
const meOf = async (token: string) => {
  const response = await fetch(`${dashboard.url}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  return response.status === 200 ? ((await response.json()) as Me) : response.status;
};
const revoke = async (token: string) => {
  const { credentialId } = (await meOf(token)) as Me;
  await dashboard.request(`/credentials/${credentialId}`, undefined, 'DELETE');
};
const tokens = async () => {
  const { credentials } = await dashboard.request<CredentialList>('/credentials');
  return credentials.filter(({ kind }) => kind === 'token').length;
};

describe('the token of this machine’s runners', () => {
  test('is created at the first start, readable by its owner only, with fewer permissions than the owner’s token', async () => {
    expect(await ensureRunnerToken(file, own())).toBe('made');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(['runner-token']);
    const token = await tokenIn();
    expect(await meOf(token)).toMatchObject({ role: 'runner', scope: { kind: 'everything' }, expiresAt: null });
    const headers = { authorization: `Bearer ${token}` };
    for (const path of ['/sessions', '/inbox', '/credentials', '/stream?topic=fleet']) {
      expect((await fetch(`${dashboard.url}/api/v1${path}`, { headers })).status).toBe(403);
    }
  });

  test('survives later starts, which create no other', async () => {
    await ensureRunnerToken(file, own());
    const [token, count] = [await tokenIn(), await tokens()];
    expect(await ensureRunnerToken(file, own())).toBe('kept');
    expect([await tokenIn(), await tokens()]).toEqual([token, count]);
  });

  test.each([
    ['was revoked', async () => await revoke(await tokenIn())],
    ['belongs to another database', async () => await writeFile(file, `ilt_${'x'.repeat(43)}\n`)],
    ['is empty', async () => await writeFile(file, '')],
  ])('is replaced when the existing one %s', async (_, spoil) => {
    await ensureRunnerToken(file, own());
    const before = await tokenIn();
    await spoil();
    expect(await ensureRunnerToken(file, own())).toBe('made');
    expect(await tokenIn()).not.toBe(before);
    expect(await meOf(await tokenIn())).toMatchObject({ role: 'runner' });
  });

  test('is created once when another server creates it in the same folder meanwhile', async () => {
    const count = async () => {
      const { credentials } = await dashboard.request<CredentialList>('/credentials');
      return credentials.filter(({ kind, revokedAt }) => kind === 'token' && revokedAt === null).length;
    };
    const before = await count();
    const real = globalThis.fetch;
    // Between the other server's request for a token and its response.
    vi.stubGlobal('fetch', async (...args: Parameters<typeof fetch>) => {
      const response = await real(...args);
      if (String(args[0]).endsWith('/tokens')) {
        vi.unstubAllGlobals();
        expect(await ensureRunnerToken(file, own())).toBe('made');
      }
      return response;
    });
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(await ensureRunnerToken(file, own())).toBe('kept');
    expect(await meOf(await tokenIn())).toMatchObject({ role: 'runner' });
    expect(await count()).toBe(before + 1);
  });

  test('remains, and is checked again later, while the server can’t validate it', async () => {
    await ensureRunnerToken(file, own());
    const before = await tokenIn();
    dashboard.cutsOff = (path) => path === '/api/v1/me';
    expect(await ensureRunnerToken(file, own())).toBe('later');
    expect(await tokenIn()).toBe(before);
  });
});

describe('the sign-in lines of the terminal', () => {
  test('print a single-use link and how to get another, never the owner’s token', async () => {
    const lines = await signInLines(own(), true);
    expect(lines).not.toContain(dashboard.token);
    expect(lines).toMatch(
      /\n {2}The link works once, within 5 minutes. Print another with:\n {4}.*npx interlude sign-in$/,
    );
    const link = /Sign in: {2}(\S+)/.exec(lines)?.[1] ?? '';
    const open = () => fetch(link, { redirect: 'manual' });
    expect((await open()).headers.get('set-cookie')).toContain('interlude=ils_');
    expect((await open()).headers.get('set-cookie')).toBe(null);
  });

  test('print the command for a link, without creating a code, when a log would keep them', async () => {
    const requests: string[] = [];
    dashboard.cutsOff = (path) => requests.push(path) < 0;
    expect(await signInLines(own(), false)).toMatch(
      /^ {2}Sign in: {2}get a single-use link with\n {4}.*npx interlude sign-in$/,
    );
    expect(requests).toEqual([]);
  });

  test.each([
    [true, {}, true],
    [true, { INTERLUDE_LOG_FORMAT: 'json' }, false],
    [false, {}, false],
    [undefined, {}, false],
  ])('print a link on a terminal only: isTTY %s, %j', (isTTY, env, expected) => {
    expect(isTerminal({ ...(isTTY !== undefined && { isTTY }) }, env)).toBe(expected);
  });

  test('print what to do when no link can be created', async () => {
    dashboard.cutsOff = (path) => path === '/api/v1/sign-in-codes';
    expect(await signInLines(own(), true)).toMatch(
      /can't create a link now. Once .+, print one with:\n {4}.*npx interlude sign-in$/,
    );
  });
});
