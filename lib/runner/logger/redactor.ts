import { stripVTControlCharacters } from 'node:util';
import { MAX_LOG_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { utf8Length } from '@interlude/protocol/log-text';
import { findSecrets } from '@interlude/protocol/redaction/find-secrets';
import type { SecretSpan } from '@interlude/protocol/redaction/secret-span';

/** Shorter ones would take ordinary words out of every line. */
const SHORTEST_KNOWN = 12;
/** Beyond what is kept of a line, so that a secret at the cut is known for one by its whole. */
const LOOK_AHEAD = 8_192;
/** A private key has fewer lines. */
const MAX_KEY_LINES = 400;
const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
/** A line between a private key's first and last one: base64, or one of the headers before it. */
const KEY_LINE = /^(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info|Comment|Version|Hash): .*|)$/;
const KEY_RUN = /[A-Za-z0-9+/=]{40,}/g;

export interface RedactedText {
  text: string;
  /** How many secrets were taken out. */
  redacted: number;
  /** Bytes at the end of a message beyond what a line may hold, which nobody looked at. */
  missing: number;
}

/**
 * Takes the secrets out of log messages. What is taken out leaves its kind: `[redacted: github-token]`.
 *
 * Ordering: a private key that comes line by line is followed from one message of a component to its next.
 * Failure: nothing throws, and however long a message is, only its beginning is looked at and kept.
 */
export class Redactor {
  readonly #known = new Set<string>();
  /** Components in the middle of a private key, with how many of its lines may still come. */
  readonly #openKeys = new Map<string, number>();

  /** From now on it goes wherever it stands, also as part of an address. */
  learn(secret: string | undefined): void {
    if (secret === undefined || secret.length < SHORTEST_KNOWN) return;
    this.#known.add(secret).add(encodeURIComponent(secret));
  }

  /** Where the secrets of a text are. */
  find(text: string): SecretSpan[] {
    return findSecrets(text, this.#known);
  }

  /** @param component whose message it is */
  redact(component: string, message: string): RedactedText {
    const window = wholeUpTo(message, MAX_LOG_MESSAGE_BYTES + LOOK_AHEAD);
    const isLong = message.length > MAX_LOG_MESSAGE_BYTES;
    const plain = plainText(isLong ? message.slice(0, window) : message);
    const keep = wholeUpTo(plain, MAX_LOG_MESSAGE_BYTES);
    const spans = this.#keyLines(component, plain) ?? findSecrets(plain, this.#known);
    const { text, redacted, end } = withoutSpans(plain, spans, keep);
    const missing = isLong ? utf8Length(plain.slice(end)) + utf8Length(message.slice(window)) : 0;
    return { text, redacted, missing };
  }

  /** What is in this message of a key that an earlier one began; null when none is under way. */
  #keyLines(component: string, text: string): SecretSpan[] | null {
    const left = this.#openKeys.get(component);
    this.#openKeys.delete(component);
    if (left === undefined) {
      this.#beginKey(component, text, MAX_KEY_LINES);
      return null;
    }
    const end = text.indexOf('-----END ');
    const isWhole = KEY_LINE.test(text.trim()) || end >= 0;
    const runs = isWhole ? [] : [...text.matchAll(KEY_RUN)];
    // something else is said now: the key broke off
    if (!isWhole && runs.length === 0) return null;
    if (end < 0) {
      if (left > 1) this.#openKeys.set(component, left - 1);
      const spans = isWhole ? [{ 0: text, index: 0 }] : runs;
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

/** A length up to this one that leaves no half of a character. */
function wholeUpTo(text: string, length: number): number {
  if (text.length <= length) return text.length;
  return /[\ud800-\udbff]/.test(text.charAt(length - 1)) ? length - 1 : length;
}

/** @returns the text up to `keep`, or to the end of a secret that reaches beyond; `end`: how far that is */
function withoutSpans(text: string, spans: readonly SecretSpan[], keep: number) {
  const parts: string[] = [];
  let at = 0;
  let redacted = 0;
  for (const { start, end, kind } of spans) {
    if (start >= keep) break;
    parts.push(text.slice(at, start), `[redacted: ${kind}]`);
    at = end;
    redacted += 1;
  }
  const end = Math.max(at, keep);
  parts.push(text.slice(at, end));
  return { text: parts.join(''), redacted, end };
}

/** Without colours and control characters, but with its line breaks. */
export function plainText(text: string): string {
  return (
    stripVTControlCharacters(text)
      .replace(/\t/g, ' ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
      .replace(/[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '')
  );
}
