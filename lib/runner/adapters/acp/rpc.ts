import { compact, type Fields, fieldsOf, isObject, textOf } from '@interlude/protocol/fields';

/** A JSON-RPC 2.0 message, as far as it is one. @see JSON-RPC 2.0; ids may be 0, numbers or texts */
export type RpcFrame =
  | { kind: 'request'; key: string; method: string; params: Fields }
  | { kind: 'notification'; method: string; params: Fields }
  | { kind: 'answer'; key: string; result: Fields; error: RpcError | null }
  | { kind: 'unreadable' };

export interface RpcError {
  code: number | null;
  message: string;
  /** The session or resource it is about, as `data` names it. */
  about?: string;
}

const RESOURCE_NOT_FOUND = -32_002;

/** Whether the agent does not know the session any more. The same code about something else is about that. */
export function isSessionLost({ code, about, message }: RpcError, nativeId: string | null): boolean {
  // Behind other words it is another session, such as that of an MCP server.
  if (/^(error: )?session (\S+ )?not found\b/i.test(message)) return true;
  return code === RESOURCE_NOT_FOUND && (about === undefined || about === nativeId);
}

export function rpcFrame(msg: unknown): RpcFrame {
  if (!isObject(msg)) return { kind: 'unreadable' };
  const key = rpcKey(msg.id);
  const method = textOf(msg.method);
  const params = fieldsOf(msg.params);
  if (method !== null)
    return key === null ? { kind: 'notification', method, params } : { kind: 'request', key, method, params };
  if (key === null || !('result' in msg || 'error' in msg)) return { kind: 'unreadable' };
  const error = isObject(msg.error) ? errorOf(msg.error) : null;
  return { kind: 'answer', key, result: fieldsOf(msg.result), error };
}

/** An id as a key: the number 1 and the text "1" are two. Null for what is no id. */
export function rpcKey(id: unknown): string | null {
  return typeof id === 'number' || typeof id === 'string' ? JSON.stringify(id) : null;
}

/**
 * Agents put what happened into the message, into `data`, or into JSON inside of either; a bare "Internal error" is all
 * that some leave in the message.
 */
function errorOf({ code, message, data }: Fields): RpcError {
  const { details, message: inData, sessionId, uri } = fieldsOf(data);
  const said = innermost(textOf(details) ?? textOf(inData) ?? textOf(data));
  const plain = innermost(textOf(message));
  const isBare = plain === null || /^internal error\.?$/i.test(plain);
  const text = isBare ? (said ?? plain ?? 'The agent gave an error without words.') : plain;
  return compact({
    code: typeof code === 'number' ? code : null,
    message: text.replace(/^Internal error: /, ''),
    about: textOf(sessionId) ?? textOf(uri) ?? undefined,
  });
}

function innermost(text: string | null): string | null {
  if (text === null || !text.trimStart().startsWith('{')) return text;
  try {
    const { error, message } = fieldsOf(JSON.parse(text));
    return textOf(fieldsOf(error).message) ?? textOf(message) ?? text;
  } catch {
    return text;
  }
}
