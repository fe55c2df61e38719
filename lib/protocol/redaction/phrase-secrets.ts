import { BARE, LABELLED, NOT_QUOTE, type Phrase, Q } from './labelled-phrases';
import { isPasswordLabel, NAME_HINT, secretName } from './secret-names';
import { openEnded } from './secret-shapes';
import {
  argumentAt,
  BEGUN,
  isCaption,
  isExpression,
  isFileName,
  isReference,
  isSecretValue,
  isStandIn,
  isTerm,
  isUnfinished,
  isWord,
  looksDrawn,
  looksRandom,
  type SecretSpan,
  spanOf,
} from './secret-values';

/** In a statement of SQL, not in a sentence. */
const IDENTIFIED = String.raw`\b(?:create|alter|grant|set|user|role|change|@)\b[^\n;]{0,160}?\bidentified`;
const CLOSED: readonly Phrase[] = [
  // SQL
  {
    kind: 'password',
    hints: ['identified'],
    pattern: new RegExp(
      `(${IDENTIFIED}\\s{1,8}(?:with\\s{1,8}\\S{1,64}\\s{1,8})?(?:by|as)\\s{1,8}(?:password\\s{1,8}|values?\\s{1,8})?${Q})(${NOT_QUOTE}{1,512})`,
      'gi',
    ),
  },
  {
    kind: 'password',
    hints: ['identified'],
    pattern: new RegExp(
      `(${IDENTIFIED}\\s{1,8}by\\s{1,8})(?!(?:values|password|random|the|their|its|an?|his|her|your|our|this|that|one|each|name|email|id)\\b)([^\\s"'\`;\\\\]{3,512})`,
      'gi',
    ),
  },
  {
    kind: 'password',
    hints: ['password'],
    pattern: new RegExp(`(\\bpassword(?:\\s{1,4}|\\s{0,4}[(=]\\s{0,4})${Q})(${NOT_QUOTE}{3,512})`, 'g'),
    unless: 'word',
  },
  {
    kind: 'password',
    hints: ['password'],
    pattern: new RegExp(
      `(\\bPASSWORD(?:\\s{1,4}|\\s{0,4}[(=]\\s{0,4}|\\s{1,4}FOR\\s{1,4}\\S{1,80}\\s{1,4}(?:=|TO)\\s{0,4})${Q})(${NOT_QUOTE}{1,512})`,
      'g',
    ),
  },
  // .netrc, on one line or on several
  {
    kind: 'password',
    hints: ['machine', 'default'],
    pattern:
      /((?:\bmachine\s{1,4}\S{1,256}|\bdefault)\s{1,8}(?:(?:login|user|account)\s{1,4}\S{1,256}\s{1,8}){0,2}password\s{1,4}["']?)([^\s"']{1,512})/g,
  },
  {
    kind: 'password',
    hints: ['login'],
    pattern: /((?:^|\n)[ \t]{0,8}login\s{1,4}\S{1,256}\s{1,8}password\s{1,4})(\S{1,512})/g,
  },
  // FTP, POP3, IRC; IMAP and SMTP; Redis
  {
    kind: 'password',
    hints: ['pass '],
    pattern: /((?:^|[\r\n"'`]|> |C: )\s{0,2}PASS )([^\s:"'`]{3,512})(?=[\r\n"'`]|$)/g,
  },
  {
    kind: 'password',
    hints: ['login '],
    pattern: new RegExp(
      `((?:\\b[A-Za-z]{0,4}\\d{1,6} |(?:^|[\\n"'\`]))LOGIN ${Q}?${BARE}{1,128}${Q}? ${Q}?)(${BARE}{1,512})`,
      'g',
    ),
  },
  { kind: 'authorization', hints: ['auth '], pattern: /(\bAUTH (?:PLAIN|LOGIN|XOAUTH2) )([A-Za-z0-9+/=]{4,4096})/g },
  {
    kind: 'password',
    hints: ['auth '],
    pattern:
      /((?:^|[\n"'`]|> |\bredis(?:-cli)?(?: -\w{1,4} [\w.-]{1,64}){0,4} )\s{0,2}AUTH (?!PLAIN|LOGIN|TLS|SSL|XOAUTH2|CRAM)(?:default )?["']?)([^\s"']{3,512})(?=["']?(?:[\r\n,}]|$))/g,
  },
  // Cisco, Juniper, FortiOS
  {
    kind: 'password',
    hints: ['password', 'secret', 'key', 'md5'],
    pattern:
      /(\b(?:enable|username (?!and\b|or\b|with\b)\S{1,64}(?: privilege \d{1,2})?) (?:secret|password) (?:\d{1,2} )?)([^\s"']{3,256})/g,
  },
  {
    kind: 'password',
    hints: ['password', 'key'],
    pattern:
      /(\b(?:(?:key-string|(?:tacacs|radius)-server key|pre-shared-key|set passw(?:or)?d ENC|set psksecret ENC|password|secret|key) [0579] ))([^\s"']{3,256})/g,
  },
  {
    kind: 'secret',
    hints: ['community'],
    pattern: /((?:snmp-server community|rocommunity6?|rwcommunity6?) ["']?)([^\s"']{3,128})/g,
  },
  // a kickstart or preseed file
  {
    kind: 'password',
    hints: ['rootpw', 'passwd'],
    pattern: /(\brootpw\s{1,4}(?:--(?:plaintext|iscrypted)\s{1,4}){0,2})(?!--)([^\s"']{3,256})/g,
  },
  {
    kind: 'password',
    hints: ['passwd/'],
    pattern: /(\bpasswd\/[a-z-]{1,40}password(?:-again|-crypted)?\s{1,4}password\s{1,4})(\S{1,256})/g,
  },
  // Windows
  {
    kind: 'password',
    hints: ['convertto-securestring'],
    pattern: new RegExp(
      `(\\bconvertto-securestring\\s{1,4}(?:-(?:asplaintext|force|string)\\s{1,4}){0,3}${Q})(${NOT_QUOTE}{1,512})`,
      'gi',
    ),
  },
  {
    kind: 'password',
    hints: ['convertto-securestring'],
    pattern:
      /(\bconvertto-securestring\s{1,4}(?:-(?:asplaintext|force|string)\s{1,4}){0,3})(?![-$("'])([^\s"'`)]{3,512})/gi,
  },
  {
    kind: 'password',
    hints: ['networkcredential', 'basicauth', 'passwordauthentication', 'httpbasicauth', 'basic_auth'],
    pattern: new RegExp(
      `(\\b(?:networkcredential|(?:http)?_?basic_?auth(?:entication)?(?:credentials?)?|(?:usernamepassword|password)(?:authentication|credentials?))\\s{0,2}\\(\\s{0,4}[^(),\\r\\n]{1,128},\\s{0,4}(?:["'\`][^"'\`\\r\\n]{0,64}["'\`]\\.to\\w+|${Q}))(${NOT_QUOTE}{1,512})`,
      'gi',
    ),
  },
  {
    kind: 'password',
    hints: ['auth'],
    pattern: new RegExp(
      `(\\bauth["']?\\s{0,2}[=:]\\s{0,2}[([]\\s{0,2}${Q}${NOT_QUOTE}{1,128}${Q},\\s{0,3}${Q})(${NOT_QUOTE}{1,512})`,
      'g',
    ),
  },
  {
    kind: 'password',
    hints: ['getconnection', 'login', 'connect', 'auth', 'sign', 'sp_'],
    pattern: new RegExp(
      `((?:\\.getConnection|\\.connect|\\.auth|\\b(?:login|authenticate|sign_?in)|\\bsp_(?:addlogin|password|setapprole))[( ]\\s{0,4}(?:(?:${Q}${NOT_QUOTE}{1,256}${Q}|[\\w.]{1,64}),\\s{0,4}){1,3}${Q})(${NOT_QUOTE}{3,512})`,
      'gi',
    ),
    unless: 'word',
  },
  // the file that a Rails application opens its credentials with
  {
    kind: 'api-key',
    hints: ['master.key', '.key'],
    pattern:
      /((?:master|production|staging|development|credentials)\.key["'`]?\s{0,3}(?:\||<<?|>>?|[:=\n]|is)?\s{0,3}["'`]?)([0-9a-f]{32})(?![0-9a-f])/g,
  },
  {
    kind: 'password',
    hints: ['plainauth'],
    pattern: new RegExp(
      `(PlainAuth\\(\\s{0,4}${Q}${NOT_QUOTE}{0,64}${Q},\\s{0,4}(?:${Q}${NOT_QUOTE}{1,128}${Q}|[\\w.]{1,64}),\\s{0,4}${Q})(${NOT_QUOTE}{1,512})`,
      'g',
    ),
  },
  // Impacket's tools
  {
    kind: 'password',
    hints: ['impacket', 'psexec', 'wmiexec', 'smbexec', 'secretsdump'],
    pattern:
      /((?:impacket-\w{1,20}|(?:psexec|wmiexec|smbexec|secretsdump)\.py)(?: -\S{1,40}){0,4} ['"]?(?:[\w.-]{1,64}\/)?[\w.$-]{1,64}:)([^\s@'"]{1,256})/g,
  },
  // what git, gh and npm print of their stores
  { kind: 'password', hints: ['password='], pattern: /((?:^|\n)password=)(\S{1,512})/g },
];

const PHRASES = [...CLOSED, ...LABELLED].map((phrase) => ({
  ...phrase,
  hint: anyOf(phrase.hints),
  begun: phrase.begun === undefined ? openEnded(phrase.pattern) : phrase.begun,
}));

/** A text without any of these has no phrase. */
const ANY_HINT = anyOf(PHRASES.flatMap(({ hints }) => hints));

function anyOf(hints: readonly string[]): RegExp {
  return new RegExp([...new Set(hints)].map((hint) => hint.replaceAll(/[.(]/g, String.raw`\$&`)).join('|'));
}

/** `ENV DB_PASS hunter2`, `set -x TOKEN …`, `setx KEY …`, `#define KEY "…"`, `config set x.token …`, and at a line's start. */
const LED =
  /((?:(?:^|[\n;&|("'`])[ \t]{0,16}(?:(?:ENV|ARG|#\s{0,3}define|define|setx|setenv|SetEnv|env\.set|(?:sudo )?(?:security|git|npm|pnpm|yarn|heroku|gh|az|pulumi|vercel|fly|flyctl|doppler|supabase|composer|poetry|pip|bundle|conda|twilio|snyk|gcloud|firebase)(?: [\w:-]{1,24}(?![\w:-])){1,3}|set(?: -[A-Za-z-]{1,12}){1,3}|set)[ \t]{1,40}|:)?|[({ ]:))(?:(?:--?[A-Za-z-]{1,24}|\/[A-Z])[ \t]{1,4}){0,2}(?<![\w.-])([A-Za-z_/][\w.:/-]{1,95})([ \t]{1,40})(["'`]?)(?=[^\s=:|])/g;
/** `aws_secret_access_key wJalr…`, `the token abc…`: anywhere, if the value looks random. One word may stand between. */
const BESIDE =
  /(?<![\w./-])([\w.-]{0,64}?(?:passw(?:or)?d|passphrase|passcode|secret|token|pass|pwd|psk|pw|[a-z][_-]?key))(["'`]?(?::?[ \t]{1,4})(?:(?:is |was )?[a-z][\w@ .-]{0,60}:[ \t]{1,4}|[A-Za-z][\w@.-]{0,40}[ \t]{1,4})?["'`]?)([^\s"'`;,|()]{8,512})/gi;
/** `password manager: …` is about something else. */
const OTHER_THING =
  /\b(?:managers?|polic(?:y|ies)|types?|names?|ids?|files?|paths?|count|limit|hash(?:es)?|version):[ \t]+/i;
const BESIDE_BEGUN = openEnded(BESIDE);
/** Secrets behind words: statements of databases and devices, lines of files, sentences. */
export function phraseSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  const mayHave = ANY_HINT.test(lower);
  for (const { kind, hint, pattern, begun, unless } of mayHave ? PHRASES : []) {
    if (!hint.test(lower)) continue;
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(pattern)) {
      const start = index + before.length;
      if (!isHarmless(value, unless)) spans.push(spanOf(start, value, kind));
      else if (isOpen && unless !== undefined && isUnfinished(text, start, value) && !isStandIn(value))
        spans.push({ start, end: text.length, kind: BEGUN });
    }
    if (isOpen && begun !== null) addBegun(text, begun, spans);
  }
  if (NAME_HINT.test(lower)) {
    led(text, spans, isOpen);
    besideNames(text, spans, isOpen);
  }
}

/** True if a value that a phrase finds is no secret. */
function isHarmless(value: string, unless: Phrase['unless']): boolean {
  const said = value.replace(/[.,:;!?)\]*\\]+$/, '');
  if (isStandIn(value) || isFileName(said) || isReference(said) || isExpression(value) || isCaption(value)) return true;
  // a word of another language, a dotfile
  if (isPasswordLabel(said) || isTerm(said) || /^\.[a-z]/.test(said)) return true;
  if (unless === 'unmixed') return !/\d/.test(said) || !/[A-Za-z]/.test(said) || isOrdinary(said);
  if (unless === 'undrawn') return !looksDrawn(said);
  return unless === 'word' && (isWord(said) || /^[A-Za-z_]+[.,:;)]*$/.test(value));
}

/** Words with numbers: `12-character`, `SAML2`, `role3`. */
function isOrdinary(text: string): boolean {
  return text
    .split(/[-_/.:]/)
    .every((part) =>
      /^(?:\d{1,4}|[A-Za-z]?[a-z]*|v?\d{1,3}[a-z]?|[A-Z]+|[A-Z]{2,5}\d{1,3}|(?:user|role|group|team|org|tenant|host|node)\d{1,2})$/.test(
        part,
      ),
    );
}

/** Random values behind a name, with at most a word between. */
function besideNames(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const { 1: name = '', 2: between = '', 3: value = '', index } of text.matchAll(BESIDE)) {
    if (secretName(name)?.strength !== 'strong' || !looksDrawn(value) || OTHER_THING.test(between)) continue;
    const start = index + name.length + between.length;
    spans.push({ start, end: start + value.length, kind: secretName(name)?.kind ?? 'secret' });
  }
  const found = isOpen ? BESIDE_BEGUN.exec(text.slice(-700)) : null;
  const value = found?.[3] ?? '';
  if (
    /\d|[!#$%^&*~]|[a-z][A-Z]|[A-Z]{2}[a-z]/.test(value) &&
    secretName(found?.[1] ?? '')?.strength === 'strong' &&
    !isStandIn(value)
  )
    spans.push({ start: text.length - value.length, end: text.length, kind: BEGUN });
}

/** Names and values with nothing but blanks between. */
function led(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const { 0: whole, 1: leader = '', 2: name = '', 3: gap = '', 4: quote = '', index } of text.matchAll(LED)) {
    const named = secretName(name.replace(/^.*[/:]/, '').replace(/^_/, '')) ?? null;
    // a sentence: Pass `true` to …
    if (named === null || (name === 'Pass' && quote !== '')) continue;
    const start = index + whole.length;
    const value = argumentAt(text, start, quote);
    if (value === '' || value.startsWith('-') || isStandIn(value)) continue;
    if (/^@?[A-Za-z.-]+\/[A-Za-z./-]+$/.test(value)) continue;
    const hasLeader = /[A-Za-z:]/.test(leader);
    const end = start + value.length;
    const isLast = /^[ \t]*(?:[\r\n#;"'`]|$)/.test(text.slice(end, end + 40)) || quote !== '';
    // at a line's start it could be a sentence: two blanks, or a value that ends the line
    const isSure = hasLeader || gap.length > 1 || gap === '\t' || isLast;
    const place = { isQuoted: quote !== '', isProse: true, next: text.charAt(end) };
    const isSecret =
      isSure &&
      isSecretValue(value, named, name, place) &&
      (hasLeader || named.strength === 'strong') &&
      !(/^[A-Za-z_.,:()]+$/.test(value) && !hasLeader) &&
      (named.kind !== 'password' || value.length >= 4 || hasLeader) &&
      !isWord(value);
    if (isSecret && (hasLeader || /\d|[^A-Za-z0-9._:/()-]/.test(value) || looksRandom(value)))
      spans.push({ start, end, kind: named.kind });
    else if (isOpen && named.strength === 'strong' && isUnfinished(text, start, value))
      spans.push({ start, end: text.length, kind: BEGUN });
  }
}

/** The same at the end of a text, however little there is of the value. */
function addBegun(text: string, open: RegExp, spans: SecretSpan[]): void {
  const found = open.exec(text.slice(-1_024));
  const value = found?.[2] ?? '';
  if (value !== '' && !isStandIn(value) && isUnfinished(text, text.length - value.length, value))
    spans.push({ start: text.length - value.length, end: text.length, kind: BEGUN });
}
