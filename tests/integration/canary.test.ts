import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NewToken, SignInCode } from '@interlude/protocol/access';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '@/lib/server/routes';
import { type CliEnd, startCli } from '../support/cli';
import { type LiveServer, startLiveServer } from '../support/live-server';

const recording = fileURLToPath(new URL('../../lib/runner/cli/demo/recordings/test-run.jsonl', import.meta.url));
const AGENT = 'canary-agent';

/** Where a secret may be by design. */
const TOKEN_FILES = /(^|\/)(token|runner-token)$/;

/** A raw response. */
interface Exchange {
  asked: string;
  /** The requested address, which a history or log may keep. */
  url: string;
  status: number;
  text: string;
}

/**
 * A dashboard, a runner and a browser, each with its own secret. After all are used, each secret is only where it
 * belongs.
 */
let server: LiveServer;
const secrets: Record<string, string> = { 'the owner’s token': 'canary-owner-0a1b2c3d4e5f6g7h' };
const exchanges: Exchange[] = [];
/** The command lines of all processes of this machine, sampled repeatedly. */
const commandLines = new Set<string>();
let replayed: CliEnd;

function lookAtProcesses(): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      commandLines.add(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '));
    } catch {
      // The process has ended.
    }
  }
}

async function ask(path: string, init: RequestInit = {}, asked = path): Promise<Response> {
  const url = `${server.url}${path}`;
  const response = await fetch(url, { redirect: 'manual', ...init });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  const body = isStream ? '' : await response.clone().text();
  if (isStream) await response.body?.cancel();
  const head = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
  exchanges.push({ asked, url, status: response.status, text: `${head}\n\n${body}` });
  return response;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function make<Model>(path: string, body: object): Promise<Model> {
  const headers = { ...bearer(secrets['the owner’s token'] ?? ''), 'content-type': 'application/json' };
  const response = await fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Model;
}

beforeAll(async () => {
  server = await startLiveServer({ token: secrets['the owner’s token'] ?? '' });
  // Each of these responses contains the secret by design, and is excluded once.
  secrets['a runner’s token'] = (await make<NewToken>('/tokens', { agent: AGENT })).token;
  secrets['a token that was revoked'] = (await make<NewToken>('/tokens', { role: 'viewer' })).token;
  const { code } = await make<SignInCode>('/sign-in-codes', {});
  secrets['a code'] = code;
  secrets['a wrong token'] = 'canary-guess-0a1b2c3d4e5f6g7h';

  const replay = startCli(['replay', recording, '--url', server.url, '--agent', AGENT, '--speed', 'max'], {
    INTERLUDE_TOKEN: secrets['a runner’s token'],
    INTERLUDE_DATA_DIR: server.dataDir,
  });
  const watch = setInterval(lookAtProcesses, 50);
  replayed = await replay.ended;
  clearInterval(watch);

  // The link, opened once, then again as found in a history.
  const entered = await fetch(`${server.url}/sign-in?token=${code}&next=/inbox`, { redirect: 'manual' });
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
  secrets['a sign-in'] = cookie.replace(/^.*?=/, '');
  expect([entered.status, entered.headers.get('location')]).toEqual([303, '/inbox']);
  const page = { cookie, 'sec-fetch-site': 'same-origin' };

  await use(page);
  await use(bearer(secrets['the owner’s token'] ?? ''));
  await use(bearer(secrets['a runner’s token'] ?? ''));
  const { credentials } = (await (
    await ask('/api/v1/credentials', { headers: bearer(secrets['the owner’s token'] ?? '') })
  ).json()) as { credentials: { id: string; role: string }[] };
  const viewer = credentials.find(({ role }) => role === 'viewer')?.id;
  await ask(`/api/v1/credentials/${viewer}`, { method: 'DELETE', headers: bearer(secrets['the owner’s token'] ?? '') });
  for (const name of ['a token that was revoked', 'a wrong token', 'a code', 'a sign-in']) {
    await use(bearer(secrets[name] ?? ''));
    await ask('/sign-in', { method: 'POST', body: new URLSearchParams({ token: secrets[name] ?? '' }) });
  }
  for (const path of ['/', '/sessions', '/inbox', '/agents', `/agents/${AGENT}/logs`, '/settings', '/nothing']) {
    for (const headers of [page, { cookie: `${cookie}x` }, {}] as Record<string, string>[])
      await ask(path, { headers });
  }
  await ask('/sign-out', { method: 'POST', headers: page });
  lookAtProcesses();
});
afterAll(() => server?.stop());

/** Every harmless request, and a refused one. */
async function use(headers: Record<string, string>): Promise<void> {
  const [session] = (
    await fetch(`${server.url}/api/v1/sessions`, { headers: bearer(server.token) }).then((response) => response.json())
  ).sessions as { id: string }[];
  const ids: Record<string, string> = { agentId: AGENT, sessionId: session?.id ?? 'none' };
  for (const { method, pattern } of ROUTES) {
    if (pattern.startsWith('/sign-') || /\/(tokens|sign-in-codes|embed-tokens)$/.test(pattern)) continue;
    const path = pattern.replace(/:(\w+)/g, (_, name) => encodeURIComponent(ids[name] ?? 'none'));
    const query = pattern.endsWith('/stream') ? '?topic=fleet&after=0' : pattern.endsWith('/turn-at') ? '?at=1' : '';
    const isRead = method === 'GET' || method === 'HEAD';
    // A malformed message.
    const sent = isRead ? {} : { body: '{"text":1', headers: { ...headers, 'content-type': 'application/json' } };
    if (isRead || pattern.endsWith('/messages')) {
      await ask(path + query, { method, headers, ...sent }, `${method} ${pattern}`);
    }
  }
}

/** Where a secret was found, without the secret. */
function found(text: string, where: string): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => {
    const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64').replace(/=+$/, '')];
    return forms.some((form) => form.length > 8 && text.includes(form)) ? [`${name} in ${where}`] : [];
  });
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

