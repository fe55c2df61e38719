import { compact, type Fields, fieldsOf, isObject, textOf } from '@interlude/protocol/fields';
import { unwrapErrorMessage } from '../wire';

/** A parsed JSON-RPC 2.0 message. Ids may be 0, numbers or strings. */
type RpcFrame =
  | { kind: 'request'; key: string; method: string; params: Fields }
  | { kind: 'notification'; method: string; params: Fields }
  | { kind: 'answer'; key: string; result: Fields; error: RpcError | null }
  | { kind: 'unreadable' };

export interface RpcError {
  code: number | null;
  message: string;
  /** Session or resource named in `data`. */
  about?: string;
}

const RESOURCE_NOT_FOUND = -32_002;

/** True if the agent no longer knows the session. The code alone may concern another resource. */
export function isSessionLost({ code, about, message }: RpcError, nativeId: string | null): boolean {
  // Preceded by other words, the message is about another session, such as an MCP server's.
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

/** Key of an id: 1 and "1" differ. Null if it is not an id. */
export function rpcKey(id: unknown): string | null {
  return typeof id === 'number' || typeof id === 'string' ? JSON.stringify(id) : null;
}

/**
 * Reads an error. Agents put the cause into the message, into `data`, or into JSON within either; some leave only
 * "Internal error".
 */
function errorOf({ code, message, data }: Fields): RpcError {
  const { details, message: inData, sessionId, uri } = fieldsOf(data);
  const [cause, plain] = [textOf(details) ?? textOf(inData) ?? textOf(data), textOf(message)].map((text) =>
    text === null ? null : unwrapErrorMessage(text),
  );
  const isBare = plain == null || /^internal error\.?$/i.test(plain);
  const text = isBare ? (cause ?? plain ?? 'The agent reported an error without a message.') : plain;
  return compact({
    code: typeof code === 'number' ? code : null,
    message: text.replace(/^Internal error: /, ''),
    about: textOf(sessionId) ?? textOf(uri) ?? undefined,
  });
}
