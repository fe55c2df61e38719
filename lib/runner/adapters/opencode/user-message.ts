import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { idOf } from './native-event';
import { type TaskNotice, taskNotices } from './task-notice';

/** What a part says that stands in a message to the agent. */
export type AskedPart =
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

export function askedPart(part: Fields): AskedPart {
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
      const notices = taskNotices(text).filter(({ status }) => status !== 'running');
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
