import { openEnded } from './secret-shapes';
import {
  BEGUN,
  isExpression,
  isPlaceholder,
  isStandIn,
  isUnfinished,
  isWord,
  type SecretSpan,
  spanOf,
} from './secret-values';

/** `scheme://user:password@host`; a password may hold an `@` of its own. */
const URL_PASSWORD = /(:\/\/[^\s:@/"'`<>]{0,256}:)([^\s/"'`<>]{1,512})@/g;
/** `https://token@host`. */
const URL_TOKEN = /(:\/\/)([^\s:@/"'`<>]{20,512})@/g;

/** A URL in which an `@` may still come. What can only be a port, or reads as a host's name, is shown. */
const BEGUN_PASSWORD = /:\/\/[^\s:@/"'`<>]{0,256}:([^\s/"'`<>]{1,512})$/;
const BEGUN_URL_TOKEN = /:\/\/([^\s:@/."'`<>]{12,512}|[^\s:@/."'`<>A-Z]{0,11}(?:[A-Z]|\d[a-z])[^\s:@/."'`<>]{0,512})$/;

/** `host:port:database:user:password`, a line of `.pgpass`. */
const PGPASS =
  /(^|[\n"'`=> ])((?:[\w.*-]{1,253}|\\?\[[\da-f:]+\]):(?:\d{4,5}|\*):(?:[A-Za-z_][\w-]{0,63}|\*):(?:[A-Za-z_][\w.-]{0,63}|\*):)([^\s"'`\\]{3,256})/g;
/** A driver's `user:password@tcp(host)/db`, `user/password@host:1521/db`. */
const DRIVERS = [
  { hint: '@', pattern: /(\b[\w.-]{1,64}:)([^\s:/"'`(){}]{2,128})(?=@(?:tcp|unix|udp)\()/g },
  { hint: 'jdbc:oracle', pattern: /(jdbc:oracle:\w{1,8}:[\w.-]{1,64}\/)([^\s/"'`]{2,128})(?=@|$)/g },
];
const DSN_BEGUN = /(["'`=][\w.-]{1,64}:)([^\s:/"'`(){}=]{1,128})(?:@(?:t|tc|tcp|u|un|uni|unix|ud|udp)?)?$/;
/** `code=…` and `key=…` count in addresses only. */
const QUERY =
  /([?&](?:[\w-]{0,40}(?:sig|signature|key|auth|pass|pw|code|ticket|jwt|apikey|appid|sas|hash|hmac|otp)|x-amz-(?:signature|credential|security-token)|x-goog-signature)=)([^&\s"'`<>#\\]{8,4096})/gi;
const QUERY_BEGUN = openEnded(QUERY);

/** Secrets in addresses: URLs, their queries, and what drivers and `.pgpass` have in their place. */
export function addressSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  urlCredentials(text, spans);
  if (isOpen) begunUrl(text, spans);
  if (/:(?:\d{4,5}|\*):/.test(text)) {
    for (const { 1: edge = '', 2: before = '', 3: value = '', index } of text.matchAll(PGPASS)) {
      const isKnown = /:(?:5432|5433|6432|5439|26257|\*):/.test(before);
      const start = index + edge.length + before.length;
      if (
        (isKnown && !isStandIn(value)) ||
        (!isWord(value) && !isStandIn(value) && !value.includes(':') && !/^\d+$/.test(value))
      )
        spans.push(spanOf(start, value, 'password'));
      else if (isOpen && start + value.length === text.length && !isWord(value))
        spans.push({ start, end: text.length, kind: BEGUN });
    }
  }
  for (const { hint, pattern } of DRIVERS) {
    if (!lower.includes(hint)) continue;
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(pattern)) {
      const start = index + before.length;
      if (!isStandIn(value)) spans.push(spanOf(start, value, 'password'));
    }
  }
  if (isOpen) {
    const found = DSN_BEGUN.exec(text.slice(-256));
    const value = found?.[2] ?? '';
    if (found !== null && !isStandIn(value) && !isWord(value) && !/^\d+$/.test(value))
      spans.push({ start: text.length - found[0].length + (found[1] ?? '').length, end: text.length, kind: BEGUN });
  }
  if (text.includes('?') || text.includes('&')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(QUERY)) {
      const start = index + before.length;
      const isSure = /(?:sig|signature|credential|security-token|apikey|api[_-]?key|pass|pw|otp)=$/i.test(before);
      if (isStandIn(value) || (!isSure && !(value.length >= 16 && /\d/.test(value)))) continue;
      spans.push(spanOf(start, value, 'signature'));
    }
    const value = (isOpen ? QUERY_BEGUN.exec(text.slice(-4_200))?.[2] : null) ?? '';
    if (value !== '' && !isStandIn(value) && !isWord(value))
      spans.push({ start: text.length - value.length, end: text.length, kind: BEGUN });
  }
}

function urlCredentials(text: string, spans: SecretSpan[]): void {
  if (!text.includes('://') || !text.includes('@')) return;
  for (const pattern of [URL_PASSWORD, URL_TOKEN]) {
    for (const { 1: before = '', 2: secret = '', index } of text.matchAll(pattern)) {
      if (isPlaceholder(secret) || (pattern === URL_TOKEN && !/\d/.test(secret))) continue;
      const start = index + before.length;
      spans.push(spanOf(start, secret, 'url-password'));
    }
  }
}

function begunUrl(text: string, spans: SecretSpan[]): void {
  const tail = text.slice(-1_024);
  if (!tail.includes('://')) return;
  for (const pattern of [BEGUN_PASSWORD, BEGUN_URL_TOKEN]) {
    const secret = pattern.exec(tail)?.[1];
    if (secret === undefined || isPlaceholder(secret) || /^\d{1,5}[.,;:!?)]?$/.test(secret)) continue;
    spans.push({ start: text.length - secret.length, end: text.length, kind: BEGUN });
  }
}

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
