import { cutText } from '@interlude/protocol/cut-text';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { idOf } from './native-event';

/** What a part says that stands in a message to the agent. */
export type PromptPart =
  /** `messageId`: it was sent by the dashboard, and is in the log under this id. */
  | { kind: 'person'; messageId: string | null; text: string }
  | { kind: 'task'; notices: TaskNotice[] }
  /** OpenCode's own words: the content of a file, a reminder, that it should go on. */
  | { kind: 'own' }
  | { kind: 'compaction'; isAuto: boolean };

/** Where a message of the dashboard has its id: in the `metadata` of its part, which the server keeps and no model sees. */
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

/** @returns the id of the dashboard's message that a part is of */
export function messageIdIn(part: Fields): string | null {
  return idOf(fieldsOf(fieldsOf(part.metadata).interlude).messageId);
}

/** How a background subagent ended, as OpenCode writes it into the parent's conversation. */
export interface TaskNotice {
  taskId: string;
  status: 'completed' | 'failed' | 'stopped' | 'running';
  /** What it said last, or why it failed. */
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

/** @param text of a synthetic message, or the output of the tool `task` */
export function parseTaskNotices(text: string): TaskNotice[] {
  const heads = [...text.matchAll(HEAD)];
  return heads.map(({ 0: head, 1: taskId = '', 2: state = '', index }, at) => {
    const body = text.slice(index + head.length, heads[at + 1]?.index ?? text.length);
    const status = Object.hasOwn(STATES, state) ? (STATES[state] ?? 'failed') : 'failed';
    return {
      taskId,
      status,
      result: cutText(
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
