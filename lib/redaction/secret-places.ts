import { BEGUN, isPlaceholder, type SecretSpan } from './secret-span';

/** Secrets that are known by where they stand: in a header, behind a name and a sign of assignment, behind an option. */

const QUOTE = String.raw`\\{0,4}["'\`]`;
const AUTHORIZATION = new RegExp(
  String.raw`authorization(?:${QUOTE})?\s{0,3}(?:=>|[:=,])\s{0,3}(?:\[\s{0,3})?(?:${QUOTE})?`,
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
const COOKIE = new RegExp(
  String.raw`(cookie(?:${QUOTE})?\s{0,3}[:,]\s{0,3}(?:${QUOTE})?)([^\r\n"'\`\\]{1,8192})`,
  'gi',
);

/** What a sentence about the header says behind its scheme. Any other word may be what somebody chose for a secret. */
const SAID_OF_IT =
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
      if (value === null || isPlaceholder(value[0])) continue;
      if (name === undefined ? isWord(value[0]) : SAID_OF_IT.test(value[0])) {
        if (isOpen && isUnfinished(text, value.index, value[0])) spans.push(span(value.index, value[0], BEGUN));
        continue;
      }
      upTo = value.index + value[0].length;
      spans.push(span(value.index, value[0], name === 'bearer' ? 'bearer-token' : 'authorization'));
    }
  }
  if (lower.includes('bearer')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(BEARER)) {
      if (!isWord(value)) spans.push(span(index + before.length, value, 'bearer-token'));
    }
    if (isOpen) addBegun(text, BEARER_BEGUN, spans);
  }
  if (lower.includes('cookie')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(COOKIE)) {
      if (value.includes('=')) spans.push(span(index + before.length, value, 'cookie'));
    }
  }
}

/**
 * The end of a name that says what its value is, and the sign that gives it the value. What the name begins with does
 * not matter: `GITHUB_TOKEN=`, `"accessToken": "`, `db.password => `.
 */
