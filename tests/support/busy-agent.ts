import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { CommandAnswer, MessageAnswer } from '@interlude/protocol/commands';
import type { InboxList } from '@interlude/protocol/inbox';
import type { ParkedList } from '@interlude/protocol/read-models';
import type { AccessStage } from './access-stage';

/** The ids of something of every kind that an agent has. */
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

/** An agent of which there is one of everything. All its ids end in `-<letter>`. */
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
    // with more than one session, what is told of a task that none has started is nobody's
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
      records: records.map((record, at) => ({ ...record, seq: at + 1, agentId, occurredAt: 1_795_170_000_000 + at })),
    },
  });
  const { hash } = await stage.ask<{ hash: string }>(`/sessions/${sessionId}/attachments?name=a.txt`, {
    method: 'POST',
    body: new TextEncoder().encode(`The file of ${letter}`),
    headers: { 'content-type': 'text/plain' },
  });
  const { messageId: commandId } = await stage.ask<MessageAnswer>(`/sessions/${sessionId}/messages`, {
    method: 'POST',
    body: { text: `To ${letter}`, clientId: id('client') },
  });
  const parked = await stage.ask<ParkedList>(`/agents/${agentId}/parked`);
  const inbox = await stage.ask<InboxList>(`/inbox?agent=${agentId}`);
  const [position, inboxId] = [parked.records[0]?.position, inbox.items[0]?.id];
  if (position === undefined || inboxId === undefined) throw new Error('it has nothing parked, or no inbox item');
  return { agentId, sessionId, taskId, requestId, messageId, commandId, hash, position, inboxId };
}

/** The same with ids of nothing that there is. */
export function nobody(): BusyAgent {
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

/** A log level that is asked for, as another kind of command. */
export function askLevel(stage: AccessStage, agentId: string): Promise<CommandAnswer> {
  return stage.ask(`/agents/${agentId}/log-level`, { method: 'PUT', body: { level: 'debug' } });
}
