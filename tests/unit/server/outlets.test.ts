import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { InboxList } from '@interlude/protocol/inbox';
import { OUTLETS, type Outlet, redactedMetrics } from '@interlude/protocol/redaction/redact-model';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { currentNotices, NO_NOTICES, noticeText } from '@/components/inbox/notices';
import { WebhookSender } from '@/lib/server/webhook/webhook-sender';
import { AccessStage } from '../../support/access-stage';
import { TraceCollector } from '../../support/trace-collector';

/** A canary recognized by shape, which may also be part of an id, and one recognized by position. */
const SHAPED = '0123456789abcdefghijABCDEFGHIJ0123456789';
const CANARY = `gh${'p_'}${SHAPED}`;
const PLACED = 'Zk4vq.Tr7wLx';
const SAID = `run ${CANARY} with DB_PASS=${PLACED} and curl -u mara:${PLACED} x`;

let stage: AccessStage;
let collector: TraceCollector;
let receiver: Server;
const called: string[] = [];
const logged: string[] = [];

beforeAll(async () => {
  vi.spyOn(console, 'error').mockImplementation((...line) => void logged.push(line.map(String).join(' ')));
  collector = await TraceCollector.start();
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      called.push(`${Buffer.concat(chunks)} ${request.url} ${JSON.stringify(request.headers)}`);
      response.end('ok');
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  stage = await AccessStage.start({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '1',
      INTERLUDE_TRACE_AGENTS: '1',
      INTERLUDE_WEBHOOK_URL: `http://127.0.0.1:${port}/hook`,
      INTERLUDE_PUBLIC_URL: 'https://interlude.example/',
      INTERLUDE_METRICS_TOKEN: 'a-token-for-metrics-0123456789',
    },
  });
  await sender().send();
  await plant();
  await sender().send();
  await sender(60_000).send();
});
afterAll(async () => {
  await stage.close();
  await collector.close();
  receiver.close();
  vi.restoreAllMocks();
});

/** @param aheadMs items are sent after a short delay */
function sender(aheadMs = 0): WebhookSender {
  return new WebhookSender({ ...stage.parts, now: () => stage.parts.now() + aheadMs });
}

/** Plants canaries in every field that runners or people fill in. */
async function plant(): Promise<void> {
  const custom = (name: string, value: object) => ({ type: 'CUSTOM', name, value });
  const events = [
    { type: 'RUN_STARTED', threadId: CANARY, runId: CANARY },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', role: 'assistant', delta: SAID },
    { type: 'TOOL_CALL_START', toolCallId: CANARY, toolCallName: `tool ${CANARY}` },
    { type: 'TOOL_CALL_ARGS', toolCallId: CANARY, delta: JSON.stringify({ command: SAID }) },
    { type: 'TOOL_CALL_END', toolCallId: CANARY },
    custom('task:started', { task_id: CANARY, description: SAID, tool_use_id: CANARY, task_type: SAID }),
    custom('task:completed', { task_id: CANARY, status: 'failed', summary: SAID }),
    custom('request:opened', { request_id: CANARY, kind: 'permission', title: SAID, tool_name: SAID, input: { SAID } }),
    custom('interlude:notice', { tone: 'error', text: SAID }),
    { type: 'RUN_ERROR', message: SAID, code: `code ${CANARY}` },
  ];
  const bodies = [
    ...events.map((event) => ({ kind: 'event', event })),
    { kind: 'log', log: { level: 'error', component: SAID, message: SAID } },
    { kind: 'status', status: { session_id: CANARY, note: SAID, password: PLACED } },
    { kind: 'nothing-known', text: SAID },
  ];
  const occurredAt = Date.now() - 60_000;
  const records = bodies.map((record, index) => ({
    ...record,
    agentId: `agent-${CANARY}`,
    sessionId: CANARY,
    occurredAt: occurredAt + index,
    seq: index + 1,
  }));
  const producer = { id: `${CANARY}/outbox`, epoch: 1 };
  await stage.ask('/events', { method: 'POST', body: { producer, records } });
  await stage.ask('/tokens', { method: 'POST', body: { role: 'viewer', name: `DB_PASS=${PLACED}` } });
  await stage.send(`/api/v1/${CANARY}`);
}

/** Output of each outlet. An outlet without an entry does not compile. */
const READ: Record<Outlet, () => Promise<string>> = {
  webhook: async () => called.join('\n'),
  traces: async () => {
    await collector.named('invoke_agent agent-[redacted: github-token]', 'execute_tool tool [redacted: github-token]');
    return collector.bodies.join('\n');
  },
  metrics: async () => (await stage.send('/metrics')).text(),
  'server-log': async () => {
    serverLog('error', `Not stored: ${SAID}`, { error: new Error(SAID, { cause: new Error(CANARY) }) });
    vi.stubEnv('INTERLUDE_LOG_FORMAT', 'json');
    serverLog('error', 'Not stored:', { error: new Error(SAID), note: SAID });
    vi.unstubAllEnvs();
    return logged.join('\n');
  },
  'desktop-notice': async () => {
    const { items } = await stage.ask<InboxList>('/inbox');
    const notices = currentNotices({ items, sessions: [] }, { ...NO_NOTICES, isOn: true }, Date.now() + 60_000);
    const shown = await Promise.all(notices.map((notice) => noticeText(notice)));
    return shown.map(({ title, body }) => `${title}\n${body}`).join('\n');
  },
};

it.each(OUTLETS)('%s contains no secret', async (outlet) => {
  const text = await READ[outlet]();
  expect(text.length).toBeGreaterThan(100);
  expect([text.includes(SHAPED.slice(0, 9)), text.includes(PLACED)]).toEqual([false, false]);
  if (outlet !== 'metrics') expect(text).toContain('[redacted: ');
});

it('a metric redacts a secret in a label and keeps its other values', async () => {
  const metrics = (path: string) => `# HELP a Words.\na{path="${path}",le="0.5",said="a \\"b\\""} 1\na 2\n`;
  expect(await redactedMetrics(metrics(`/x/${CANARY}`), () => null)).toBe(metrics('/x/[redacted: github-token]'));
  const key = `-----BEGIN ${['PRIVATE', 'KEY'].join(' ')}-----`;
  expect(await redactedMetrics(metrics(key), () => null)).toBe(metrics('[redacted: private-key]'));
});

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const FILES = ['lib', 'db', 'app', 'components'].flatMap((folder) =>
  readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(tsx?|mjs)$/.test(path))
    .map((path) => ({ path: `${folder}/${path}`, text: readFileSync(`${ROOT}/${folder}/${path}`, 'utf8') })),
);

it('no other server file posts to another service', () => {
  const fetching = FILES.filter(({ text }) => /(?<![.\w])(?:f|abortableF)etch\(/.test(text)).map(({ path }) => path);
  // the runner posts to the server; launcher and pages call the server; the database has requests of its own
  const own = /^(?:lib\/(?:runner|conformance|launch)|components|db)\//;
  expect(fetching.filter((path) => !own.test(path))).toEqual([
    'lib/protocol/abortable-fetch.ts',
    'lib/server/post-redacted.ts',
  ]);
});

it('pages load the redaction rules on demand, not in their bundle', () => {
  const pages = FILES.filter(({ path }) => /^(?:app|components)\//.test(path));
  expect(pages.filter(({ text }) => /from ['"]@\/lib\/redaction/.test(text))).toEqual([]);
});
