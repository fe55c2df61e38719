import { assignedSecrets } from './assigned-secrets';
import { commandSecrets } from './command-secrets';
import { jsonTables } from './html-json-tables';
import {
  toOriginalSpan,
  unescapedTexts,
  unmapped,
  withJoinedLines,
  withoutGutters,
  withoutMarkup,
} from './normalize-text';
import { phraseSecrets } from './phrase-secrets';
import { BlockScan } from './secret-blocks';
import { pendingShapes, shapedSecrets } from './secret-shapes';
import { PENDING, type SecretSpan } from './secret-values';
import { credentialHeaders, urlSecrets } from './url-secrets';

/**
 * Finds the secrets in a text, in text order and without overlaps.
 *
 * Failure: never throws; time is linear in the length of any text.
 *
 * @param known secrets to find verbatim, whatever their form
 */
export function findSecrets(text: string, known: Iterable<string> = []): SecretSpan[] {
  const spans: SecretSpan[] = [];
  for (const secret of known) {
    for (let index = text.indexOf(secret); index >= 0; index = text.indexOf(secret, index + secret.length)) {
      spans.push({ start: index, end: index + secret.length, kind: 'interlude-token' });
    }
  }
  spans.push(...new BlockScan().scan(text), ...ruleSecrets(text, false));
  return mergeSpans(spans);
}

/**
 * Applies the rules to the text as written, with escapes decoded, without markup, without gutters, and with each
 * command on one line.
 *
 * @param isOpen true if more text may follow: the start of a possible secret at the end is then a `PENDING` span. These
 *   come last, so that `mergeSpans` keeps the kind of a known secret.
 */
export function ruleSecrets(text: string, isOpen: boolean): SecretSpan[] {
  const spans: SecretSpan[] = [];
  rules(text, spans, isOpen);
  const unescaped = unescapedTexts(text);
  const decoded = unescaped.at(-1) ?? unmapped(text);
  const plain = withoutGutters(decoded);
  const normalized = [
    { source: withoutMarkup(decoded), applied: BY_LABEL },
    { source: withJoinedLines(decoded), applied: ACROSS_LINES },
    { source: plain && withJoinedLines(plain), applied: ACROSS_LINES },
    { source: plain && (withoutMarkup(plain) ?? plain), applied: BY_LABEL },
    // Shell commands contain no markup.
    { source: plain, applied: [commandSecrets] },
  ];
  for (const source of unescaped) {
    const found: SecretSpan[] = [];
    rules(source.text, found, isOpen);
    for (const span of found) spans.push(toOriginalSpan(span, source, text));
  }
  for (const { source, applied } of normalized) {
    if (source === null) continue;
    const found: SecretSpan[] = [];
    for (const rule of applied) rule(source.text, source.text.toLowerCase(), found, isOpen);
    for (const span of found) spans.push(toOriginalSpan(span, source, text));
  }
  if (!isOpen) return spans;
  return [...spans.filter(({ kind }) => kind !== PENDING), ...spans.filter(({ kind }) => kind === PENDING)];
}

function rules(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const span of findKeys(text)) spans.push(span);
  shapedSecrets(text, spans);
  const lower = text.toLowerCase();
  for (const rule of PLACES) rule(text, lower, spans, isOpen);
  if (isOpen) pendingShapes(text, spans);
}

/** Rules that recognise a secret by the text before it. */
const PLACES = [urlSecrets, credentialHeaders, assignedSecrets, commandSecrets, phraseSecrets, jsonTables];
/** Rules of PLACES that allow markup between a label and its secret. */
const BY_LABEL = [credentialHeaders, assignedSecrets, phraseSecrets];
/** Rules of PLACES that allow a line break between a command or label and its secret. */
const ACROSS_LINES = [...BY_LABEL, commandSecrets];

/** First line of a private key of any type. */
export const KEY_BEGIN = /-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----/g;
/** Longest private key in UTF-16 code units, including any prefix on each line. */
const MAX_KEY_LENGTH = 128 * 1024;
/** A line of base64 too long for a word, or a PEM header. */
const KEY_LINE = /^(?:[A-Za-z0-9+/=]{24,}|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset|MessageID): .*)$/;
/** A line of base64 after the first KEY_LINE, of any length. */
const KEY_TAIL = /^[A-Za-z0-9+/=]+$/;
/** Base64 within a line that has other content: a line number, a time, quotes. */
const KEY_RUN = /[A-Za-z0-9+/=]{40,}/g;
const MAX_LINE = 1_024;
/** Consecutive lines without base64 that end a truncated key. */
const MAX_ODD_LINES = 3;

