import type { AgUiEvent } from '@interlude/protocol/ag-ui';

export interface WorkRecord {
  seq: number;
  kind: 'event';
  agentId: string;
  sessionId: string;
  occurredAt: number;
  event: AgUiEvent;
}

const WORDS = 'the tests pass now but the deploy still waits for its canary to settle before it goes on '.split(' ');

/**
 * A busy runner's records: sessions with reasoning, streamed text, tool calls with streamed arguments and background
 * tasks, realistically interleaved. Deterministic.
 */
export function* workload(agentId: string, sessionCount: number): Generator<WorkRecord> {
  const sessions = Array.from({ length: sessionCount }, (_, index) => sessionEvents(`${agentId}-s${index}`, index));
  for (let seq = 1; ; ) {
    for (const [index, session] of sessions.entries()) {
      // a few events per session, round-robin
      for (let burst = 0; burst < 3 + (index % 4); burst += 1) {
        const event = session.next().value;
        const occurredAt = 1_795_170_000_000 + seq * 7;
        yield { seq, kind: 'event', agentId, sessionId: `${agentId}-s${index}`, occurredAt, event };
        seq += 1;
      }
    }
  }
}

function* sessionEvents(threadId: string, offset: number): Generator<AgUiEvent, never> {
  for (let turn = offset; ; turn += 1) {
    const runId = `${threadId}-r${turn}`;
    const userId = `${runId}-u`;
    const interlude = { turn: 'user' as const, userMessageIds: [userId] };
    yield { type: 'TEXT_MESSAGE_START', messageId: userId, role: 'user' };
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId: userId, delta: text(40, turn) };
    yield { type: 'TEXT_MESSAGE_END', messageId: userId };
    yield { type: 'RUN_STARTED', threadId, runId, metadata: { interlude } };
    yield* stream('REASONING_MESSAGE', 'messageId', `${runId}/think`, 12, turn);
    for (let call = 0; call < 3; call += 1) {
      const id = `${runId}/tool${call}`;
      yield* stream('TOOL_CALL', 'toolCallId', id, 6, turn + call, { toolCallName: 'Bash' });
      yield { type: 'TOOL_CALL_RESULT', messageId: `${id}-r`, toolCallId: id, content: text(60, call) };
      if (call === 1) yield task('task:started', `${runId}-t`, { description: text(5, turn), task_type: 'local_bash' });
      yield* stream('TEXT_MESSAGE', 'messageId', `${runId}/text${call}`, 24, turn, { role: 'assistant' });
    }
    yield { type: 'RUN_FINISHED', threadId, runId, metadata: { interlude } };
    yield task('task:completed', `${runId}-t`, { status: 'completed', exit_code: 0, summary: text(8, turn) });
    const trigger = { kind: 'task' as const, taskIds: [`${runId}-t`] };
    const woken = { interlude: { turn: 'between-run' as const, trigger } };
    yield { type: 'RUN_STARTED', threadId, runId: `${runId}-w`, metadata: woken };
    yield* stream('TEXT_MESSAGE', 'messageId', `${runId}-w/text`, 16, turn, { role: 'assistant' });
    yield { type: 'RUN_FINISHED', threadId, runId: `${runId}-w`, metadata: woken };
  }
}

function* stream(
  type: string,
  idField: string,
  id: string,
  deltas: number,
  salt: number,
  start: Record<string, unknown> = {},
): Generator<AgUiEvent> {
  yield { type: `${type}_START`, [idField]: id, ...start };
  const content = type === 'TOOL_CALL' ? 'TOOL_CALL_ARGS' : `${type}_CONTENT`;
  for (let index = 0; index < deltas; index += 1) yield { type: content, [idField]: id, delta: text(3, salt + index) };
  yield { type: `${type}_END`, [idField]: id };
}

function task(name: string, taskId: string, fields: Record<string, unknown>): AgUiEvent {
  return { type: 'CUSTOM', name, value: { task_id: taskId, ...fields } };
}

function text(words: number, salt: number): string {
  return Array.from({ length: words }, (_, index) => WORDS[(salt * 7 + index * 3) % WORDS.length]).join(' ');
}
