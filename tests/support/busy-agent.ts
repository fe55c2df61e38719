import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { MessageResponse } from '@interlude/protocol/commands';
import type { InboxList } from '@interlude/protocol/inbox';
import type { ParkedList } from '@interlude/protocol/read-models';
import { API_BASE } from '@interlude/protocol/version';
import type { Method } from '@/lib/server/routes';
import type { AccessStage, Headers, RequestOptions } from './access-stage';
import type { LiveServer } from './live-server';

/** Ids of one row of every kind that an agent has. */
export interface BusyAgent {
  agentId: string;
  sessionId: string;
  taskId: string;
  requestId: string;
  messageId: string;
  commandId: string;
  hash: string;
  position: string;
  inboxId: string;
}

const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });

/** Creates an agent with one row of every kind. All ids end in `-<letter>`. */
export async function busyAgent(stage: Pick<AccessStage, 'ask'>, letter: string): Promise<BusyAgent> {
  const id = (what: string) => `${what}-${letter}`;
  const [agentId, sessionId, taskId, requestId, messageId] = [
    id('agent'),
    id('session'),
    id('task'),
    id('request'),
    id('question'),
  ];
  const events: AgUiEvent[] = [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Ada' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: `The words of ${letter}` },
    { type: 'TEXT_MESSAGE_END', messageId },
    { type: 'RUN_STARTED', threadId: sessionId, runId: id('run') },
    custom('task:started', { task_id: taskId, description: `The task of ${letter}` }),
    custom('task:output', { task_id: taskId, offset: 0, text: `The output of ${letter}` }),
    custom('request:opened', {
      request_id: requestId,
      kind: 'permission',
      tool_name: 'Bash',
      input: { command: 'ls' },
    }),
  ];
  const records: object[] = [
    { kind: 'status', sessionId, status: { kind: 'claude', attachments: ['image', 'text'] } },
    // with more than one session, a task that none has started has no owner
    ...['other', 'third'].map((what) => ({ kind: 'status', sessionId: id(what), status: {} })),
    ...events.map((event) => ({ kind: 'event', sessionId, event })),
    { kind: 'log', log: { level: 'warn', component: id('component'), message: `The log of ${letter}` } },
    { kind: 'lost', sessionId, lost: { count: 2, reason: 'outbox-full' } },
    { kind: 'event', sessionId, event: custom('task:completed', { task_id: id('stray'), status: 'completed' }) },
    { kind: 'novelty', sessionId },
  ];
  await stage.ask('/events', {
    method: 'POST',
    body: {
      producer: { id: `${agentId}/outbox`, epoch: 1 },
      records: records.map((record, index) => ({
        ...record,
        seq: index + 1,
        agentId,
        occurredAt: 1_795_170_000_000 + index,
      })),
    },
  });
  const { hash } = await stage.ask<{ hash: string }>(`/sessions/${sessionId}/attachments?name=a.txt`, {
    method: 'POST',
    body: new TextEncoder().encode(`The file of ${letter}`),
    headers: { 'content-type': 'text/plain' },
  });
  const { messageId: commandId } = await stage.ask<MessageResponse>(`/sessions/${sessionId}/messages`, {
    method: 'POST',
    body: { text: `To ${letter}`, clientId: id('client') },
  });
  const parked = await stage.ask<ParkedList>(`/agents/${agentId}/parked`);
  const inbox = await stage.ask<InboxList>(`/inbox?agent=${agentId}`);
  const [position, inboxId] = [parked.records[0]?.position, inbox.items[0]?.id];
  if (position === undefined || inboxId === undefined)
    throw new Error('the agent has no parked record or no inbox item');
  return { agentId, sessionId, taskId, requestId, messageId, commandId, hash, position, inboxId };
}

/** The same shape with ids that don't exist. */
export function missingIds(): BusyAgent {
  const ids = { agentId: 'agent-x', sessionId: 'session-x', taskId: 'task-x', requestId: 'request-x' };
  const commandId = '00000000-0000-4000-8000-000000000000';
  return {
    ...ids,
    messageId: 'question-x',
    commandId,
    hash: '0'.repeat(64),
    position: '1',
    inboxId: 'failure.session-x',
  };
}

