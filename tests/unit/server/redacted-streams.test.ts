import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { OWNER } from '@/lib/server/access/principal';
import { handleRoute } from '@/lib/server/handle-route';
import type { ApiRoute } from '@/lib/server/routes';
import { AccessStage } from '../../support/access-stage';
import type { FrameReader } from '../../support/frames';
import { ingest, record } from '../../support/ingest-target';
import { type InProcessServer, inProcessServer } from '../../support/server-target';

const BODY = '0123456789abcdefghijABCDEFGHIJ0123456789';
const TOKEN = `gh${'p_'}${BODY}`;

let server: InProcessServer;
beforeEach(async () => {
  server = await inProcessServer(undefined, { INTERLUDE_REDACT_ROLES: 'viewer' });
});
afterEach(() => server.close());

async function tokenFor(role: string): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${server.token}` };
  const made = await server.send('/api/v1/tokens', { method: 'POST', headers, body: JSON.stringify({ role }) });
  return { authorization: `Bearer ${((await made.json()) as { token: string }).token}` };
}

const said = (reader: FrameReader) => JSON.stringify(reader.frames);
const hasPart = (text: string) => text.includes(BODY.slice(0, 9)) || text.includes(BODY.slice(-9));

test('a live stream redacts for a redacted reader only', async () => {
  await ingest(server, [record(1, { event: { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' } })]);
  const topics = 'topic=session:s1&topic=fleet&topic=logs:a1';
  const [viewer, operator] = [
    await server.stream(topics, await tokenFor('viewer')),
    await server.stream(topics, await tokenFor('operator')),
  ];
  for (const reader of [viewer, operator]) await reader.frame('up-to-date');
  const text = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1' };
  const batches = [
    [record(2, { event: { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' } })],
    [record(3, { event: { ...text, delta: `I use ${TOKEN.slice(0, 20)}` } })],
    [record(4, { event: { ...text, delta: `${TOKEN.slice(20)} now` } })],
    [record(5, { kind: 'log', log: { level: 'info', component: 'c', message: `said ${TOKEN}` } })],
    [record(6, { event: { type: 'CUSTOM', name: 'task:started', value: { task_id: 'k1', description: TOKEN } } })],
    [record(7, { event: { type: 'CUSTOM', name: 'marker', value: 'the end' } })],
  ];
  for (const batch of batches) await ingest(server, batch);
  for (const reader of [viewer, operator]) await reader.until(() => said(reader).includes('the end'));
  expect([hasPart(said(viewer)), hasPart(said(operator))]).toEqual([false, true]);
  for (const event of ['session-event', 'log', 'task'] as const) {
    const own = viewer.frames.filter((frame) => frame.event === event);
    expect([event, JSON.stringify(own).includes('[redacted: ')]).toEqual([event, true]);
  }
});

test('refuses a redacted reader the response of a route that does not redact', async () => {
  const stage = await AccessStage.start();
  onTestFinished(() => stage.close());
  const route: ApiRoute = {
    ...{ method: 'GET', pattern: '/api/v1/forgetful', access: 'read', accepts: {}, status: 200, action: null },
    handler: async () => new Response(TOKEN),
  };
  const request = new Request('http://127.0.0.1/api/v1/forgetful');
  const ask = (redacts: boolean) => handleRoute(route, request, stage.parts, {}, { ...OWNER, redacts });
  await expect(ask(true)).rejects.toMatchObject({ code: 'forbidden' });
  expect(await (await ask(false)).text()).toBe(TOKEN);
});
