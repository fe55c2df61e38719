import { type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import type { WireFrame } from '../wire';

/**
 * Frames between a runner and an AgentAPI server.
 *
 * | dir | msg |
 * |---|---|
 * | out | `{"method":"POST","path":"/message","body":{"content","type"},…}`; plus `messageId` of a message, or `keys` with the chosen `option` |
 * | in | `{"answer":"message","status","body"}` |
 * | in | `{"answer":"status"\|"messages","status","body"}`: a polled response |
 * | in | `{"event","data"}`: from /events; `screen` from /internal/screen |
 * | in | `{"connection":"opened"}`, `{"connection":"ended","reason"}`: of /events |
 *
 * AgentAPI can't store the dashboard's message id, so the frame carries it beside the body.
 *
 * @see coder/agentapi 0.12.1
 */
export type AgentApiFrame =
  | { kind: 'post'; content: string; messageId: string | null }
  /** Escape to interrupt, or keys answering the screen's prompt. */
  | { kind: 'keys'; isInterrupt: boolean; optionId: string | null }
  | { kind: 'posted'; isAccepted: boolean }
  | { kind: 'status'; isStable: boolean; agent: string | null }
  | { kind: 'message'; message: ApiMessage }
  | { kind: 'listed'; messages: ApiMessage[] }
  | { kind: 'screen'; screen: string }
  | { kind: 'error'; message: string; level: string; time: string }
  | { kind: 'opened' }
  | { kind: 'ended'; reason: string }
  | { kind: 'unreadable'; what: unknown }
  | { kind: 'other' };

export interface ApiMessage {
  /** Counts from 0 in each process. */
  id: number;
  role: 'user' | 'agent';
  content: string;
  /** ISO 8601; of an agent message, its last change. */
  time: string;
}

export function frameOf({ dir, msg }: WireFrame): AgentApiFrame {
  const fields = fieldsOf(msg);
  if (dir === 'out') return sent(fields);
  const { answer, connection, event, data, body, reason } = fields;
  const isGood = numberOf(fields.status) === 200;
  if (answer === 'message') return { kind: 'posted', isAccepted: isGood };
  if (answer === 'status') return isGood ? statusOf(fieldsOf(body)) : { kind: 'other' };
  if (answer === 'messages') return isGood ? { kind: 'listed', messages: messagesOf(body) } : { kind: 'other' };
  if (connection === 'opened') return { kind: 'opened' };
  if (connection === 'ended') return { kind: 'ended', reason: textOf(reason) ?? 'it was closed' };
  return typeof event === 'string' ? eventOf(event, data, msg) : { kind: 'unreadable', what: msg };
}

function sent({ method, path, body, messageId, keys, option }: Fields): AgentApiFrame {
  if (method !== 'POST' || path !== '/message') return { kind: 'other' };
  const { content, type } = fieldsOf(body);
  if (type === 'user') return { kind: 'post', content: textOf(content) ?? '', messageId: textOf(messageId) };
  return { kind: 'keys', isInterrupt: keys === 'interrupt', optionId: textOf(option) };
}

function eventOf(event: string, data: unknown, msg: unknown): AgentApiFrame {
  if (!isObject(data)) return { kind: 'unreadable', what: msg };
  if (event === 'message_update') {
    const message = messageOf(data);
    return message === null ? { kind: 'unreadable', what: msg } : { kind: 'message', message };
  }
  if (event === 'status_change') return statusOf(data);
  if (event === 'screen') return { kind: 'screen', screen: textOf(data.screen) ?? '' };
  if (event === 'agent_error') {
    const { message, level, time } = data;
    return { kind: 'error', message: textOf(message) ?? '', level: textOf(level) ?? 'error', time: textOf(time) ?? '' };
  }
  return { kind: 'unreadable', what: msg };
}

function statusOf({ status, agent_type: agent }: Fields): AgentApiFrame {
  if (status !== 'stable' && status !== 'running') return { kind: 'other' };
  return { kind: 'status', isStable: status === 'stable', agent: textOf(agent) };
}

function messagesOf(body: unknown): ApiMessage[] {
  const list = isObject(body) ? body.messages : body;
  return listOf(list).flatMap((one) => (isObject(one) ? (messageOf(one) ?? []) : []));
}

/** The stream names the content `message`, the list `content`. */
function messageOf({ id, role, message, content, time }: Fields): ApiMessage | null {
  const text = typeof message === 'string' ? message : content;
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || (role !== 'user' && role !== 'agent')) return null;
  if (typeof text !== 'string') return null;
  return { id, role, content: withoutTrailing(text), time: textOf(time) ?? '' };
}

/** Strips the padding of terminal lines. */
export function withoutTrailing(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd();
}
