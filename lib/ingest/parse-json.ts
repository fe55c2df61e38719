import { AppError } from '@/lib/protocol/errors';
import { MAX_JSON_DEPTH, MAX_RECORD_VALUES } from '@/lib/protocol/limits';

export const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
export const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

const start = new TextDecoder('utf-8', { fatal: true });
const rest = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * JSON that is safe to walk: whatever recurses over it later goes at most MAX_JSON_DEPTH deep, and it holds no more
 * values than a record may. Its strings may have half a surrogate pair: `parseInput` mends what of it is kept.
 * @throws AppError `malformed` that says where
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  requireShallow(bytes);
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

/** Text of the beginning of a body, which may have a byte order mark. */
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

/** One pass without recursion over the raw bytes. What is no JSON at all is left for the parser to name. */
function requireShallow(bytes: Uint8Array): void {
  let [depth, values] = [0, 0];
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA) values += 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      values += 1;
      if (depth > MAX_JSON_DEPTH) throw tooDeep(index);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
  }
  if (values > MAX_RECORD_VALUES) throw malformed(`The body holds more than ${MAX_RECORD_VALUES} values.`);
}

/** The index of the quote that closes the string opened at `start`. */
export function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return bytes.length;
}

export function tooDeep(index: number): AppError {
  return malformed(`The body is nested deeper than ${MAX_JSON_DEPTH} levels at byte ${index}. Flatten it.`);
}

export function malformed(message: string, cause?: unknown): AppError {
  return new AppError('malformed', message, { cause });
}
