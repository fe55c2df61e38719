import { MAX_LOG_MESSAGE_BYTES } from './limits';

/** The first `length` UTF-16 code units of a text, without half a surrogate pair at the end. */
export function truncateText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, length > 0 && last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/** True for an http or https URL. */
export function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** Double quotes, their lookalikes (UTS 39), and adjacent single quotes with nothing visible between them. */
const DOUBLE_QUOTES =
  /[“-‟″‶〃〝-〟＂❝❞⹂ʺ˝ˮ˶״ײ\u1cd3\u{1f676}-\u{1f678}]|(?=.?[‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ])['`‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ](?:\p{DI}*['`‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ])+/gu;

/** Replaces double quotes in foreign text, so that it can't close the typographic quotes around it. */
export function withoutQuotes(text: string): string {
  return text.replace(DOUBLE_QUOTES, '"');
}

const encoder = () => new TextEncoder();

/** `… [12,345 bytes cut]` */
function mark(bytes: number): string {
  return `… [${bytes.toLocaleString('en-US')} bytes cut]`;
}

/**
 * A log message of at most `MAX_LOG_MESSAGE_BYTES` as UTF-8, including a mark that states the number of truncated
 * bytes. Never cuts within a character.
 *
 * @param missing bytes that were already truncated before
 */
export function truncateLogMessage(message: string, missing = 0): string {
  // A UTF-16 unit is 3 bytes at most: most messages need not be measured.
  if (missing === 0 && message.length * 3 <= MAX_LOG_MESSAGE_BYTES) return message;
  const bytes = utf8Length(message);
  if (missing === 0 && bytes <= MAX_LOG_MESSAGE_BYTES) return message;
  const room = MAX_LOG_MESSAGE_BYTES - encoder().encode(mark(bytes + missing)).byteLength;
  const { read, written } = encoder().encodeInto(message, new Uint8Array(room));
  return `${message.slice(0, read)}${mark(bytes - written + missing)}`;
}

/** Length of a text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  return encoder().encode(text).byteLength;
}
