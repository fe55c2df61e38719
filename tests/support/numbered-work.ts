import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { OutgoingRecord } from '@interlude/runner/outbox/outbox';

/**
 * One agent's numbered work as a pure function of the step number. A restarted runner continues with the next record,
 * and a test can compute what must arrive.
 *
 * Step n, in one of two sessions: a question; a turn that answers in deltas, calls a tool and starts a task; the task's
 * end; the between-run turn that it causes; a log line.
 */
interface Step {
  sessionId: string;
  records: OutgoingRecord[];
}

const START = 1_795_170_000_000;

export function sessionsOf(agentId: string): string[] {
  return [`${agentId}-a`, `${agentId}-b`];
}

export function stepOf(agentId: string, n: number): Step {
  const sessionId = sessionsOf(agentId)[n % 2] as string;
  const id = `${sessionId}-${n}`;
  const [taskId, toolCallId] = [`${id}-task`, `${id}-call`];
  const run = (runId: string, interlude: object): AgUiEvent => ({
    type: 'RUN_STARTED',
    threadId: sessionId,
    runId,
    metadata: { interlude },
  });
  const finished = (runId: string): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: sessionId, runId });
  const task = (name: string, value: object): AgUiEvent => ({
    type: 'CUSTOM',
    name,
    value: { task_id: taskId, description: `Count to ${n}`, tool_use_id: toolCallId, ...value },
  });
  const events: AgUiEvent[] = [
    ...message(`${id}-question`, 'user', [`Question ${n}`]),
    run(id, { turn: 'user', userMessageIds: [`${id}-question`] }),
    ...message(`${id}-answer`, 'assistant', deltasOf(n)),
    { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'Bash', parentMessageId: `${id}-answer` },
    ...['{"command":', `"seq ${n}"`, '}'].map((delta) => ({ type: 'TOOL_CALL_ARGS', toolCallId, delta })),
    { type: 'TOOL_CALL_END', toolCallId },
    { type: 'TOOL_CALL_RESULT', messageId: `${id}-result`, toolCallId, content: `counted ${n}` },
    task('task:started', { task_type: 'local_bash' }),
    finished(id),
    task('task:completed', { status: 'completed', summary: `${n} counted`, exit_code: 0 }),
    run(`${id}-woken`, { turn: 'between-run', trigger: { kind: 'task', taskIds: [taskId] } }),
    ...message(`${id}-news`, 'assistant', ['It ', 'counted ', `to ${n}.`]),
    finished(`${id}-woken`),
  ];
  const records = events.map(
    (event, index): OutgoingRecord => ({
      kind: 'event',
      agentId,
      sessionId,
      occurredAt: START + n * 100 + index,
      event,
    }),
  );
  const log = { level: 'info', component: 'work', message: String(n) } as const;
  return { sessionId, records: [...records, { kind: 'log', agentId, occurredAt: START + n * 100 + 99, log }] };
}

/** The answer of step n, by delta. */
export function deltasOf(n: number): string[] {
  return Array.from({ length: 3 + (n % 7) }, (_, index) => `${n}.${index} `);
}

function message(messageId: string, role: string, deltas: string[]): AgUiEvent[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role },
    ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
}
