import { openEnded } from './secret-shapes';
import {
  isBenign,
  isExpression,
  isPlaceholder,
  isUnfinished,
  isWord,
  pendingSpan,
  type SecretSpan,
  spanOf,
} from './secret-values';

/** `scheme://user:password@host`. The password may contain `@`. */
const URL_PASSWORD = /(:\/\/[^\s:@/"'`<>]{0,256}:)([^\s/"'`<>]{1,512})@/g;
/** `https://token@host`. */
const URL_TOKEN = /(:\/\/)([^\s:@/"'`<>]{20,512})@/g;

/** A URL whose `@` may still follow. A port or host name is shown. */
const PENDING_URL_PASSWORD = /:\/\/[^\s:@/"'`<>]{0,256}:([^\s/"'`<>]{1,512})$/;
const PENDING_URL_TOKEN =
  /:\/\/([^\s:@/."'`<>]{12,512}|[^\s:@/."'`<>A-Z]{0,11}(?:[A-Z]|\d[a-z])[^\s:@/."'`<>]{0,512})$/;

/** `host:port:database:user:password`, a line of `.pgpass`. */
const PGPASS =
  /(^|[\n"'`=> ])((?:[\w.*-]{1,253}|\\?\[[\da-f:]+\]):(?:\d{4,5}|\*):(?:[A-Za-z_][\w-]{0,63}|\*):(?:[A-Za-z_][\w.-]{0,63}|\*):)([^\s"'`\\]{3,256})/g;
/** Driver connection strings: `user:password@tcp(host)/db`, `user/password@host:1521/db`. */
const DRIVERS = [
  { hint: '@', pattern: /(\b[\w.-]{1,64}:)([^\s:/"'`(){}]{2,128})(?=@(?:tcp|unix|udp)\()/g },
  { hint: 'jdbc:oracle', pattern: /(jdbc:oracle:\w{1,8}:[\w.-]{1,64}\/)([^\s/"'`]{2,128})(?=@|$)/g },
];
const PENDING_DSN = /(["'`=][\w.-]{1,64}:)([^\s:/"'`(){}=]{1,128})(?:@(?:t|tc|tcp|u|un|uni|unix|ud|udp)?)?$/;
/** Query parameters. `code=…` and `key=…` count only here. */
const QUERY =
  /([?&](?:[\w-]{0,40}(?:sig|signature|key|auth|pass|pw|code|ticket|jwt|apikey|appid|sas|hash|hmac|otp)|x-amz-(?:signature|credential|security-token)|x-goog-signature)=)([^&\s"'`<>#\\]{8,4096})/gi;
const PENDING_QUERY = openEnded(QUERY);

/** Finds credentials in URLs, query strings, connection strings and `.pgpass` lines. */
export function urlSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  urlCredentials(text, spans);
  if (isOpen) pendingUrl(text, spans);
  if (/:(?:\d{4,5}|\*):/.test(text)) {
    for (const { 1: edge = '', 2: before = '', 3: value = '', index } of text.matchAll(PGPASS)) {
      const isKnown = /:(?:5432|5433|6432|5439|26257|\*):/.test(before);
      const start = index + edge.length + before.length;
      if (
        (isKnown && !isBenign(value)) ||
        (!isWord(value) && !isBenign(value) && !value.includes(':') && !/^\d+$/.test(value))
      )
        spans.push(spanOf(start, value, 'password'));
      else if (isOpen && start + value.length === text.length && !isWord(value)) spans.push(pendingSpan(start, text));
    }
  }
  for (const { hint, pattern } of DRIVERS) {
    if (!lower.includes(hint)) continue;
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(pattern)) {
      const start = index + before.length;
      if (!isBenign(value)) spans.push(spanOf(start, value, 'password'));
    }
  }
  if (isOpen) {
    const found = PENDING_DSN.exec(text.slice(-256));
    const value = found?.[2] ?? '';
    if (found !== null && !isBenign(value) && !isWord(value) && !/^\d+$/.test(value))
      spans.push(pendingSpan(text.length - found[0].length + (found[1] ?? '').length, text));
  }
  if (text.includes('?') || text.includes('&')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(QUERY)) {
      const start = index + before.length;
      const isSure = /(?:sig|signature|credential|security-token|apikey|api[_-]?key|pass|pw|otp)=$/i.test(before);
      if (isBenign(value) || (!isSure && !(value.length >= 16 && /\d/.test(value)))) continue;
      spans.push(spanOf(start, value, 'signature'));
    }
    const value = (isOpen ? PENDING_QUERY.exec(text.slice(-4_200))?.[2] : null) ?? '';
    if (value !== '' && !isBenign(value) && !isWord(value)) spans.push(pendingSpan(text.length - value.length, text));
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

function pendingUrl(text: string, spans: SecretSpan[]): void {
  const tail = text.slice(-1_024);
  if (!tail.includes('://')) return;
  for (const pattern of [PENDING_URL_PASSWORD, PENDING_URL_TOKEN]) {
    const secret = pattern.exec(tail)?.[1];
    if (secret === undefined || isPlaceholder(secret) || /^\d{1,5}[.,;:!?)]?$/.test(secret)) continue;
    spans.push(pendingSpan(text.length - secret.length, text));
  }
}

const QUOTE = String.raw`\\{0,4}["'\`]`;
const AUTHORIZATION = new RegExp(
  String.raw`authorization(?:${QUOTE}\s{0,3},|(?:${QUOTE})?\s{0,3}(?:=>|[:=]))\s{0,3}(?:\[\s{0,3})?(?:${QUOTE})?`,
  'gi',
);
const SCHEME = /(bearer|basic|token|negotiate|ntlm|apikey|dpop|key|digest|hawk|oauth|aws4-hmac-sha256)\s{1,3}/iy;
const ONE_VALUE = /[^\s"'`,;\\<>]{1,8192}/y;
/** Schemes with several values in one header. */
const MANY_VALUES: Readonly<Record<string, RegExp>> = {
  digest: /[^\r\n]{1,8192}/y,
  hawk: /[^\r\n]{1,8192}/y,
  oauth: /[^\r\n]{1,8192}/y,
  'aws4-hmac-sha256': /[^\r\n"'`]{1,8192}/y,
};
const BEARER = /(\bbearer\s{1,3})([A-Za-z0-9._~+/=-]{6,})/gi;
const PENDING_BEARER = openEnded(BEARER);
const COOKIE = new RegExp(
  String.raw`(cookie(?:${QUOTE})?\s{0,3}[:,]\s{0,3}(?:${QUOTE})?)([^\r\n"'\`\\]{1,8192})`,
  'gi',
);

/** A cookie's name and value rather than code. */
const COOKIE_PAIR = /^\s{0,8}[^\s=,(){}[\]]{1,256}=(?![=>\s]|\$\{|$)/;

/** Words that follow a scheme in prose. Any other word may be a secret. */
const SCHEME_PROSE =
  /^(?:auth|authentication|authorization|credentials?|expected|header|invalid|is|missing|not|or|required|scheme|tokens?|was)[.,:;!?)]*$/i;

/**
 * Finds credentials in HTTP headers.
 *
 * @param isOpen true if more text may follow: a word at the end is then pending
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
      // Code: a call, a comparison, the end of a pattern.
      if (!/\w/.test(value[0])) continue;
      if (name === undefined && (/^[=({[]/.test(value[0]) || isExpression(value[0]))) continue;
      if (name === undefined ? isWord(value[0].replace(/\W+$/, '')) : SCHEME_PROSE.test(value[0])) {
        if (isOpen && isUnfinished(text, value.index, value[0])) spans.push(pendingSpan(value.index, text));
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
    const value = (isOpen ? PENDING_BEARER.exec(text.slice(-8_300))?.[2] : null) ?? '';
    const start = text.length - value.length;
    if (value !== '' && !isPlaceholder(value) && isUnfinished(text, start, value)) spans.push(pendingSpan(start, text));
  }
  if (lower.includes('cookie')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(COOKIE)) {
      if (value.split(';').some((pair) => COOKIE_PAIR.test(pair)))
        spans.push(spanOf(index + before.length, value, 'cookie'));
    }
  }
}
