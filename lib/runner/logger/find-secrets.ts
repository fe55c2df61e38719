import { assignedSecrets, credentialHeaders } from './secret-places';
import { SECRET_SHAPES } from './secret-shapes';
import { isPlaceholder, type SecretSpan } from './secret-span';

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
  privateKeys(text, spans);
  for (const { kind, hint, pattern } of SECRET_SHAPES) {
    if (!text.includes(hint)) continue;
    for (const { 0: secret, index } of text.matchAll(pattern)) {
      spans.push({ start: index, end: index + secret.length, kind });
    }
  }
  urlCredentials(text, spans);
  const lower = text.toLowerCase();
  credentialHeaders(text, lower, spans);
  assignedSecrets(text, lower, spans);
  return merged(spans);
}

/** How the first line of a private key ends, however it is called. */
const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const KEY_END = '-----END ';

/** From its first line to its last one, or to the text's end where it breaks off. */
function privateKeys(text: string, spans: SecretSpan[]): void {
  if (!text.includes('PRIVATE KEY')) return;
  let upTo = 0;
  for (const { 0: begin, index } of text.matchAll(KEY_BEGIN)) {
    if (index < upTo) continue;
    const last = text.indexOf(KEY_END, index + begin.length);
    const close = last < 0 ? -1 : text.indexOf('-----', last + KEY_END.length);
    upTo = close < 0 ? text.length : close + 5;
    spans.push({ start: index, end: upTo, kind: 'private-key' });
  }
}

/** `scheme://user:password@host`; a password may hold an `@` of its own. */
const URL_PASSWORD = /(:\/\/[^\s:@/"'`<>]{0,256}:)([^\s/"'`<>]{1,512})@/g;
/** `https://token@host`. */
const URL_TOKEN = /(:\/\/)([^\s:@/"'`<>]{20,512})@/g;

function urlCredentials(text: string, spans: SecretSpan[]): void {
  if (!text.includes('://') || !text.includes('@')) return;
  for (const pattern of [URL_PASSWORD, URL_TOKEN]) {
    for (const { 1: before = '', 2: secret = '', index } of text.matchAll(pattern)) {
      if (isPlaceholder(secret) || (pattern === URL_TOKEN && !/\d/.test(secret))) continue;
      const start = index + before.length;
      spans.push({ start, end: start + secret.length, kind: 'url-password' });
    }
  }
}

/** In order; what overlaps becomes one, named by whoever found it first. */
function merged(spans: SecretSpan[]): SecretSpan[] {
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
