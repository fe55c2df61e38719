import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '@/lib/server/routes';
import { FrameReader } from '../../support/frames';
import { errorOf, ingest, record } from '../../support/ingest-target';
import { type InProcessServer, inProcessServer } from '../../support/server-target';

const BODY = '0123456789abcdefghijABCDEFGHIJ0123456789';
const TOKEN = `gh${'p_'}${BODY}`;
/** Secrets recognized by position only. */
const NAMED = 'w0rds-and-numb3rs-42';

let server: InProcessServer;
let viewer: Record<string, string>;
let operator: Record<string, string>;
const owner = () => ({ authorization: `Bearer ${server.token}` });

beforeAll(async () => {
  server = await inProcessServer(undefined, { INTERLUDE_REDACT_ROLES: 'viewer' });
  viewer = await tokenFor('viewer');
  operator = await tokenFor('operator');
  const events = [
    { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm0', role: 'user', delta: `use ${TOKEN} for it` },
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: `I use ${TOKEN.slice(0, 20)}` },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: `${TOKEN.slice(20)} now` },
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: `{"command":"login ${TOKEN}","pass` },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: `word":"${NAMED}"}` },
    { type: 'TOOL_CALL_RESULT', messageId: 'x1', toolCallId: 'c1', content: `signed in with ${TOKEN}` },
    custom('task:started', { task_id: 'k1', description: `deploy ${TOKEN}` }),
    custom('task:output', { task_id: 'k1', text: `export GH=${TOKEN}\n` }),
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm2', role: 'assistant', subagentRunId: 'k1', delta: `sub ${TOKEN}` },
    custom('request:opened', {
      ...{ request_id: 'q1', kind: 'permission', title: `run ${TOKEN}` },
      input: { apiKey: NAMED, [TOKEN]: true, id: TOKEN },
    }),
    custom('interlude:notice', { text: `a notice of ${TOKEN}` }),
    custom('somebody:s', { id: TOKEN, tokens: [{ runId: TOKEN }] }),
    { type: 'RUN_ERROR', message: `it broke on ${TOKEN}` },
  ];
  await ingest(server, [
    ...events.map((event, index) => record(index + 1, { event })),
    record(events.length + 1, { kind: 'log', log: { level: 'info', component: 'c', message: `said ${TOKEN}` } }),
    record(events.length + 2, { kind: 'status', status: { session_id: 's1', note: TOKEN, password: NAMED } }),
    record(events.length + 3, { kind: 'nothing-known', text: TOKEN }),
  ]);
});
afterAll(() => server.close());

function custom(name: string, value: object) {
  return { type: 'CUSTOM', name, value };
}

async function post(path: string, body: unknown): Promise<Response> {
  return server.send(path, { method: 'POST', headers: owner(), body: JSON.stringify(body) });
}

async function tokenFor(role: string): Promise<Record<string, string>> {
  const { token } = (await (await post('/api/v1/tokens', { role })).json()) as { token: string };
  return { authorization: `Bearer ${token}` };
}

const IDS: Record<string, string> = { sessionId: 's1', agentId: 'a1', taskId: 'k1', requestId: 'q1' };
const pathOf = (pattern: string) => pattern.replace(/:(\w+)/g, (_, name) => IDS[name] ?? 'id');
const READS = ROUTES.filter(({ method, access }) => method === 'GET' && (access === 'read' || access === 'attend'))
  .map(({ pattern }) => pathOf(pattern))
  .filter((path) => path !== '/api/v1/stream');

const hasSecret = (text: string) => text.includes(BODY.slice(0, 9)) || text.includes(NAMED);

