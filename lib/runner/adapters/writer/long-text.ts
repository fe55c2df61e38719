import { truncateText } from '@interlude/protocol/text';

/** UTF-16 units of one delta: below MAX_RECORD_BYTES even where JSON writes each of them as `\u0000`. */
const MAX_DELTA = 128 * 1024;
/** JSON writes a unit in at most as many bytes. */
const MAX_BYTES_PER_UNIT = 6;

/** A text in parts that each fit into a record; none of them ends inside a surrogate pair. */
export function deltasOf(text: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const part = truncateText(text.slice(at, at + MAX_DELTA + 1), MAX_DELTA);
    parts.push(part);
    at += part.length;
  }
  return parts;
}

/**
 * Cuts a text that can't come in parts, and adds a note of how much is missing.
 *
 * @param maxBytes most bytes of the text as JSON, without that note
 */
export function fittingText(text: string, maxBytes = 768 * 1024): string {
  let kept = truncateText(text, maxBytes);
  while (kept.length * MAX_BYTES_PER_UNIT > maxBytes && jsonBytes(kept) > maxBytes) {
    kept = truncateText(kept, Math.floor(kept.length * 0.75));
  }
  if (kept.length === text.length) return text;
  return withCut(kept, text.length - kept.length);
}

/** The beginning of a text, with a note of how many characters it lacks. */
export function withCut(kept: string, cut: number): string {
  return cut === 0 ? kept : `${kept}\n… [${cut.toLocaleString('en')} characters cut]`;
}

/** Bytes of a text as JSON in UTF-8. */
export function jsonBytes(text: string): number {
  return new TextEncoder().encode(JSON.stringify(text)).length;
}