const NAMED = new RegExp(
  '(passwords?|passwd|passphrase|pwd|secret|token|credentials?|_auth|api[_-]?key|' +
    String.raw`(?:access|account|auth|client|encryption|master|private|secret|service|shared|signing)[_-]?key)(?:[_-]?\d{1,3})?` +
    String.raw`((?:${QUOTE})?\]?)(\s{0,3}(?:=>|:=|[:=])\s{0,3})(${QUOTE})?`,
  'gi',
);
const QUOTED: Readonly<Record<string, RegExp>> = {
  '"': /[^"\r\n]{1,8192}/y,
  "'": /[^'\r\n]{1,8192}/y,
  '`': /[^`\r\n]{1,8192}/y,
};
const UNQUOTED = /[^\s"'`,;&|(){}[\]<>]{1,8192}/y;
/** The name of what is out already. */
const MARK_BEGUN = /\[redacted: [a-z0-9-]*$/;
const HINTS = ['pass', 'pwd', 'secret', 'token', 'credential', '_auth', 'key'];

/** `--password hunter2`: an option and the argument behind it. */
const OPTION = /(\s--?[a-z][a-z-]{0,40}\s{1,3}["'`]?)(?!-)([^\s"'`]{6,4096})/gi;
const SECRET_OPTION = /(?:password|passwd|passphrase|token|secret|api-?key|access-key)\s{1,3}["'`]?$/i;
/** `?sig=…`: what signs a URL opens what it points to. */
const SIGNED = /([?&](?:sig|signature|x-amz-signature|x-goog-signature|key|auth)=)([^&\s"'`<>#]{16,4096})/gi;

/**
 * What is given a secret's name.
 *
 * @param isOpen whether the text may go on: then a value at its end is not known for a word, or for too short
 */
export function assignedSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (HINTS.some((hint) => lower.includes(hint))) {
    let upTo = 0;
    for (const match of text.matchAll(NAMED)) {
      const { 0: before, 1: name = '', 2: closing = '', 3: sign = '', 4: quote, index } = match;
      if (index < upTo || (closing.endsWith(']') && MARK_BEGUN.test(text.slice(Math.max(0, index - 48), index))))
        continue;
      const values = quote === undefined ? UNQUOTED : (QUOTED[quote.at(-1) ?? ''] as RegExp);
      values.lastIndex = index + before.length;
      const found = values.exec(text);
      if (found === null) continue;
      // an escaped quote closes with its backslashes
      const value = quote === undefined ? found[0] : found[0].replace(/\\{1,4}$/, '');
      const isProse = quote === undefined && closing === '' && (sign.includes(':') || /\s/.test(sign));
      if (!isSecretValue(value, name.toLowerCase(), isProse)) {
        const mayBecome = !isPlaceholder(value) && !FILE.test(value) && !value.startsWith('=');
        if (isOpen && mayBecome && isUnfinished(text, found.index, value)) spans.push(span(found.index, value, BEGUN));
        continue;
      }
      spans.push(span(found.index, value, kindOf(name)));
      upTo = found.index + value.length;
    }
    if (text.includes(' -')) {
      for (const { 1: before = '', 2: value = '', index } of text.matchAll(OPTION)) {
        if (!SECRET_OPTION.test(before) || isPlaceholder(value) || isWord(value)) continue;
        spans.push(span(index + before.length, value, 'secret'));
      }
      if (isOpen) addBegun(text, OPTION_BEGUN, spans);
    }
  }
  if (lower.includes('sig') || lower.includes('key=') || lower.includes('auth=')) {
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(SIGNED)) {
      spans.push(span(index + before.length, value, 'signature'));
    }
    if (isOpen) addBegun(text, SIGNED_BEGUN, spans);
  }
}

/** The same as above at the end of a text, however little there is of them. */
const BEARER_BEGUN = /(\bbearer\s{1,3})([A-Za-z0-9._~+/=-]{1,8192})$/i;
const OPTION_BEGUN =
  /(\s--?[a-z-]{0,40}(?:password|passwd|passphrase|token|secret|api-?key|access-key)\s{1,3}["'`]?)([^-\s"'`][^\s"'`]{0,4095})$/i;
const SIGNED_BEGUN = /([?&](?:sig|signature|x-amz-signature|x-goog-signature|key|auth)=)([^&\s"'`<>#]{1,4096})$/i;
/** How far back one of them can begin. */
const BEGUN_WITHIN = 8_300;

function addBegun(text: string, pattern: RegExp, spans: SecretSpan[]): void {
  const from = Math.max(0, text.length - BEGUN_WITHIN);
  const found = pattern.exec(text.slice(from));
  if (found === null) return;
  const { 1: before = '', 2: value = '', index } = found;
  const start = from + index + before.length;
  if (!isPlaceholder(value) && isUnfinished(text, start, value)) spans.push(span(start, value, BEGUN));
}

/** Whether a value goes up to the end of a text, and not as the last word of a sentence. */
function isUnfinished(text: string, start: number, value: string): boolean {
  return start + value.length === text.length && !/^[A-Za-z]?[a-z]*[.!?)]{1,3}$/.test(value);
}

/** What a value is, by the name it is given; null for a name that says nothing. */
export function namedKind(name: string, value: string): string | null {
  const found = [...`${name}=`.matchAll(NAMED)].at(-1);
  const word = found?.[1];
  if (word === undefined || found === undefined || found.index + found[0].length !== name.length + 1) {
    return /^(?:proxy-)?authorization$|^(?:set-)?cookie$/i.test(name) && value.length > 3 && !isPlaceholder(value)
      ? 'authorization'
      : null;
  }
  return isSecretValue(value, word.toLowerCase(), false) ? kindOf(word) : null;
}

const NOTHING = /^(?:null|none|nil|undefined|true|false|yes|no|unset|empty|missing|string|object|\[?redacted\]?)$/i;
/** A file that has it, not the secret itself. No base64 begins like this by chance. */
const FILE =
  /^(?:file:|~\/|\.{1,2}\/|[A-Za-z]:\\|\/(?:etc|home|root|usr|var|tmp|opt|mnt|srv|run|dev|proc|data|app|Users|Library|private|workspaces?)\/)/;

/** @param isProse the name and the value could be words of a sentence: `token: expected` */
function isSecretValue(value: string, name: string, isProse: boolean): boolean {
  if (value.startsWith('=') || isPlaceholder(value) || NOTHING.test(value) || FILE.test(value)) return false;
  if (/^pass/.test(name)) return value.length >= 3 && !(isProse && isWord(value));
  if (name === 'pwd' && /^[/\\]/.test(value)) return false;
  return value.length >= 6 && !/^\d{1,9}(?:\.\d+)?$/.test(value) && !(isProse && isWord(value));
}

function kindOf(name: string): string {
  if (/^pass|^pwd/i.test(name)) return 'password';
  if (/token|_auth/i.test(name)) return 'token';
  return /key/i.test(name) ? 'api-key' : 'secret';
}

/** A word of some language rather than something that was drawn: letters, of which at most the first is large, or all. */
function isWord(value: string): boolean {
  return /^(?:[A-Za-z]?[a-z]{0,22}|[A-Z]{1,16})(?:[-_/][a-z]{1,16}){0,2}[.!?:)]{0,3}$/.test(value);
}

function span(start: number, value: string, kind: string): SecretSpan {
  return { start, end: start + value.length, kind };
}