describe('a redacted reader', () => {
  test.each(READS)('gets no secret from %s, where others do', async (path) => {
    const mine = await server.send(path, { headers: viewer });
    const all = await server.send(path, { headers: operator });
    const [seen, whole] = [await mine.text(), await all.text()];
    expect(mine.status).toBe(all.status);
    expect(hasSecret(seen)).toBe(false);
    const timeless = (text: string) => text.replace(/"at":\d+/, '');
    expect(timeless(whole)).toBe(timeless(await (await server.send(path, { headers: owner() })).text()));
    if (hasSecret(whole)) expect(seen).toContain('[redacted: ');
  });

  test('gets the number of redactions; others don’t', async () => {
    const [mine, whole] = await Promise.all(
      [viewer, operator].map(async (headers) => {
        const response = await server.send('/api/v1/sessions/s1/transcript', { headers });
        return (await response.json()) as { redacted?: number };
      }),
    );
    expect(mine?.redacted).toBeGreaterThan(6);
    expect(whole).not.toHaveProperty('redacted');
  });

  test('gets every id unchanged, so that it can be requested', async () => {
    const response = await server.send('/api/v1/sessions/s1/transcript', { headers: viewer });
    const { turns } = (await response.json()) as { turns: { id: string; items: { id: string }[] }[] };
    expect(turns.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(expect.arrayContaining(['m1', 'c1', 'q1']));
  });

  test('finds nothing by a redacted secret', async () => {
    for (const [path, isFound] of [
      ['/api/v1/agents/a1/logs?q=', (text: string) => text.includes('said ')],
      ['/api/v1/agents/a1/logs/download?q=', (text: string) => text.includes('said ')],
      ['/api/v1/sessions?q=', (text: string) => text.includes('"id":"s1"')],
      ['/api/v1/inbox?q=', (text: string) => text.includes('"sessionId":"s1"')],
    ] as const) {
      const ask = async (headers: Record<string, string>, q: string) =>
        (await server.send(`${path}${encodeURIComponent(q)}`, { headers })).text();
      expect([path, isFound(await ask(operator, TOKEN.slice(0, 15)))]).toEqual([path, true]);
      expect([path, isFound(await ask(viewer, TOKEN.slice(0, 15)))]).toEqual([path, false]);
    }
  });

  test('gets no secret from a stream, whole or resumed', async () => {
    for (const after of [0, 3, 4, 5, 7, 8]) {
      const topics = 'topic=session:s1&topic=fleet&topic=logs:a1';
      const response = await server.send(`/api/v1/stream?${topics}&after=${after}`, { headers: viewer });
      const reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
      await reader.frame('up-to-date');
      await reader.cancel();
      expect(hasSecret(JSON.stringify(reader.frames))).toBe(false);
      expect(JSON.stringify(reader.frames)).toContain('[redacted: ');
    }
  });

  test('may not open files, which can’t be redacted', async () => {
    const attached = await server.send('/api/v1/sessions/s1/attachments?name=a.txt', {
      method: 'POST',
      headers: { ...owner(), 'content-type': 'text/plain' },
      body: TOKEN,
    });
    const { hash } = (await attached.json()) as { hash: string };
    await post('/api/v1/sessions/s1/messages', { text: 'see', clientId: 'c1', attachments: [{ hash, name: 'a.txt' }] });
    const path = (given: string) => `/api/v1/attachments/${given}?session=s1`;
    expect((await server.send(path(hash), { headers: operator })).status).toBe(200);
    const transcript = await server.send('/api/v1/sessions/s1/transcript', { headers: viewer });
    const given = /"hash":"(\w+)"/.exec(await transcript.text())?.[1] ?? '';
    const refused = await server.send(path(given), { headers: viewer });
    expect([refused.status, (await errorOf(refused)).code]).toEqual([403, 'forbidden']);
  });

  test('may not use AG-UI, and such a request has no effect', async () => {
    const strict = await inProcessServer(undefined, { INTERLUDE_REDACT_ROLES: 'Operator, viewer' });
    try {
      await ingest(strict, [record(1, { event: { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' } })]);
      const made = await strict.send('/api/v1/tokens', {
        method: 'POST',
        headers: { authorization: `Bearer ${strict.token}` },
        body: JSON.stringify({ role: 'operator' }),
      });
      const { token } = (await made.json()) as { token: string };
      const body = { threadId: 's1', runId: 'c1', messages: [{ id: 'u1', role: 'user', content: 'hello' }] };
      const refused = await strict.send('/api/v1/agui/a1?session=s1', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ ...body, tools: [], context: [], state: {}, forwardedProps: {} }),
      });
      expect([refused.status, (await errorOf(refused)).code]).toEqual([403, 'forbidden']);
      expect((await strict.database.reader.execute('SELECT 1 FROM commands')).rows).toEqual([]);
    } finally {
      await strict.close();
    }
  });

  test('is the configured role, not a higher one', async () => {
    for (const [headers, redacts] of [
      [viewer, true],
      [operator, false],
      [owner(), false],
    ] as const) {
      expect(await (await server.send('/api/v1/me', { headers })).json()).toMatchObject({ redacts });
    }
  });
});