/** Requests a live server's API as its owner. @throws Error unless the response is 2xx */
export async function requestLive<Model>(
  server: Pick<LiveServer, 'url' | 'token'>,
  path: string,
  { method = 'GET', body, headers = {} }: RequestOptions = {},
): Promise<Model> {
  const isRaw = body === undefined || body instanceof Uint8Array;
  const type: Headers = isRaw ? {} : { 'content-type': 'application/json' };
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${server.token}`, ...type, ...headers },
    body: isRaw ? (body as Uint8Array<ArrayBuffer> | undefined) : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Model;
}

/** Origin allowed to embed the tested servers. */
export const CONSOLE = 'https://console.example.com';
/** Cron and metrics secrets of the tested servers. */
export const CRON_SECRET = 'the-timer-of-this-test-0123456789';
export const METRICS_TOKEN = 'the-monitor-of-this-test-0123456789';

/** A query and body that the route accepts as valid. */
export function validRequest(method: Method, pattern: string, ids: BusyAgent): { query: string; body?: unknown } {
  const path = pattern.slice(API_BASE.length);
  const bodies: Record<string, unknown> = {
    'POST /sessions/:sessionId/messages': { text: 'Hello', clientId: crypto.randomUUID() },
    'POST /sessions/:sessionId/attachments': new TextEncoder().encode('words'),
    'PUT /sessions/:sessionId/wake-rule': { when: 'never' },
    'POST /sessions/:sessionId/requests/:requestId': { behavior: 'deny' },
    'PUT /agents/:agentId/log-level': { level: 'info' },
    'POST /inbox/marks': { ids: [ids.inboxId], mark: 'unseen' },
    'PUT /sessions/:sessionId/arrangement': { pinned: true },
    'POST /sessions/:sessionId/obligations/:messageId/accept': { candidateId: 'c' },
    'PUT /agents/:agentId/retirement': { retired: false },
    'POST /agents/:agentId/insights/seen': { upTo: '1' },
    'POST /agents/:agentId/parked/:position/assign': { sessionId: ids.sessionId },
    'POST /agents/:agentId/commands/:commandId/ack': { state: 'delivered' },
    'POST /agui/:agentId': { threadId: ids.sessionId, runId: 'r', messages: [] },
    'POST /agui/:agentId/connect': { threadId: ids.sessionId, runId: 'r', messages: [] },
    'POST /tokens': { role: 'viewer' },
    'POST /embed-tokens': { fleet: true, parentOrigin: CONSOLE },
    'PUT /members/:memberId': { blocked: true },
    'POST /events': {
      producer: { id: `${ids.agentId}/matrix`, epoch: 1 },
      records: [{ seq: 1, kind: 'status', agentId: ids.agentId, occurredAt: 1, status: {} }],
    },
  };
  const queries: Record<string, string> = {
    '/stream': '?topic=fleet',
    '/sessions/:sessionId/turn-at': '?at=1',
    '/sessions/:sessionId/attachments': '?name=a.txt',
    '/attachments/:hash': `?session=${ids.sessionId}`,
    '/agents/:agentId/commands': `?runner=r&startedAt=1`,
  };
  const key = `${method} ${path}`;
  return { query: queries[path] ?? '', ...(method === 'GET' || method === 'HEAD' ? {} : { body: bodies[key] ?? {} }) };
}

/** Fills in a route's path parameters. */
export function pathFor(pattern: string, ids: BusyAgent): string {
  return pattern.replace(/:(\w+)/g, (_, name) => encodeURIComponent(ids[name as keyof BusyAgent] ?? 'some-id'));
}

/** A secret with a known format. */
export const SECRET = `gh${'p_'}0123456789abcdefghijABCDEFGHIJ0123456789`;
/** A secret detectable only by its field name. */
export const PLACED_SECRET = 'Zk4vq.Tr7wLx';

export const CANARY = /canary-[a-z]+-[a-z]\b/;

/** Writes a unique mark and two secrets into each part of an agent, such as `canary-words-a` in agent A's messages. */
export async function plantCanaries(
  stage: Pick<AccessStage, 'ask'>,
  { agentId, sessionId, taskId }: BusyAgent,
): Promise<void> {
  const letter = agentId.slice(-1);
  const mark = (what: string) => `canary-${what}-${letter} ${SECRET} DB_PASS=${PLACED_SECRET}`;
  const [messageId, toolCallId] = [`said-${letter}`, `call-${letter}`];
  const custom = (name: string, value: object) => ({ type: 'CUSTOM', name, value });
  const says = (session: string, id: string, what: string) =>
    [
      { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: mark(what) },
      { type: 'TEXT_MESSAGE_END', messageId: id },
    ].map((event) => ({ kind: 'event', sessionId: session, event }));
  const records = [
    ...says(sessionId, messageId, 'words'),
    ...says(`other-${letter}`, `other-said-${letter}`, 'elsewhere'),
    ...[
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: `canary-tool-${letter}`, parentMessageId: messageId },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify({ command: mark('arguments') }) },
      { type: 'TOOL_CALL_END', toolCallId },
      { type: 'TOOL_CALL_RESULT', messageId: `result-${letter}`, toolCallId, content: mark('result') },
      custom('task:output', { task_id: taskId, offset: 100, text: mark('output') }),
      custom('task:started', { task_id: `second-${letter}`, description: mark('task') }),
      custom('request:opened', {
        request_id: `asks-${letter}`,
        kind: 'permission',
        tool_name: 'Bash',
        input: { command: mark('input') },
      }),
    ].map((event) => ({ kind: 'event', sessionId, event })),
    { kind: 'log', log: { level: 'error', component: `canary-component-${letter}`, message: mark('line') } },
  ].map((record, index) => ({ ...record, agentId, seq: index + 1, occurredAt: 1_795_170_001_000 + index }));
  await stage.ask('/events', { method: 'POST', body: { producer: { id: `${agentId}/canaries`, epoch: 1 }, records } });
  await stage.ask(`/sessions/${sessionId}/arrangement`, { method: 'PUT', body: { name: mark('title') } });
}