test('the runner’s own token permits every request of a runner', () => {
  expect([replayed.exitCode, replayed.stderr]).toEqual([0, '']);
});

test('there were responses, files and command lines to search', () => {
  for (const [name, secret] of Object.entries(secrets)) expect([name, secret.length > 20]).toEqual([name, true]);
  expect(new Set(Object.values(secrets)).size).toBe(Object.keys(secrets).length);
  expect(exchanges.filter(({ status }) => status === 200).length).toBeGreaterThan(40);
  expect(exchanges.filter(({ status }) => status === 401).length).toBeGreaterThan(40);
  expect([...commandLines].some((line) => line.includes('replay') && line.includes(AGENT))).toBe(true);
});

describe('secrets', () => {
  test('no secret appears in the arguments of any process', () => {
    expect([...commandLines].flatMap((line) => found(line, line.slice(0, 60)))).toEqual([]);
  });

  test('no secret appears in the headers, body or location of any response', () => {
    expect(exchanges.flatMap(({ asked, text }) => found(text, asked))).toEqual([]);
  });

  test('no secret appears in any address, except that of the spent sign-in link', () => {
    expect(exchanges.flatMap(({ asked, url }) => found(url, asked))).toEqual([]);
  });

  test('no secret appears in the output of the command line', () => {
    expect(found(replayed.stdout + replayed.stderr, 'the output')).toEqual([]);
  });

  test('no secret appears in any file of the data folder, except those that hold it', async () => {
    const files = (await filesBelow(server.dataDir)).filter((file) => !TOKEN_FILES.test(file));
    expect(files.some((file) => file.endsWith('interlude.db'))).toBe(true);
    expect(files.some((file) => file.endsWith('-wal'))).toBe(true);
    for (const file of files) {
      const bytes = await readFile(file, 'latin1').catch(() => '');
      expect(found(bytes, file.slice(server.dataDir.length))).toEqual([]);
    }
  });

  test('no secret appears in the server’s output', () => {
    expect(found(server.output, 'the output')).toEqual([]);
  });
});

test('a used code is worthless wherever it is found', async () => {
  const response = await fetch(`${server.url}/sign-in?token=${secrets['a code']}`, { redirect: 'manual' });
  expect([response.status, response.headers.get('location'), response.headers.get('set-cookie')]).toEqual([
    303,
    '/signed-out?reason=old-link',
    null,
  ]);
});

test('the cookie of a signed-out browser is worthless', async () => {
  const headers = { cookie: `interlude=${secrets['a sign-in']}`, 'sec-fetch-site': 'same-origin' };
  expect((await fetch(`${server.url}/api/v1/me`, { headers })).status).toBe(401);
});
