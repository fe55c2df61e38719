import { isPasswordLabel, type NamedSecret, secretName } from './secret-names';

/** The context of a value in its text. */
export interface ValueContext {
  isQuoted: boolean;
  /** True if name and value may be prose or code: `token: expected`, `token = read()`. */
  isProse: boolean;
  /** The character after the value; empty at the end of the text. */
  next: string;
}

const NO_VALUE =
  /^[([]?(?:null|none|nil|undefined|true|false|yes|no|on|off|unset|empty|missing|n\/a|todo|tbd|fixme|optional|required|string|str|text|bytes|byte|object|any|unknown|never|number|integer|int|boolean|bool|(?:var)?char(?:\(\d+\))?|(?:ui|i)nt\d{0,2}(?:_t)?|float\d{0,2}|(?:(?:ui|i)nt|float)\d{1,2}(?:clamped)?array|&?'?(?:static )?str|SecretStr|password|include|omit|same-origin|pass(?:ed)?|fail(?:ed)?|skipped|ok|success|redacted|hidden|masked|omitted|filtered|sensitive|\(?\[?(?:redacted|filtered|hidden|masked|sensitive)(?: value)?\]?\)?|x{3,}|-+|\*+|•+|_+|\?+)[)\]]?[?!.]?$/i;
const DUMMY =
  /^(?:[<[({]?(?:your|my|the|some|enter|insert|replace|put|add|paste|provide|set|use|see|example|sample|dummy|fake)[-_ ][\w -]*?(?:key|token|password|passwd|secret|here|value|pass|id|this|me|with)\b.*|change[-_ ]?(?:me|this|it).*|replace[-_ ]?(?:me|this|with).*|(?:api|access|auth|secret)[-_](?:key|token)[-_]here)$/i;
/** A version range: `^9.0.2`, `>=1.2 <2`, `workspace:*`. */
const VERSIONS =
  /^(?:(?:[~^]|[<>]=?|=)?\s?v?\d{1,4}(?:\.(?:\d{1,5}|[x*])){1,3}(?:-[a-z]{2,8}[.-]?\d{0,8}(?:\.\d{1,8}){0,2})?(?:\s{0,2}\|\|\s{0,2}|\s{1,2}-?\s{0,2}|$)){1,6}$|^(?:workspace|catalog|link):[\w./~^*-]{0,64}$/;
/** A statement parameter, an escaped line break, the start of a regular expression, validator rules. */
const SYNTAX =
  /^(?::[A-Za-z_]+$|\\{1,4}[nrt]|\.[*+]|\[\^|\\[sSwWdD]|\(\?|\([\\[.]|(?:[a-z_]+(?::[\w,]+)?\|)*(?:required|nullable|sometimes|confirmed|string|(?:min|max):\d+)(?:\|[a-z_]+(?::[\w,]+)?)*$)/;
/** The location of a secret: a path, URL or vault reference. Random base64 does not start like these. */
const LOCATION =
  /^(?:[\w.-]{1,32}:(?=\/(?:etc|home|root|usr|var|tmp|opt|run)\/))?(?:file:|~\/|\.{1,2}\/|[A-Za-z]:[\\/]|\/(?:etc|home|root|usr|var|tmp|opt|mnt|srv|run|dev|proc|data|app|Users|Library|private|workspaces?|secrets|path)\/|https?:\/\/[^\s@]*$|arn:aws|op:\/\/|vault:|ref\+|projects\/[\w-]+\/secrets\/|secret(?:sManager)?:\/\/|keychain:|!(?:Ref|Sub|GetAtt|secret|vault|ImportValue)\b|ENC\[|@Microsoft\.KeyVault)/i;
const FILE_NAME =
  /^[\w./-]{1,80}\.(?:pem|key|crt|cer|p12|pfx|jks|txt|json|ya?ml|env|ts|tsx|js|mjs|py|go|rb|rs|java|md|so|conf|cfg|ini|html?|php|log|zip|7z|rar|tar|t?gz|bz2|xz)$/i;
/** A property path in code: `config.db.password`, `process.env.TOKEN`, `opts->secret`. */
const REFERENCE = /^[@&*!]?[A-Za-z_$]+(?:(?:\.|->|::|\?\.)#?[A-Za-z_$]+)+[!?]?$/;
/** A method call, a function call, or a generic type: `z.string().min(8)`, `Option<String>`. */
const EXPRESSION =
  /^[@&*!]{0,2}(?:[A-Za-z_$]+(?:\d{1,3}[A-Za-z_]*)?(?:(?:\.|->|::|\?\.)[A-Za-z_$]+(?:\d{1,3}[A-Za-z_]*)?)+[(<[]|[A-Za-z_$]+\((?:[^()]{0,200}\)(?:[;,.)}]{0,3}$|\.[A-Za-z])|\)?$)|[A-Za-z_]+(?:\[[A-Za-z_][A-Za-z_ .,|:[\]<>]*|<[&A-Za-z_][A-Za-z_ .,|:&[\]<>]*)[?;,)]{0,3}$|[A-Za-z_.]+$(?<=^[&*].*))/;
/** A caption: several words, the first capitalized. */
const CAPTION = /^\p{Lu}[\p{L}'’-]*(?: ["(]?[\p{L}'’-]+[,.:;)"]?)+(?:\.{2,3}|[?!…]{1,3})?$/u;
/** A sentence, recognised by a function word. */
const SENTENCE =
  /^(?=.*\b(?:is|are|was|must|should|cannot|can't|don't|doesn't|do not|your|the|please|too|at least)\b)\p{L}[\p{L}\d\s'’",.:;()-]*[?!…]*$/iu;
/** The name of a variable that holds a secret. */
const CONSTANT = /^(?=.*(?:PASS|PWD|SECRET|TOKEN|KEY))[A-Z]{2,}(?:_[A-Z]{2,})+[.,:;]?$/;
const IDENTIFIER = /^[@&*!$]?[A-Za-z_$][A-Za-z_$]*[!?]?$/;
/** A type name with a number: `Base64String`. */
const SIZED_TYPE = /^[A-Z][A-Za-z]{1,20}\d{1,3}(?:Array|Buffer|Bytes|Data|Digest|Hash|Key|String)$/;
/** The name of an algorithm, encoding or protocol. */
const TERM =
  /^(?:base(?:16|32|36|58|62|64)(?:url)?|sha\d{1,3}|md5|utf\d{1,2}|[ex]d?25519|secp256k1|argon2(?:id?|d)?|pbkdf2|oauth2?|saml2?|pkcs\d{1,2}|aes\d{3}|rsa\d{4}|[ehpr]s(?:256|384|512))$/i;
const KEYWORD =
  /^(?:await|new|function|async|typeof|lambda|if|return|this|self|super|not|is|read|get|load|fetch|input|prompt|getpass|require|import|from|let|const|var)$/;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** True for something that looks like a word: lower case, capitalized or all upper case. */
export function isWord(value: string): boolean {
  return /^(?:[A-Za-z]?[a-z]{0,22}|[A-Z]{1,16})(?:[-_/][a-z]{1,16}){0,2}(?:'s)?[.,!?:)]{0,3}$/.test(value);
}

/** True for the name of an algorithm, encoding or protocol, alone or among plain words: `base64-encoded`. */
export function isTerm(value: string): boolean {
  const parts = value.split(/[-_/.]/);
  return parts.some((part) => TERM.test(part)) && parts.every((part) => TERM.test(part) || isWord(part));
}

const ARGUMENTS: Readonly<Record<string, RegExp>> = {
  '"': /[^"\r\n\\]{1,4096}/y,
  "'": /[^'\r\n\\]{1,4096}/y,
  '`': /[^`\r\n\\]{1,4096}/y,
  '': /(?:[^\s"'`;|&<>\\]|\\(?!["'`nrt])){1,4096}/y,
};

/** The argument at an index, up to the end of its quote or word. @param quote the opening quote, if any */
export function argumentAt(text: string, start: number, quote = ''): string {
  const pattern = ARGUMENTS[quote.slice(-1)] as RegExp;
  pattern.lastIndex = start;
  return pattern.exec(text)?.[0] ?? '';
}

/** True for at least 16 random characters with letters and digits, without a path or words. */
export function looksRandom(value: string): boolean {
  if (value.length < 16 || !/^[A-Za-z0-9+/=_.~:!@#$%^&*-]+$/.test(value)) return false;
  if (/^[0-9a-f]+$/i.test(value)) return value.length >= 24 && /[a-f]/i.test(value) && /\d/.test(value);
  const hasDigit = (value.match(/\d/g) ?? []).length >= 2;
  const hasMixed = /[a-z]/.test(value) && /[A-Z]/.test(value);
  // Words and numbers form names: user-42-profile, agents/12/tasks.
  const parts = value.split(/[^A-Za-z0-9]+/).filter((part) => part !== '');
  if (parts.every((part) => isWord(part) || /^\d+$/.test(part) || /^v\d+$/.test(part))) return false;
  return hasDigit && (hasMixed || parts.some((part) => /[a-z]\d+[a-z]|\d[a-z]+\d/i.test(part)));
}

/** Like `looksRandom`, but also accepts generated passwords: letters mixed with digits and symbols. */
export function looksGenerated(value: string): boolean {
  if (looksRandom(value) || (/^[0-9a-f]{16,}$/.test(value) && /\d/.test(value) && /[a-f]/.test(value))) return true;
  if (value.length < 8 || isBenign(value) || /^[\w.+-]+@[\w-]+\.[\w.-]+$/.test(value)) return false;
  const isMixed = (part: string) => part.length >= 6 && /\d/.test(part) && /[a-z]/.test(part) && /[A-Z]/.test(part);
  if (!/^[A-Za-z0-9!@#$%^&*~+=._-]+$/.test(value)) return false;
  return (
    value.split(/[._-]/).some(isMixed) || (/[!@#$%^&*~]/.test(value) && /\d/.test(value) && /[A-Za-z]/.test(value))
  );
}

export function isReference(value: string): boolean {
  return REFERENCE.test(value);
}

export function isFileName(value: string): boolean {
  return FILE_NAME.test(value);
}

/** True for a value whose form rules out a secret: a dummy value, location, version, type or placeholder. */
export function isBenign(value: string): boolean {
  return (
    [NO_VALUE, DUMMY, LOCATION, SYNTAX, VERSIONS, SIZED_TYPE].some((pattern) => pattern.test(value)) ||
    isPlaceholder(value)
  );
}

/** True for an expression or type in code, judged without the text that follows. */
export function isExpression(value: string): boolean {
  return EXPRESSION.test(value);
}

/** True for a caption or message rather than a passphrase. */
export function isCaption(value: string, name = ''): boolean {
  if (!value.includes(' ') || /phrase|mnemonic/i.test(name) || /^[A-Z0-9]+(?:_[A-Z0-9]+)+$/.test(name)) return false;
  return CAPTION.test(value) || (value.split(' ').length > 2 && SENTENCE.test(value));
}

/** True for a secret that follows a secret's name; false for a placeholder, word, reference or count. */
export function isSecretValue(
  value: string,
  { kind, strength }: NamedSecret,
  name: string,
  place: ValueContext,
): boolean {
  if ((value.startsWith('=') && !place.isQuoted) || isBenign(value)) return false;
  if (!place.isQuoted && isCode(value, place)) return false;
  if (isInterpolated(value)) return false;
  if (isCaption(value, name) || isPasswordLabel(value) || CONSTANT.test(value)) return false;
  if (strength === 'weak') return isWeakSecret(value, name, kind);
  if (kind === 'authorization') return value.length >= 8 && /[\d=]/.test(value) && !/^\w+ [<${]/.test(value);
  if (kind === 'password') {
    const isCount = /^(?:pass|passes|pw|pwd)$/i.test(name) && /^\d{1,4}$/.test(value) && !place.isQuoted;
    if (/pwd$/i.test(name) && /^[/\\]/.test(value)) return false;
    return value.length >= 3 && !isCount && !(place.isProse && isWord(value));
  }
  if (value.length < 6 || /^\d{1,9}(?:\.\d+)?(?:[a-z]{1,2})?$/.test(value)) return false;
  // Code words: token types of a lexer, labels.
  if (isWord(value) && (kind !== 'secret' || /s$/i.test(name) || /^[A-Z][a-z]+$/.test(value))) return false;
  if (FILE_NAME.test(value) || /^#[0-9a-f]{3,8}$/i.test(value)) return false;
  return !(place.isProse && isWord(value)) && !/\s|^\/\^/.test(value);
}

/** True for words around template variables: `conformance-${id}`. */
function isInterpolated(value: string): boolean {
  return (
    value.includes('${') &&
    /^[A-Za-z]*(?:[-_.:=/]{1,2}[A-Za-z]+)*[-_.:=/]{0,2}$/.test(value.replaceAll(/\$\{[^{}]{0,200}\}/g, ''))
  );
}

/** True if a value at the end of a text may grow into a secret with this name. */
export function mayBecomeSecret(value: string, { strength }: NamedSecret): boolean {
  if (isPlaceholder(value) || /^[=~./]/.test(value)) return false;
  return strength === 'strong' || !isWord(value);
}

function isWeakSecret(value: string, name: string, kind: string): boolean {
  if (UUID.test(value) && !/key|token|auth|secret/i.test(name)) return false;
  if (kind === 'private-key')
    return /^(?:dp?|dq|qi)$/i.test(name) && /^[A-Za-z0-9+/=_-]{40,}$/.test(value) && /\d/.test(value);
  if (/(?:^|[^a-z])auth$|[a-z]Auth$/i.test(name) && /^[\w.@+-]{1,64}:(?!\/)(?=\D*\d)\S{4,}$/.test(value)) return true;
  if (/^auth$/i.test(name)) return looksRandom(value) || isBasicPair(value);
  if (/otp$/i.test(name)) return /^\d{4,8}$/.test(value) || looksRandom(value);
  if (/salt$|key$/i.test(name) && value.length >= 40 && /[^A-Za-z0-9\s]/.test(value) && !/^\S+:\/\//.test(value))
    return true;
  if (/^(?:code|pin|sid|seed|session|cookie|phrase|nonce|sig|signature)$/i.test(name)) return false;
  if (kind === 'password' || /^[A-Z][A-Z0-9_]+$/.test(name))
    return (
      looksRandom(value) ||
      (kind === 'password' && /\d|[^A-Za-z0-9_.:/-]/.test(value) && value.length >= 6 && !/^\d+$/.test(value))
    );
  return looksRandom(value);
}

/** True for base64 of `user:password`. */
export function isBasicPair(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{6,}={0,2}$/.test(value) || value.length % 4 === 1) return false;
  try {
    return /^[\x21-\x7e]{1,128}:[\x20-\x7e]+$/.test(atob(value));
  } catch {
    return false;
  }
}

/** True for a call, variable or type instead of a literal. */
function isCode(value: string, { isProse, next }: ValueContext): boolean {
  if (REFERENCE.test(value) || EXPRESSION.test(value)) return true;
  if (next === '(' && (EXPRESSION.test(`${value}(`) || /^[a-z]+(?:[A-Z][a-z]+\d{0,3})+$/.test(value))) return true;
  if (next === '(' && IDENTIFIER.test(value.replace(/^.*(?:\.|->|::)/, ''))) return true;
  if (/[[<]/.test(next) && IDENTIFIER.test(value)) return true;
  if (KEYWORD.test(value)) return isProse || next === ' ';
  if (!IDENTIFIER.test(value)) return false;
  if (isProse && (secretName(value) !== null || /^[a-z]+_[a-z_]+$/.test(value))) return true;
  if (isProse) return /[a-z][A-Z]|_/.test(value) && /[,;)}]/.test(next);
  // A call argument: connect(password=password).
  return (next === ')' || next === ',') && (secretName(value) !== null || isWord(value));
}

/** True if a value reaches the end of the text and does not end a sentence. */
export function isUnfinished(text: string, start: number, value: string): boolean {
  return start + value.length === text.length && !/^[A-Za-z]?[a-z]*[.!?)]{1,3}$/.test(value);
}

/** String content by quote. */
export const QUOTED: Readonly<Record<string, RegExp>> = {
  '"': /(?:[^"\\\r\n]|\\.){1,8192}/y,
  "'": /(?:[^'\\\r\n]|\\.){1,8192}/y,
  '`': /(?:[^`\\\r\n]|\\.){1,8192}/y,
};

/** Matches a sticky pattern at an index. */
export function matchAt(text: string, at: number, pattern: RegExp): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

/** A secret in a text: `[start, end)` in UTF-16 code units. */
export interface SecretSpan {
  start: number;
  end: number;
  kind: string;
}

const PLACEHOLDER =
  /^(?:…|\$[{(A-Za-z_]|\$\d{1,2}$|\{\{|\{[A-Za-z_.]{1,32}\}(?![\w$+/])|<|%[a-z](?![\w%])|\*+$|\.{2,}|\[redacted)/i;

/** True for a variable, an ellipsis, or the mark of a redacted secret. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}

export function spanOf(start: number, value: string, kind: string): SecretSpan {
  return { start, end: start + value.length, kind };
}

export function shiftedSpan({ start, end, kind }: SecretSpan, by: number): SecretSpan {
  return { start: start + by, end: end + by, kind };
}

/** Prefix of every redaction mark. */
export const MARK_PREFIX = '[redacted: ';

/** Replaces a secret in the output. */
export function redactionMark(kind: string): string {
  return `${MARK_PREFIX}${kind}]`;
}

/** Kind of a span that reaches the end of a text and may become a secret once the text continues. */
export const PENDING = 'pending';

/** Marks the end of a text as pending. */
export function pendingSpan(start: number, text: string): SecretSpan {
  return { start, end: text.length, kind: PENDING };
}
