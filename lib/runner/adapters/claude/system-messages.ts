import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { custom, type Emit } from '../writer/part-events';

/** Maps message types to handlers. A type may be any string, such as `constructor`. */
export function messageHandlers<Result, More extends unknown[] = []>(
  readers: Record<string, (message: Fields, ...more: More) => Result>,
): ReadonlyMap<unknown, (message: Fields, ...more: More) => Result> {
  return new Map<unknown, (message: Fields, ...more: More) => Result>(Object.entries(readers));
}

interface Notice {
  text: string;
  tone: 'info' | 'warning' | 'error';
}

/** Messages shown as notices. Agent SDK 0.3.329. */
const NOTICES = messageHandlers<Notice | null>({
  api_retry: (message) => ({ text: retryText(message), tone: 'warning' }),
  compact_boundary: (message) => ({ text: compactText(fieldsOf(message.compact_metadata)), tone: 'info' }),
  conversation_reset: () => ({ text: 'The conversation was cleared.', tone: 'info' }),
  local_command_output: (message) => noticeOf(message.content, 'info'),
  model_refusal_fallback: (message) => noticeOf(message.content, 'warning'),
  model_refusal_no_fallback: (message) => noticeOf(message.content, 'error'),
  mirror_error: (message) => noticeOf(message.error, 'warning', 'Part of the transcript was not mirrored: '),
  session_writes_lost: () => ({ text: 'The disk is full: the agent could not save its transcript.', tone: 'error' }),
  informational: ({ level, content }) =>
    level === 'info' ? null : noticeOf(content, level === 'warning' ? level : 'info'),
  notification: ({ priority, text }) =>
    priority === 'high' || priority === 'immediate' ? noticeOf(text, 'info') : null,
});

/** Known internal messages: stored as CUSTOM `claude:<name>`, not shown. */
const INTERNAL_MESSAGES: ReadonlySet<unknown> = new Set([
  'active_goal',
  'auth_status',
  'background_tasks_changed',
  'command_lifecycle',
  'commands_changed',
  'control_request_progress',
  'elicitation_complete',
  'files_persisted',
  'hook_progress',
  'hook_response',
  'hook_started',
  'informational',
  'init',
  'memory_recall',
  'notification',
  'permission_denied',
  'plugin_install',
  'prompt_suggestion',
  'rate_limit_event',
  'session_state_changed',
  'status',
  'task_notification',
  'task_progress',
  'task_started',
  'task_updated',
  'thinking_tokens',
  'tool_progress',
  'tool_use_summary',
  'worker_shutting_down',
]);

/**
 * Forwards a message that is neither conversation nor task: as a notice, as CUSTOM without empty fields, or as RAW if
 * the SDK is newer than this adapter. Drops nothing.
 */
export function forwardMessage(emit: Emit, message: unknown): void {
  const fields = fieldsOf(message);
  const name = fields.type === 'system' ? fields.subtype : fields.type;
  const notice = NOTICES.get(name)?.(fields) ?? null;
  if (notice !== null) emit({ ...custom(CUSTOM.notice, notice), rawEvent: message });
  else if (INTERNAL_MESSAGES.has(name)) emit(custom(`claude:${name}`, withoutEnvelope(fields)));
  else emit({ type: 'RAW', event: message, source: 'claude' });
}

export function withoutEnvelope(message: Fields): Fields {
  const { type, subtype, uuid, session_id, ...rest } = message;
  return compact(rest);
}

function noticeOf(value: unknown, tone: Notice['tone'], before = ''): Notice | null {
  const text = textOf(value);
  return text === null ? null : { text: before + text, tone };
}

function retryText(message: Fields): string {
  const cause = [numberOf(message.error_status), textOf(message.error)].filter((part) => part !== null).join(' ');
  const seconds = Math.round((numberOf(message.retry_delay_ms) ?? 0) / 1000);
  const count = `${numberOf(message.attempt) ?? 1} of ${numberOf(message.max_retries) ?? '?'}`;
  return `The model API did not respond${cause === '' ? '' : ` (${cause})`}. Retry ${count} in ${seconds} s.`;
}

function compactText(metadata: Fields): string {
  const sizes = [numberOf(metadata.pre_tokens), numberOf(metadata.post_tokens)].filter((size) => size !== null);
  const by = metadata.trigger === 'manual' ? 'on request' : 'to make room';
  const tokens = sizes.length === 0 ? '' : `, ${sizes.map((size) => size.toLocaleString('en')).join(' → ')} tokens`;
  return `The conversation was compacted ${by}${tokens}.`;
}

/** `background_tasks_changed` without the details that `task:*` events carry. */
export function listedTaskIds(message: Fields): Fields {
  return { task_ids: listOf(message.tasks).map((task) => textOf(fieldsOf(task).task_id)) };
}
