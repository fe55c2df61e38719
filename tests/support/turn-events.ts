import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { turnOf } from './wire-runner';

/** Builds complete events for pages with known content. */
export function message(id: string, text: string, role: 'user' | 'assistant' = 'assistant'): AgUiEvent[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId: id, role },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: text },
    { type: 'TEXT_MESSAGE_END', messageId: id },
  ];
}

export function toolCall(id: string, name: string, args: unknown, result: string): AgUiEvent[] {
  return [
    { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name },
    { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(args) },
    { type: 'TOOL_CALL_END', toolCallId: id },
    { type: 'TOOL_CALL_RESULT', messageId: `${id}/result`, toolCallId: id, content: result },
  ];
}

export function reasoning(id: string, text: string): AgUiEvent[] {
  return [
    { type: 'REASONING_MESSAGE_START', messageId: id },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: id, delta: text },
    { type: 'REASONING_MESSAGE_END', messageId: id },
  ];
}

/** A user turn that answers `question` with `work`, or with a text message. */
export function userTurn(runId: string, question: string, work: AgUiEvent[] | string): AgUiEvent[] {
  const interlude = { turn: 'user' as const, userMessageIds: [`${runId}/question`] };
  return [
    ...message(`${runId}/question`, question, 'user'),
    { type: 'RUN_STARTED', threadId: 's', runId, metadata: { interlude } },
    ...(typeof work === 'string' ? message(`${runId}/answer`, work) : work),
    { type: 'RUN_FINISHED', threadId: 's', runId, metadata: { interlude } },
  ];
}

/** An open turn with everything that moves on the page: a running task, a running call, and half a reply. */
export function movingTurn(): AgUiEvent[] {
  return [
    ...userTurn('first', 'Build it', [...message('a1', 'Building.'), taskStarted('t1', 'Watch the deploy')]),
    ...message('u2', 'And run the tests', 'user'),
    turnOf('RUN_STARTED', 'open', ['u2']),
    ...toolCall('c1', 'Bash', { command: 'npm test' }, '').slice(0, -1),
    ...message('a2', 'Running them now').slice(0, -1),
  ];
}

export function taskStarted(id: string, description: string, fields: Record<string, unknown> = {}): AgUiEvent {
  return {
    type: 'CUSTOM',
    name: 'task:started',
    value: { task_id: id, description, task_type: 'local_bash', ...fields },
  };
}

export function taskEnded(id: string, status: string, fields: Record<string, unknown> = {}): AgUiEvent {
  return { type: 'CUSTOM', name: 'task:completed', value: { task_id: id, status, ...fields } };
}

/** A turn started by a task's end. */
export function wokenTurn(runId: string, taskId: string, work: AgUiEvent[] | string): AgUiEvent[] {
  const interlude = { turn: 'between-run' as const, trigger: { kind: 'task' as const, taskIds: [taskId] } };
  return [
    { type: 'RUN_STARTED', threadId: 's', runId, metadata: { interlude } },
    ...(typeof work === 'string' ? message(`${runId}/answer`, work) : work),
    { type: 'RUN_FINISHED', threadId: 's', runId, metadata: { interlude } },
  ];
}
