import { AppError } from '@interlude/protocol/errors';
import { measureJson } from '@interlude/protocol/json';
import { MAX_JSON_DEPTH, MAX_RECORD_VALUES } from '@interlude/protocol/limits';

const start = new TextDecoder('utf-8', { fatal: true });
const rest = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * JSON that is safe to walk: recursion goes at most MAX_JSON_DEPTH deep, and it holds no more values than a record may.
 * Its strings may have half a surrogate pair: `parseInput` mends what is kept of it.
 * @throws AppError `malformed` that says where
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  const { values, tooDeepAt } = measureJson(bytes);
  if (tooDeepAt !== null) throw tooDeep(tooDeepAt);
  if (values > MAX_RECORD_VALUES) throw malformed(`The body holds more than ${MAX_RECORD_VALUES} values.`);
  return parseJsonText(decodeStart(bytes));
}

/** @throws AppError `malformed` with what the parser says */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const where = cause instanceof Error ? cause.message : `${text.length} characters`;
    throw malformed(`The body is not valid JSON (${where}; it has ${text.length} characters).`, cause);
  }
}

/** The text of the beginning of a body, which may have a byte order mark. */
export function decodeStart(bytes: Uint8Array): string {
  return decodeUtf8(bytes, start);
}

export function decodeUtf8(bytes: Uint8Array, decoder = rest): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw malformed('The body is not valid UTF-8. JSON is always sent as UTF-8.', cause);
  }
}

export function tooDeep(index: number): AppError {
  return malformed(`The body is nested deeper than ${MAX_JSON_DEPTH} levels at byte ${index}. Flatten it.`);
}

export function malformed(message: string, cause?: unknown): AppError {
  return new AppError('malformed', message, { cause });
}
