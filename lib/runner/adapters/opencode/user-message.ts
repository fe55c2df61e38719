import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { idOf } from './native-event';

/** A part of a message to the agent. */
type PromptPart =
  /** `messageId`: log id of a message sent by the dashboard. */
  | { kind: 'person'; messageId: string | null; text: string }
  | { kind: 'task'; notices: TaskNotice[] }
  /** OpenCode's own text: file content, a reminder, a continuation prompt. */
  | { kind: 'own' }
  | { kind: 'compaction'; isAuto: boolean };

/** A dashboard message with its id in the part's `metadata`, which the server keeps and hides from the model. */
export function partOfMessage(messageId: string, text: string) {
  return { type: 'text', text, metadata: { interlude: { messageId } } };
}

export function parsePromptPart(part: Fields): PromptPart {
  const text = typeof part.text === 'string' ? part.text : '';
  switch (part.type) {
    case 'compaction':
      return { kind: 'compaction', isAuto: part.auto === true };
    case 'subtask': {
      const [command, description, agent] = [part.command, part.description, part.agent].map(textOf);
      return { kind: 'person', messageId: null, text: command !== null ? `/${command}` : `@${agent} ${description}` };
    }
    case 'text': {
      const messageId = messageIdIn(part);
      if (part.synthetic !== true) return text === '' ? { kind: 'own' } : { kind: 'person', messageId, text };
      const notices = parseTaskNotices(text).filter(({ status }) => status !== 'running');
      return notices.length > 0 ? { kind: 'task', notices } : { kind: 'own' };
    }
    default:
      return { kind: 'own' };
  }
}

/** @returns dashboard id of the part's message */
export function messageIdIn(part: Fields): string | null {
  return idOf(fieldsOf(fieldsOf(part.metadata).interlude).messageId);
}

/** The end of a background subagent, as OpenCode writes it into the parent's conversation. */
export interface TaskNotice {
  taskId: string;
  status: 'completed' | 'failed' | 'stopped' | 'running';
  /** Final text or error. */
  result: string;
}

const HEAD = /<task id="([^"<>]{1,256})" state="([a-z_-]{1,40})">/g;
const STATES: Record<string, TaskNotice['status']> = {
  completed: 'completed',
  running: 'running',
  cancelled: 'stopped',
  aborted: 'stopped',
};
const MAX_RESULT = 2_000;

/** @param text of a synthetic message, or output of the `task` tool */
export function parseTaskNotices(text: string): TaskNotice[] {
  const heads = [...text.matchAll(HEAD)];
  return heads.map(({ 0: head, 1: taskId = '', 2: state = '', index }, at) => {
    const body = text.slice(index + head.length, heads[at + 1]?.index ?? text.length);
    const status = Object.hasOwn(STATES, state) ? (STATES[state] ?? 'failed') : 'failed';
    return {
      taskId,
      status,
      result: truncateText(
        inner(body, 'task_result') ?? inner(body, 'task_error') ?? inner(body, 'summary') ?? '',
        MAX_RESULT,
      ),
    };
  });
}

function inner(text: string, tag: string): string | null {
  const from = text.indexOf(`<${tag}>`);
  const to = text.indexOf(`</${tag}>`);
  return from < 0 || to < from ? null : text.slice(from + tag.length + 2, to).trim();
}
