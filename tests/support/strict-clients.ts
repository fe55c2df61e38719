import { HttpAgent as HttpAgent1 } from '@ag-ui/client';
import { HttpAgent as HttpAgent0059 } from 'ag-ui-client-0059';
import type { ClientEvent, Dialect } from '@/lib/server/agui/client-events';

/** Strict clients by dialect. */
const CLIENTS = { '1.0': HttpAgent1, '0.0.59': HttpAgent0059 } as const;

/** The API shared by both clients. */
export interface StrictClient {
  messages: { id: string; role: string; content?: unknown; [field: string]: unknown }[];
  threadId: string;
  pendingInterrupts: { id: string; [field: string]: unknown }[];
  isRunning: boolean;
  addMessage(message: unknown): void;
  setMessages(messages: unknown[]): void;
  runAgent(parameters?: object, subscriber?: object): Promise<unknown>;
}

export function strictClient(
  dialect: Dialect,
  options: { url: string; token?: string; threadId?: string; fetch?: typeof fetch },
): StrictClient {
  const { url, token, threadId, fetch: fetches } = options;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const config = { url, headers, threadId, ...(fetches === undefined ? {} : { fetch: fetches }) };
  return new CLIENTS[dialect](config as never) as unknown as StrictClient;
}

/** Runs a stream through a client. @returns the reason for rejection, or null */
export async function rejectionBy(events: readonly ClientEvent[], dialect: Dialect): Promise<string | null> {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  const client = strictClient(dialect, {
    url: 'http://127.0.0.1:9/',
    threadId: 't',
    fetch: async () => new Response(body, { headers }),
  });
  return client.runAgent({ runId: 'r1' }).then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

/** Event streams with recorded client verdicts in `tests/fixtures/agui`, under the same names. */
const start = (runId = 'r1'): ClientEvent => ({ type: 'RUN_STARTED', threadId: 't', runId });
const end = (more: object = {}, runId = 'r1'): ClientEvent => ({ type: 'RUN_FINISHED', threadId: 't', runId, ...more });
const error: ClientEvent = { type: 'RUN_ERROR', message: 'no' };
const custom: ClientEvent = { type: 'CUSTOM', name: 'n', value: 1 };
const opens = (messageId = 'm1', more: object = {}): ClientEvent => ({
  type: 'TEXT_MESSAGE_START',
  messageId,
  role: 'assistant',
  ...more,
});
const content = (delta: string, messageId = 'm1'): ClientEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta });
const closes = (messageId = 'm1'): ClientEvent => ({ type: 'TEXT_MESSAGE_END', messageId });
const text = (delta: string, messageId = 'm1', more: object = {}) => [
  opens(messageId, more),
  content(delta, messageId),
  closes(messageId),
];
const call: ClientEvent = { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'bash' };
const args: ClientEvent = { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' };
const called: ClientEvent = { type: 'TOOL_CALL_END', toolCallId: 'c1' };
const result: ClientEvent = { type: 'TOOL_CALL_RESULT', messageId: 'x1', toolCallId: 'c1', content: 'ok' };
const thinks = (role: string): ClientEvent[] => [
  { type: 'REASONING_START', messageId: 'g1' },
  { type: 'REASONING_MESSAGE_START', messageId: 'g1', role },
  { type: 'REASONING_MESSAGE_CONTENT', messageId: 'g1', delta: 'hm' },
  { type: 'REASONING_MESSAGE_END', messageId: 'g1' },
  { type: 'REASONING_END', messageId: 'g1' },
];
const subagent: ClientEvent = { type: 'SUBAGENT_STARTED', subagentRunId: 's1', name: 'helper' };
const interrupts = [{ id: 'i1', reason: 'tool_call', toolCallId: 'c1' }];
const chunk = (delta: string): ClientEvent => ({
  type: 'TEXT_MESSAGE_CHUNK',
  messageId: 'm1',
  role: 'assistant',
  delta,
});

export const SEQUENCES: Record<string, ClientEvent[]> = {
  normal: [start(), ...text('hi'), end()],
  'custom first': [custom, start(), end()],
  'raw first': [{ type: 'RAW', event: {} }, start(), end()],
  'custom inside': [start(), custom, ...text('hi'), end()],
  'custom after finished': [start(), ...text('hi'), end(), custom],
  'custom between two runs': [start(), ...text('a'), end(), custom, start('r2'), ...text('b', 'm2'), end({}, 'r2')],
  'two runs': [start(), ...text('a'), end(), start('r2'), ...text('b', 'm2'), end({}, 'r2')],
  'second run never ends': [start(), ...text('a'), end(), start('r2'), ...text('b', 'm2')],
  'nested run': [start(), start('r2'), end({}, 'r2'), end()],
  'text after finished': [start(), end(), ...text('late')],
  'error then custom': [start(), error, custom],
  'error then run': [start(), error, start('r2'), ...text('b', 'm2'), end({}, 'r2')],
  'only error': [error],
  truncated: [start(), opens(), content('hi')],
  empty: [],
  'open tool call at end': [start(), call, args, end()],
  'open text at end': [start(), opens(), content('hi'), end()],
  'tool call without result': [start(), call, args, called, end()],
  'tool result': [start(), call, args, called, result, end()],
  'result of unknown call': [start(), result, end()],
  'content without start': [start(), content('hi'), end()],
  'empty delta': [start(), opens(), content(''), closes(), end()],
  'end twice': [start(), ...text('x'), closes(), end()],
  'unknown type': [start(), { type: 'NEWER_THAN_US' }, ...text('x'), end()],
  'unknown fields + metadata': [start(), ...text('x', 'm1', { what: 1, metadata: { a: 1 } }), end()],
  'user message in stream': [start(), ...text('from another', 'u1', { role: 'user' }), ...text('x'), end()],
  'system role text': [start(), ...text('notice', 'm1', { role: 'system' }), end()],
  'other threadId': [{ ...start(), threadId: 'other' }, ...text('x'), end({ threadId: 'other' })],
  'two texts open': [
    start(),
    opens('m1'),
    opens('m2'),
    content('1', 'm1'),
    content('2', 'm2'),
    closes('m1'),
    closes('m2'),
    end(),
  ],
  reasoning: [start(), ...thinks('reasoning'), ...text('x'), end()],
  'reasoning role assistant': [start(), ...thinks('assistant'), end()],
  subagent: [
    start(),
    subagent,
    ...text('x', 'm1', { subagentRunId: 's1' }),
    { type: 'SUBAGENT_FINISHED', subagentRunId: 's1' },
    end(),
  ],
  'subagent open at end': [start(), subagent, end()],
  activity: [
    start(),
    { type: 'ACTIVITY_SNAPSHOT', messageId: 'a1', activityType: 'task', content: { title: 'poll', status: 'running' } },
    {
      type: 'ACTIVITY_DELTA',
      messageId: 'a1',
      activityType: 'task',
      patch: [{ op: 'replace', path: '/status', value: 'done' }],
    },
    end(),
  ],
  state: [
    start(),
    { type: 'STATE_SNAPSHOT', snapshot: { tasks: [] } },
    { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/tasks/-', value: { id: 't1' } }] },
    end(),
  ],
  'messages snapshot': [
    start(),
    {
      type: 'MESSAGES_SNAPSHOT',
      messages: [
        { id: 'u0', role: 'user', content: 'old' },
        { id: 'a0', role: 'assistant', content: 'older' },
      ],
    },
    ...text('x'),
    end(),
  ],
  interrupt: [start(), call, args, called, end({ outcome: { type: 'interrupt', interrupts } })],
  cancelled: [start(), ...text('x'), end({ outcome: { type: 'cancelled' } })],
  'success outcome': [start(), ...text('x'), end({ outcome: { type: 'success' }, result: { a: 1 } })],
  'step open at end': [start(), { type: 'STEP_STARTED', stepName: 'a' }, end()],
  chunks: [start(), chunk('a'), chunk('b'), end()],
};
