import { addressSecrets } from './address-secrets';
import { assignedSecrets } from './assigned-secrets';
import { begunShapes } from './begun-shapes';
import { commandSecrets } from './command-secrets';
import { credentialHeaders } from './credential-headers';
import { jsonTables } from './json-tables';
import { phraseSecrets } from './phrase-secrets';
import { decodedReadings, joinedReading, mapped, ungutteredReading, unmarkedReading } from './readings';
import { BlockScan } from './secret-blocks';
import { shapedSecrets } from './secret-shapes';
import { BEGUN, type SecretSpan } from './secret-span';

/**
 * The secrets in a text, in its order, none overlapping another. Pure.
 *
 * Failure: it takes time in proportion to the text's length, whatever the text is.
 *
 * @param known secrets that go wherever they stand, whatever they look like
 */
export function findSecrets(text: string, known: Iterable<string> = []): SecretSpan[] {
  const spans: SecretSpan[] = [];
  for (const secret of known) {
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + secret.length)) {
      spans.push({ start: at, end: at + secret.length, kind: 'interlude-token' });
    }
  }
  spans.push(...new BlockScan().scan(text), ...ruleSecrets(text, false));
  return mergeSpans(spans);
}

/**
 * Applies the rules to the text as written, with its escapes decoded, without markup, without gutters, and with
 * each command on one line.
 *
 * @param isOpen whether the text may go on: then text at its end that may become a secret is a `BEGUN` span. Secrets come
 *   first in the result, so that they name a span that both find.
 */
export function ruleSecrets(text: string, isOpen: boolean): SecretSpan[] {
  const spans: SecretSpan[] = [];
  rules(text, spans, isOpen);
  const readings = decodedReadings(text);
  const decoded = readings.at(-1);
  const unguttered = ungutteredReading(text, decoded);
  const plain = [
    { reading: unmarkedReading(text, decoded), applied: BY_LABEL },
    { reading: joinedReading(text, decoded), applied: ACROSS_LINES },
    { reading: unguttered && joinedReading(text, unguttered), applied: ACROSS_LINES },
    { reading: unguttered && (unmarkedReading(text, unguttered) ?? unguttered), applied: BY_LABEL },
    // as written: markup is no part of a command, and only a text with gutters has this reading
    { reading: unguttered, applied: [commandSecrets] },
  ];
  for (const reading of readings) {
    const found: SecretSpan[] = [];
    rules(reading.text, found, isOpen);
    for (const span of found) spans.push(mapped(span, reading, text));
  }
  for (const { reading, applied } of plain) {
    if (reading === null) continue;
    const own: SecretSpan[] = [];
    for (const rule of applied) rule(reading.text, reading.text.toLowerCase(), own, isOpen);
    for (const span of own) spans.push(mapped(span, reading, text));
  }
  if (!isOpen) return spans;
  return [...spans.filter(({ kind }) => kind !== BEGUN), ...spans.filter(({ kind }) => kind === BEGUN)];
}

function rules(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const span of findKeys(text)) spans.push(span);
  shapedSecrets(text, spans);
  const lower = text.toLowerCase();
  for (const rule of PLACES) rule(text, lower, spans, isOpen);
  if (!isOpen) return;
  begunShapes(text, spans);
}

/** Rules for secrets that are known by what stands before them. */
const PLACES = [addressSecrets, credentialHeaders, assignedSecrets, commandSecrets, phraseSecrets, jsonTables];
/** The rules of PLACES that find a secret by its label; markup may stand between the two. */
const BY_LABEL = [credentialHeaders, assignedSecrets, phraseSecrets];
/** The rules of PLACES that find a secret on a later line of its command or label. */
const ACROSS_LINES = [...BY_LABEL, commandSecrets];

/** How the first line of a private key ends, however it is called. */
export const KEY_BEGIN = /-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----/g;
/** No key is longer, whatever stands on its lines besides. */
export const LONGEST_KEY = 128 * 1024;
/** A line of base64, which is no word; one of the headers before it. Blank lines stand between. */
export const KEY_LINE = /^(?:[A-Za-z0-9+/=]{24,}|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset|MessageID): .*)$/;
/** Behind the first of those a line is as short as it likes. */
export const KEY_REST = /^[A-Za-z0-9+/=]+$/;
/** What of a line can be part of a key where other things stand on it: a number, a time, quotes. */
export const KEY_RUN = /[A-Za-z0-9+/=]{40,}/g;
export const LONG_LINE = 1_024;
/** So many lines in a row that are no key's, and it has broken off. */
export const ODD_LINES = 3;

/** Private keys: to their last line, or as far as their lines look like a key's where that is missing. */
export function findKeys(text: string): SecretSpan[] {
  const spans: SecretSpan[] = [];
  if (!text.includes('PRIVATE KEY')) return spans;
  const begins = [...text.matchAll(KEY_BEGIN)];
  for (const [which, { 0: begin, 1: label, index }] of begins.entries()) {
    // Where the next one begins this one is over, so that each sign is looked at once.
    const key = text.slice(index, Math.min(begins[which + 1]?.index ?? text.length, index + LONGEST_KEY));
    const end = `-----END ${label}-----`;
    const last = key.indexOf(end, begin.length);
    const found = last < 0 ? brokenKey(key, begin.length) : [[0, last + end.length] as const];
    for (const [start, to] of found) spans.push({ start: index + start, end: index + to, kind: 'private-key' });
  }
  return spans;
}

/** @param text begins with the key's first line. @returns where it is, as far as its lines look like one */
function brokenKey(text: string, bodyFrom: number): (readonly [start: number, end: number])[] {
  const found: (readonly [number, number])[] = [];
  let [from, end] = [0, bodyFrom];
  let odd = 0;
  let hasBegun = false;
  for (let at = bodyFrom; at <= text.length && odd < ODD_LINES; ) {
    const newline = text.indexOf('\n', at);
    const lineEnd = newline < 0 ? text.length : newline;
    const line = text.slice(at, lineEnd);
    const said = line.length > LONG_LINE ? null : line.trim();
    const runs = [...line.matchAll(KEY_RUN)];
    if (said !== null && (KEY_LINE.test(said) || (hasBegun && KEY_REST.test(said)))) {
      [end, odd, hasBegun] = [lineEnd, 0, true];
    } else if (runs.length > 0) {
      [odd, hasBegun] = [0, true];
      for (const { 0: run, index } of runs) {
        // escaped line breaks make one line of a key
        if (at === bodyFrom) end = lineEnd;
        else {
          found.push([from, end]);
          [from, end] = [at + index, at + index + run.length];
        }
      }
    } else if (said !== '' && at > bodyFrom) odd += 1;
    if (newline < 0) break;
    at = newline + 1;
  }
  return [...found, [from, end]];
}

/** In order; what overlaps becomes one, named by whoever found it first. */
export function mergeSpans(spans: SecretSpan[]): SecretSpan[] {
  if (spans.length < 2) return spans;
  const rank = new Map(spans.map((span, index) => [span, index]));
  const ordered = [...spans].sort((a, b) => a.start - b.start);
  const result: { span: SecretSpan; rank: number }[] = [];
  for (const span of ordered) {
    const own = rank.get(span) ?? 0;
    const last = result.at(-1);
    if (last === undefined || span.start >= last.span.end) {
      result.push({ span: { ...span }, rank: own });
      continue;
    }
    last.span.end = Math.max(last.span.end, span.end);
    if (own < last.rank) Object.assign(last, { rank: own, span: { ...last.span, kind: span.kind } });
  }
  return result.map(({ span }) => span);
}
