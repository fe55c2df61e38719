import { openEnded } from './open-ended';
import { BEGUN, isPlaceholder, type SecretSpan, spanOf } from './secret-span';
import { isExpression, isUnfinished, isWord } from './secret-values';

const QUOTE = String.raw`\\{0,4}["'\`]`;
const AUTHORIZATION = new RegExp(
  String.raw`authorization(?:${QUOTE}\s{0,3},|(?:${QUOTE})?\s{0,3}(?:=>|[:=]))\s{0,3}(?:\[\s{0,3})?(?:${QUOTE})?`,
  'gi',
);
const SCHEME = /(bearer|basic|token|negotiate|ntlm|apikey|dpop|key|digest|hawk|oauth|aws4-hmac-sha256)\s{1,3}/iy;
const ONE_VALUE = /[^\s"'`,;\\<>]{1,8192}/y;
/** These carry several values in one header. */
const MANY_VALUES: Readonly<Record<string, RegExp>> = {
  digest: /[^\r\n]{1,8192}/y,
  hawk: /[^\r\n]{1,8192}/y,
  oauth: /[^\r\n]{1,8192}/y,
  'aws4-hmac-sha256': /[^\r\n"'`]{1,8192}/y,
};
const BEARER = /(\bbearer\s{1,3})([A-Za-z0-9._~+/=-]{6,})/gi;
const BEARER_BEGUN = openEnded(BEARER);
const COOKIE = new RegExp(
  String.raw`(cookie(?:${QUOTE})?\s{0,3}[:,]\s{0,3}(?:${QUOTE})?)([^\r\n"'\`\\]{1,8192})`,
  'gi',
);

/** A name and a value, not code. */
const COOKIE_PAIR = /^\s{0,8}[^\s=,(){}[\]]{1,256}=(?![=>\s]|\$\{|$)/;

/** Words that follow the scheme in prose about the header. Any other word may be a chosen secret. */
const SCHEME_PROSE =
  /^(?:auth|authentication|authorization|credentials?|expected|header|invalid|is|missing|not|or|required|scheme|tokens?|was)[.,:;!?)]*$/i;

/**
 * The headers that carry credentials.
 *
 * @param isOpen whether the text may go on: then a value at its end is not known for a word
 */
export function credentialHeaders(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (lower.includes('authorization')) {
    let upTo = 0;
    for (const { 0: before, index } of text.matchAll(AUTHORIZATION)) {
      if (index < upTo) continue;
      const start = index + before.length;
      SCHEME.lastIndex = start;
      const scheme = SCHEME.exec(text);
      const name = scheme?.[1]?.toLowerCase();
      const values = (name === undefined ? undefined : MANY_VALUES[name]) ?? ONE_VALUE;
      values.lastIndex = start + (scheme?.[0].length ?? 0);
      const value = values.exec(text);
      if (value === null || isPlaceholder(value[0]) || /^[A-Za-z_]+(?:\.[A-Za-z_]+)+\(?$/.test(value[0])) continue;
      // code: a call, a comparison, the end of a pattern
      if (!/\w/.test(value[0])) continue;
      if (name === undefined && (/^[=({[]/.test(value[0]) || isExpression(value[0]))) continue;
      if (name === undefined ? isWord(value[0].replace(/\W+$/, '')) : SCHEME_PROSE.test(value[0])) {
        if (isOpen && isUnfinished(text, value.index, value[0])) spans.push(spanOf(value.index, value[0], BEGUN));
        continue;
      }
      upTo = value.index + value[0].length;
      spans.push(spanOf(value.index, value[0], name === 'bearer' ? 'bearer-token' : 'authorization'));
    }
  }
  if (lower.includes('bearer')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(BEARER)) {
      if (!isWord(value) && !/^[a-z_]+=$/.test(value)) spans.push(spanOf(index + before.length, value, 'bearer-token'));
    }
    const value = (isOpen ? BEARER_BEGUN.exec(text.slice(-8_300))?.[2] : null) ?? '';
    const start = text.length - value.length;
    if (value !== '' && !isPlaceholder(value) && isUnfinished(text, start, value))
      spans.push(spanOf(start, value, BEGUN));
  }
  if (lower.includes('cookie')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(COOKIE)) {
      if (value.split(';').some((pair) => COOKIE_PAIR.test(pair)))
        spans.push(spanOf(index + before.length, value, 'cookie'));
    }
  }
}
