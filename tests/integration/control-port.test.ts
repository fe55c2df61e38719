import { stat } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { controlPath, readControlFile, writeControlFile } from '@interlude/runner/host/control-file';
import { type ControlHandlers, ControlPort, NOT_FOLLOWED } from '@interlude/runner/host/control-port';
import { LevelSwitch } from '@interlude/runner/logger/level-switch';
import type { SessionTools } from '@interlude/runner/mcp/agent-tools';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../support/temp-dir';

let file: string;
let port: ControlPort;
let calls: unknown[][];
let failures: string[];
const PENDING = [{ messageId: 'm1', sessionId: 's1', from: { kind: 'person', id: 'mara' }, text: 'Done?', sentAt: 1 }];

beforeEach(async () => {
  file = controlPath(await tempDir(), 'agent/1');
  calls = [];
  failures = [];
  const recordCall =
    (name: string) =>
    (...about: unknown[]) =>
      void calls.push([name, ...about]);
  const handlers: ControlHandlers = {
    hook: ({ event, input, pid }) => {
      if (event === 'Stumble') throw new Error('a handler failed');
      calls.push(['hook', event, input, pid]);
      return event === 'Stop' ? '{"decision":"block"}' : '';
    },
    status: recordCall('status'),
    obligations: () => PENDING,
    sessionTurn: recordCall('session-turn'),
    userPrompt: recordCall('user-prompt'),
    sessionEnd: recordCall('session-end'),
    hookFatal: recordCall('hook-fatal'),
    logLevel: new LevelSwitch('info'),
    toolOwner: async (caller) =>
      caller.ticketOf === null ? { at: null, refusal: NOT_FOLLOWED } : { at: 0, tools: toolsOf(caller.ticketOf) },
    sessionOf: (ticket) => (ticket === 'of-s1' ? 's1' : null),
  };
  port = await ControlPort.open({ file, handlers, onError: (message) => failures.push(message) });
  onTestFinished(() => port.close());
});

const toolsOf = (sessionId: string): SessionTools => ({
  report: async (report) => void calls.push(['report', sessionId, report]),
  obligations: () => [],
  reply: async () => null,
});

