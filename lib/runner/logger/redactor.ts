import { stripVTControlCharacters } from 'node:util';
import { MAX_LOG_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { findSecrets } from '@interlude/protocol/redaction/find-secrets';
import type { SecretSpan } from '@interlude/protocol/redaction/secret-values';
import { utf8Length } from '@interlude/protocol/text';

/** Shorter secrets would redact ordinary words. */
const MIN_KNOWN_LENGTH = 12;
/** Characters searched beyond the kept part of a line, so that a secret across the cut is recognised. */
const LOOK_AHEAD = 8_192;
/** More lines than any private key has. */
const MAX_KEY_LINES = 400;
const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
/** A line between a private key's first and last one: base64, or one of the headers before it. */
const KEY_LINE = /^(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info|Comment|Version|Hash): .*|)$/;
const KEY_RUN = /[A-Za-z0-9+/=]{40,}/g;

export interface RedactedText {
  text: string;
  /** Number of redacted secrets. */
  redacted: number;
  /** Bytes cut off an overlong message. */
  missing: number;
}

/**
 * Replaces secrets in log messages by their kind: `[redacted: github-token]`.
 *
 * Ordering: a private key that arrives line by line is followed across the messages of a component.
 * Failure: never throws. Only the beginning of an overlong message is searched and kept.
 */
export class Redactor {
  readonly #known = new Set<string>();
  /** Components in the middle of a private key, with the number of its lines that may follow. */
  readonly #openKeys = new Map<string, number>();

  /** Redacts this text from now on, including its URL-encoded form. */
  addSecret(secret: string | undefined): void {
    if (secret === undefined || secret.length < MIN_KNOWN_LENGTH) return;
    this.#known.add(secret).add(encodeURIComponent(secret));
  }

  find(text: string): SecretSpan[] {
    return findSecrets(text, this.#known);
  }

  redact(component: string, message: string): RedactedText {
    const window = safeLength(message, MAX_LOG_MESSAGE_BYTES + LOOK_AHEAD);
    const isLong = message.length > MAX_LOG_MESSAGE_BYTES;
    const plain = plainText(isLong ? message.slice(0, window) : message);
    const keep = safeLength(plain, MAX_LOG_MESSAGE_BYTES);
    const spans = this.#keyLines(component, plain) ?? findSecrets(plain, this.#known);
    const { text, redacted, end } = redactSpans(plain, spans, keep);
    const missing = isLong ? utf8Length(plain.slice(end)) + utf8Length(message.slice(window)) : 0;
    return { text, redacted, missing };
  }

  /** The parts of a private key that an earlier message began; null if there is none. */
  #keyLines(component: string, text: string): SecretSpan[] | null {
    const remainingLines = this.#openKeys.get(component);
    this.#openKeys.delete(component);
    if (remainingLines === undefined) {
      this.#beginKey(component, text, MAX_KEY_LINES);
      return null;
    }
    const end = text.indexOf('-----END ');
    const isKeyLine = KEY_LINE.test(text.trim()) || end >= 0;
    const runs = isKeyLine ? [] : [...text.matchAll(KEY_RUN)];
    // An unrelated line ends the key.
    if (!isKeyLine && runs.length === 0) return null;
    if (end < 0) {
      if (remainingLines > 1) this.#openKeys.set(component, remainingLines - 1);
      const spans = isKeyLine ? [{ 0: text, index: 0 }] : runs;
      return spans
        .filter(({ 0: run }) => run !== '')
        .map(({ 0: run, index }) => ({ start: index, end: index + run.length, kind: 'private-key' }));
    }
    const close = text.indexOf('-----', end + 9);
    const upTo = close < 0 ? text.length : close + 5;
    this.#beginKey(component, text.slice(upTo), MAX_KEY_LINES);
    const rest = findSecrets(text.slice(upTo), this.#known);
    return [
      { start: 0, end: upTo, kind: 'private-key' },
      ...rest.map((span) => ({ ...span, start: span.start + upTo, end: span.end + upTo })),
    ];
  }

  #beginKey(component: string, text: string, lines: number): void {
    if (!text.includes('PRIVATE KEY')) return;
    const last = [...text.matchAll(KEY_BEGIN)].at(-1);
    if (last !== undefined && !text.includes('-----END ', last.index)) this.#openKeys.set(component, lines);
  }
}

/** The longest length up to this one that splits no surrogate pair. */
function safeLength(text: string, length: number): number {
  if (text.length <= length) return text.length;
  return /[\ud800-\udbff]/.test(text.charAt(length - 1)) ? length - 1 : length;
}

/** Redacts the text up to `keep`, or up to the end of a secret that crosses it. */
function redactSpans(text: string, spans: readonly SecretSpan[], keep: number) {
  const parts: string[] = [];
  let index = 0;
  let redacted = 0;
  for (const { start, end, kind } of spans) {
    if (start >= keep) break;
    parts.push(text.slice(index, start), `[redacted: ${kind}]`);
    index = end;
    redacted += 1;
  }
  const end = Math.max(index, keep);
  parts.push(text.slice(index, end));
  return { text: parts.join(''), redacted, end };
}

/** Removes control characters except line breaks. */
export function plainText(text: string): string {
  return (
    stripVTControlCharacters(text)
      .replace(/\t/g, ' ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are removed
      .replace(/[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '')
  );
}
