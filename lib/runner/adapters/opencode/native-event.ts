import { type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';

/**
 * An OpenCode event from any source: the stream of a directory (`/event`) or of all (`/global/event`), or a session's
 * history (`POST /sync/history`).
 *
 * @see opencode-ai 1.18.33, `GET /doc`
 */
export interface NativeEvent {
  /** The same on every stream. */
  id: string | null;
  type: string;
  data: Fields;
  session: string | null;
  /** Position among the session's durable events, if known. */
  seq: number | null;
  /** True if it comes from a stream that repeats durable events with their position. */
  isWrapped: boolean;
}

/** Matches durable events, which are in the history and which `/global/event` repeats as `sync`. */
const LASTING = /^(session\.(created|updated|deleted)|message\.(part\.)?(updated|removed))$/;

export function isLasting({ type }: NativeEvent): boolean {
  return LASTING.test(type);
}

export function eventOf(msg: unknown): NativeEvent | null {
  const outer = fieldsOf(msg);
  const isWrapped = isObject(outer.payload);
  const event = isWrapped ? fieldsOf(outer.payload) : outer;
  const type = textOf(event.type);
  if (type === null) return null;
  if (type === 'sync') return entryOf(event.syncEvent);
  const data = fieldsOf(event.properties ?? event.data);
  return { id: idOf(event.id), type, data, session: sessionOf(type, data), seq: null, isWrapped };
}

/** Parses an event of the history or of a `sync`. */
export function entryOf(value: unknown): NativeEvent | null {
  const { id, type, seq, data, aggregateID, aggregate_id } = fieldsOf(value);
  const versioned = textOf(type);
  if (versioned === null) return null;
  const name = versioned.replace(/\.\d+$/, '');
  const session = idOf(aggregateID ?? aggregate_id) ?? sessionOf(name, fieldsOf(data));
  return { id: idOf(id), type: name, data: fieldsOf(data), session, seq: numberOf(seq), isWrapped: false };
}

/** Event time by the server's clock; null if unknown. */
export function timeOf({ type, data }: NativeEvent): number | null {
  const info = fieldsOf(fieldsOf(data.info).time);
  if (type.startsWith('session.')) return numberOf(info.updated) ?? numberOf(info.created);
  return numberOf(data.time) ?? numberOf(info.completed) ?? numberOf(info.created);
}

/** Returns an id; null for anything else, including overlong strings. */
export function idOf(value: unknown): string | null {
  const text = textOf(value);
  return text === null || text.length > MAX_ID_LENGTH ? null : text;
}

function sessionOf(type: string, data: Fields): string | null {
  const info = fieldsOf(data.info);
  const own = type.startsWith('session.') ? info.id : undefined;
  return idOf(data.sessionID ?? info.sessionID ?? fieldsOf(data.part).sessionID ?? own);
}

/** A request from Interlude. */
export interface NativeRequest {
  method: string;
  path: string;
  /** `directory` query parameter. */
  directory: string | null;
  body: unknown;
}

export function requestOf(msg: unknown): NativeRequest | null {
  const { method, path, body } = fieldsOf(msg);
  const address = textOf(path);
  if (address === null) return null;
  const [bare = '', query = ''] = address.split('?');
  return { method: textOf(method) ?? 'GET', path: bare, directory: new URLSearchParams(query).get('directory'), body };
}

/** Expands a message of `GET /session/:id/message` into its events. */
export function eventsOfMessage(value: unknown): NativeEvent[] {
  const { info, parts } = fieldsOf(value);
  const session = idOf(fieldsOf(info).sessionID);
  const event = (type: string, data: Fields) => ({ id: null, type, data, session, seq: null, isWrapped: false });
  const { finish: _, error: __, ...started } = fieldsOf(info);
  const { created } = fieldsOf(started.time);
  return [
    event('message.updated', { info: { ...started, time: { created } } }),
    ...listOf(parts).map((part) => event('message.part.updated', { part, time: partTime(part) ?? created })),
    event('message.updated', { info }),
  ];
}

function partTime(part: unknown): number | null {
  const { time, state } = fieldsOf(part);
  const { start, end } = fieldsOf(time ?? fieldsOf(state).time);
  return numberOf(end) ?? numberOf(start);
}

/** A part of a message to the agent. */
type PromptPart =
  /** `messageId`: log id of a message sent by the dashboard. */
  | { kind: 'person'; messageId: string | null; text: string }
  | { kind: 'task'; notices: TaskNotice[] }
  /** Text by OpenCode itself: file content, a reminder, a continuation prompt. */
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