async function call(path: string, { method = 'GET', body, secret = port.secret as string | null } = {} as Call) {
  const response = await fetch(port.url + path, {
    method,
    headers: secret === null ? {} : { authorization: `Bearer ${secret}` },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text };
}

interface Call {
  method?: string;
  body?: unknown;
  secret?: string | null;
}

describe('the control port', () => {
  test('listens on loopback, and stores its address and secret readable by its owner only', async () => {
    expect(port.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await readControlFile(file)).toEqual({ url: port.url, secret: port.secret, pid: process.pid });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(port.secret).toMatch(/^[\w-]{43}$/);
  });

  test.each([null, '', 'wrong', 'wrong'.repeat(100)])(
    'refuses every request without its secret (%j)',
    async (secret) => {
      for (const path of ['/reply-obligations', '/log-level', '/nowhere']) {
        expect((await call(path, { secret })).status).toBe(401);
      }
      expect((await call('/hook-fatal', { method: 'POST', body: { hook: 'x', error: 'y' }, secret })).status).toBe(401);
      expect(calls).toEqual([]);
    },
  );

  test('opens the tools of one session, and nothing else, with its ticket', async () => {
    const input = { state: 'idle', summary: 'I wait.' };
    const report = { method: 'POST', body: input, secret: 'of-s1' };
    expect(await call('/tools/report_status?pid=1', report)).toMatchObject({ status: 200, body: { isError: false } });
    expect(calls).toEqual([['report', 's1', { ...input, link: null }]]);
    const others = [
      '/reply-obligations',
      '/log-level',
      '/hooks/Stop',
      '/user-prompt',
      '/wait?id=x&within=1',
      '/nowhere',
    ];
    for (const path of others) {
      const { status, body } = await call(path, { method: path === '/log-level' ? 'GET' : 'POST', secret: 'of-s1' });
      expect([path, status, body]).toEqual([
        path,
        403,
        { error: 'a ticket is valid for the tools of its session only' },
      ]);
    }
    expect(calls).toHaveLength(1);
  });

  test('refuses an unknown host name', async () => {
    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'rebound.example', authorization: `Bearer ${port.secret}` };
      httpRequest(`${port.url}/log-level`, { headers }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(421);
  });

  test('refuses an oversized body, and keeps serving', async () => {
    expect((await call('/user-prompt', { method: 'POST', body: 'x'.repeat(5 * 1024 * 1024) })).status).toBe(413);
    expect(calls).toEqual([]);
    expect((await call('/log-level')).status).toBe(200);
  });

  test('answers 500 when a handler fails, logs it, and keeps serving', async () => {
    expect((await call('/hooks/Stumble', { method: 'POST', body: {} })).status).toBe(500);
    expect(failures[0]).toContain('a handler failed');
    expect((await call('/log-level')).status).toBe(200);
  });

  test('accepts each route with its method only', async () => {
    expect((await call('/nowhere')).status).toBe(404);
    expect((await call('/status')).status).toBe(405);
    expect((await call('/reply-obligations', { method: 'POST', body: {} })).status).toBe(405);
    expect((await call('/hooks/Stop')).status).toBe(404);
  });

  test('dispatches a hook and returns its output', async () => {
    expect(await call('/hooks/Stop?pid=4711', { method: 'POST', body: { session_id: 's1' } })).toEqual({
      status: 200,
      body: { decision: 'block' },
    });
    expect(await call('/hooks/Notification?pid=no', { method: 'POST', body: 'no JSON' })).toEqual({
      status: 200,
      body: '',
    });
    expect(calls).toEqual([
      ['hook', 'Stop', { session_id: 's1' }, 4711],
      ['hook', 'Notification', {}, null],
    ]);
  });

  test('returns pending replies from memory', async () => {
    expect(await call('/reply-obligations')).toEqual({ status: 200, body: PENDING });
  });

  test('accepts the agent’s report about itself', async () => {
    const about = { session_id: 's1' };
    await call('/status?state=idle&at=1795170167743', { method: 'POST', body: about });
    await call('/status', { method: 'POST', body: { state: 'busy', ...about } });
    expect((await call('/status', { method: 'POST', body: about })).status).toBe(400);
    await call('/session-turn', { method: 'POST', body: about });
    await call('/user-prompt', { method: 'POST', body: about });
    await call('/session-end', { method: 'POST', body: about });
    expect(calls).toEqual([
      ['status', 'idle', about, 1_795_170_167_743],
      ['status', 'busy', { state: 'busy', ...about }, null],
      ['session-turn', about],
      ['user-prompt', about],
      ['session-end', about],
    ]);
  });

  test('accepts the death of a hook without the secret', async () => {
    expect(await call('/hook-fatal', { method: 'POST', body: { hook: 'Stop', error: 'exit 1: x' } })).toEqual({
      status: 200,
      body: { ok: true },
    });
    expect((await call('/hook-fatal?hook=Stop&error=exit%202:%20ask', { method: 'POST', body: '' })).body).toEqual({
      ok: true,
    });
    expect((await call('/hook-fatal', { method: 'POST', body: 'nonsense' })).body).toEqual({ ok: true });
    expect(calls.map(([, failure]) => failure)).toEqual([
      { hook: 'Stop', error: 'exit 1: x' },
      { hook: 'Stop', error: 'exit 2: ask' },
      { hook: 'unknown', error: '(no detail)' },
    ]);
  });

  test('reads and sets the log level', async () => {
    const levels = ['debug', 'info', 'warn', 'error', 'fatal'];
    expect((await call('/log-level')).body).toEqual({ level: 'info', levels });
    expect((await call('/log-level', { method: 'POST', body: { level: 'debug' } })).body).toEqual({
      ok: true,
      level: 'debug',
      previous: 'info',
    });
    expect((await call('/log-level')).body).toEqual({ level: 'debug', levels });
    expect(await call('/log-level', { method: 'POST', body: { level: 'loud' } })).toEqual({
      status: 400,
      body: { error: 'level must be one of: debug, info, warn, error, fatal' },
    });
  });

  test('removes its file, but not that of a newer one', async () => {
    await port.close();
    expect(await readControlFile(file)).toBeNull();
    await writeControlFile(file, { url: 'http://127.0.0.1:1', secret: 'newer', pid: 1 });
    await port.close().catch(() => undefined);
    expect(await readControlFile(file)).toMatchObject({ secret: 'newer' });
  });
});

test('two agents never share a control file', () => {
  expect(controlPath('/data', 'a/b')).not.toBe(controlPath('/data', 'a_b'));
  expect(controlPath('/data', 'hooks')).toBe(join('/data', 'control', 'hooks.control'));
});
