import { MAX_LOG_MESSAGE_BYTES } from './limits';

const encoder = new TextEncoder();

/** `… [12,345 bytes cut]` */
function mark(bytes: number): string {
  return `… [${bytes.toLocaleString('en-US')} bytes cut]`;
}

/**
 * A log message that is no longer than a line may be, as UTF-8 and with its mark. What is cut off is said in bytes, and
 * a character is cut off whole.
 *
 * @param missing bytes that were cut off already, before the message came here
 */
export function cutLogMessage(message: string, missing = 0): string {
  // A UTF-16 unit is 3 bytes at most: most messages need not be measured.
  if (missing === 0 && message.length * 3 <= MAX_LOG_MESSAGE_BYTES) return message;
  const bytes = utf8Length(message);
  if (missing === 0 && bytes <= MAX_LOG_MESSAGE_BYTES) return message;
  const room = MAX_LOG_MESSAGE_BYTES - encoder.encode(mark(bytes + missing)).byteLength;
  const { read, written } = encoder.encodeInto(message, new Uint8Array(room));
  return `${message.slice(0, read)}${mark(bytes - written + missing)}`;
}

/** How many bytes a text has as UTF-8. */
export function utf8Length(text: string): number {
  return encoder.encode(text).byteLength;
}
