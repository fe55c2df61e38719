import { AppError } from '@/lib/protocol/errors';
import { MAX_JSON_DEPTH } from '@/lib/protocol/limits';
import { mayHaveHalves } from '@/lib/protocol/well-formed';

const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

const decoder = new TextDecoder('utf-8', { fatal: true });

export interface ParsedJson {
  value: unknown;
  /** Some string in it may have half a surrogate pair: fit to be looked at, but not to be stored before `wellFormed`. */
  hasHalves: boolean;
}

/**
 * JSON that is safe to walk: whatever recurses over it later goes at most MAX_JSON_DEPTH deep.
 * @throws AppError `malformed` that says where
 */
export function parseJson(bytes: Uint8Array): ParsedJson {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  const tooDeepAt = firstTooDeep(bytes);
  if (tooDeepAt !== -1) {
    throw malformed(`The body is nested deeper than ${MAX_JSON_DEPTH} levels at byte ${tooDeepAt}. Flatten it.`);
  }
  const text = decode(bytes);
  try {
    return { value: JSON.parse(text), hasHalves: mayHaveHalves(text) };
  } catch (cause) {
    const where = cause instanceof Error ? cause.message : `${text.length} characters`;
    throw malformed(`The body is not valid JSON (${where}; it has ${text.length} characters).`, cause);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw malformed('The body is not valid UTF-8. JSON is always sent as UTF-8.', cause);
  }
}

/** One pass without recursion over the raw bytes. What is no JSON at all is left for the parser to name. */
function firstTooDeep(bytes: Uint8Array): number {
  let depth = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return index;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
  }
  return -1;
}

/** The index of the quote that closes the string opened at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return bytes.length;
}

function malformed(message: string, cause?: unknown): AppError {
  return new AppError('malformed', message, { cause });
}