/** Finds private keys. A key without its last line ends where its lines stop looking like base64. */
export function findKeys(text: string): SecretSpan[] {
  const spans: SecretSpan[] = [];
  if (!text.includes('PRIVATE KEY')) return spans;
  const begins = [...text.matchAll(KEY_BEGIN)];
  for (const [number, { 0: begin, 1: label, index }] of begins.entries()) {
    // Stopping at the next key keeps the scan linear.
    const key = text.slice(index, Math.min(begins[number + 1]?.index ?? text.length, index + MAX_KEY_LENGTH));
    const end = `-----END ${label}-----`;
    const last = key.indexOf(end, begin.length);
    const found = last < 0 ? brokenKey(key, begin.length) : [[0, last + end.length] as const];
    for (const [start, to] of found) spans.push({ start: index + start, end: index + to, kind: 'private-key' });
  }
  return spans;
}

/** @param text starts with the key's first line @returns the ranges that look like parts of the key */
function brokenKey(text: string, bodyFrom: number): (readonly [start: number, end: number])[] {
  const found: (readonly [number, number])[] = [];
  let [from, end] = [0, bodyFrom];
  let oddLines = 0;
  let hasKeyLine = false;
  for (let at = bodyFrom; at <= text.length && oddLines < MAX_ODD_LINES; ) {
    const newline = text.indexOf('\n', at);
    const lineEnd = newline < 0 ? text.length : newline;
    const line = text.slice(at, lineEnd);
    const trimmed = line.length > MAX_LINE ? null : line.trim();
    const runs = [...line.matchAll(KEY_RUN)];
    if (trimmed !== null && (KEY_LINE.test(trimmed) || (hasKeyLine && KEY_TAIL.test(trimmed)))) {
      [end, oddLines, hasKeyLine] = [lineEnd, 0, true];
    } else if (runs.length > 0) {
      [oddLines, hasKeyLine] = [0, true];
      for (const { 0: run, index } of runs) {
        // With escaped line breaks, the whole key is on its first line.
        if (at === bodyFrom) end = lineEnd;
        else {
          found.push([from, end]);
          [from, end] = [at + index, at + index + run.length];
        }
      }
    } else if (trimmed !== '' && at > bodyFrom) oddLines += 1;
    if (newline < 0) break;
    at = newline + 1;
  }
  return [...found, [from, end]];
}

/**
 * Finds where a private key ends while the text arrives, reading each line once.
 *
 * Ordering: the key ends at its last line, the start of another key, MAX_ODD_LINES lines that belong to no key, or
 * MAX_KEY_LENGTH, whichever comes first.
 */
export class KeyWatch {
  /** Index of the key's first line in the text. */
  readonly at: number;
  readonly #lastLine: string;
  /** Index of the first unread line. */
  #next: number;
  #isFirst = true;
  #oddLines = 0;
  #hasKeyLine = false;

  constructor(at: number, firstLine: string) {
    this.at = at;
    this.#lastLine = firstLine.replace('BEGIN', 'END');
    this.#next = at + firstLine.length;
  }

  /** @param text all text so far @returns the index after the key; null while more text may extend it */
  end(text: string): number | null {
    const limit = this.at + MAX_KEY_LENGTH;
    for (;;) {
      const newline = text.indexOf('\n', this.#next);
      const lineEnd = newline < 0 ? text.length : newline + 1;
      const last = text.slice(this.#next, lineEnd).indexOf(this.#lastLine);
      const other = text.slice(this.#next, lineEnd).search(KEY_BEGIN.source);
      if (other >= 0 && (last < 0 || other < last)) return this.#isFirst ? this.#next + other : this.#next;
      if (last >= 0) return Math.min(this.#next + last + this.#lastLine.length, limit);
      if (lineEnd >= limit) return limit;
      if (newline < 0) return null;
      this.#readLine(text.slice(this.#next, newline));
      this.#next = lineEnd;
      if (this.#oddLines >= MAX_ODD_LINES) return lineEnd;
    }
  }

  #readLine(line: string): void {
    const trimmed = line.length > MAX_LINE ? null : line.trim();
    const isKeyLine = trimmed !== null && (KEY_LINE.test(trimmed) || (this.#hasKeyLine && KEY_TAIL.test(trimmed)));
    if (isKeyLine || line.search(KEY_RUN) >= 0) {
      this.#oddLines = 0;
      this.#hasKeyLine = true;
    } else if (trimmed !== '' && !this.#isFirst) this.#oddLines += 1;
    this.#isFirst = false;
  }
}

/** Sorts spans and merges overlapping ones; a merged span has the kind of the one that comes first in `spans`. */
export function mergeSpans(spans: SecretSpan[]): SecretSpan[] {
  if (spans.length < 2) return spans;
  const rank = new Map(spans.map((span, index) => [span, index]));
  const ordered = [...spans].sort((a, b) => a.start - b.start);
  const result: { span: SecretSpan; rank: number }[] = [];
  for (const span of ordered) {
    const spanRank = rank.get(span) ?? 0;
    const last = result.at(-1);
    if (last === undefined || span.start >= last.span.end) {
      result.push({ span: { ...span }, rank: spanRank });
      continue;
    }
    last.span.end = Math.max(last.span.end, span.end);
    if (spanRank < last.rank) Object.assign(last, { rank: spanRank, span: { ...last.span, kind: span.kind } });
  }
  return result.map(({ span }) => span);
}
