import { type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';

/**
 * What an OpenCode server tells, whichever way it comes: as an event of one directory (`/event`), of all of them
 * (`/global/event`), or of the history of a session (`POST /sync/history`).
 *
 * @see opencode-ai 1.18.33, `GET /doc`
 */
export interface NativeEvent {
  /** The same event has the same id on every stream. */
  id: string | null;
  type: string;
  data: Fields;
  session: string | null;
  /** Its place among the lasting events of its session, where that is told. */
  seq: number | null;
  /** Told by a stream that tells lasting events a second time, with their place. */
  isWrapped: boolean;
}

/** Those that `/global/event` repeats as `sync`, and that are in the history. */
const LASTING = /^(session\.(created|updated|deleted)|message\.(part\.)?(updated|removed))$/;

export function isLasting({ type }: NativeEvent): boolean {
  return LASTING.test(type);
}

/** @returns null for what is no event */
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

/** An event as it stands in the history, or in a `sync`. */
export function entryOf(value: unknown): NativeEvent | null {
  const { id, type, seq, data, aggregateID, aggregate_id } = fieldsOf(value);
  const versioned = textOf(type);
  if (versioned === null) return null;
  const name = versioned.replace(/\.\d+$/, '');
  const session = idOf(aggregateID ?? aggregate_id) ?? sessionOf(name, fieldsOf(data));
  return { id: idOf(id), type: name, data: fieldsOf(data), session, seq: numberOf(seq), isWrapped: false };
}

/** When it happened, by the server's clock; null where it does not say. */
export function timeOf({ type, data }: NativeEvent): number | null {
  const info = fieldsOf(fieldsOf(data.info).time);
  if (type.startsWith('session.')) return numberOf(info.updated) ?? numberOf(info.created);
  return numberOf(data.time) ?? numberOf(info.completed) ?? numberOf(info.created);
}

/** What can be an id here; a longer text can't. */
export function idOf(value: unknown): string | null {
  const text = textOf(value);
  return text === null || text.length > MAX_ID_LENGTH ? null : text;
}

function sessionOf(type: string, data: Fields): string | null {
  const info = fieldsOf(data.info);
  const own = type.startsWith('session.') ? info.id : undefined;
  return idOf(data.sessionID ?? info.sessionID ?? fieldsOf(data.part).sessionID ?? own);
}

/** A request of ours. */
export interface NativeRequest {
  method: string;
  path: string;
  /** `directory` of its query. */
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

/** A message as `GET /session/:id/message` lists it: what would have been told of it, from its beginning to its end. */
export function eventsOfMessage(value: unknown): NativeEvent[] {
  const { info, parts } = fieldsOf(value);
  const session = idOf(fieldsOf(info).sessionID);
  const say = (type: string, data: Fields) => ({ id: null, type, data, session, seq: null, isWrapped: false });
  const { finish: _, error: __, ...begun } = fieldsOf(info);
  const { created } = fieldsOf(begun.time);
  return [
    say('message.updated', { info: { ...begun, time: { created } } }),
    ...listOf(parts).map((part) => say('message.part.updated', { part, time: partTime(part) ?? created })),
    say('message.updated', { info }),
  ];
}

function partTime(part: unknown): number | null {
  const { time, state } = fieldsOf(part);
  const { start, end } = fieldsOf(time ?? fieldsOf(state).time);
  return numberOf(end) ?? numberOf(start);
}
