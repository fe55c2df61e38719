import { BARE, LABELLED, NOT_QUOTE, type Phrase, Q } from './labelled-phrases';
import { isPasswordLabel, NAME_HINT, secretName } from './secret-names';
import { openEnded } from './secret-shapes';
import {
  argumentAt,
  isBenign,
  isCaption,
  isExpression,
  isFileName,
  isReference,
  isSecretValue,
  isTerm,
  isUnfinished,
  isWord,
  looksGenerated,
  looksRandom,
  pendingSpan,
  type SecretSpan,
  spanOf,
} from './secret-values';

/** Part of an SQL statement rather than a sentence. */
const IDENTIFIED = String.raw`\b(?:create|alter|grant|set|user|role|change|@)\b[^\n;]{0,160}?\bidentified`;
const STATEMENTS: readonly Phrase[] = [
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
  // .netrc
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
  // Kickstart and preseed files
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
  // The master key of Rails credentials
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
  // Impacket
  {
    kind: 'password',
    hints: ['impacket', 'psexec', 'wmiexec', 'smbexec', 'secretsdump'],
    pattern:
      /((?:impacket-\w{1,20}|(?:psexec|wmiexec|smbexec|secretsdump)\.py)(?: -\S{1,40}){0,4} ['"]?(?:[\w.-]{1,64}\/)?[\w.$-]{1,64}:)([^\s@'"]{1,256})/g,
  },
  // Credential helpers of git and gh
  { kind: 'password', hints: ['password='], pattern: /((?:^|\n)password=)(\S{1,512})/g },
];

const PHRASES = [...STATEMENTS, ...LABELLED].map((phrase) => ({
  ...phrase,
  hint: anyOf(phrase.hints),
  pending: phrase.pending === undefined ? openEnded(phrase.pattern) : phrase.pending,
}));

/** Matches every lower-case text that may contain a phrase. */
const ANY_HINT = anyOf(PHRASES.flatMap(({ hints }) => hints));

function anyOf(hints: readonly string[]): RegExp {
  return new RegExp([...new Set(hints)].map((hint) => hint.replaceAll(/[.(]/g, String.raw`\$&`)).join('|'));
}

/** `ENV DB_PASS hunter2`, `set -x TOKEN …`, `setx KEY …`, `#define KEY "…"`, `config set x.token …`, or at a line start. */
const LED_NAME =
  /((?:(?:^|[\n;&|("'`])[ \t]{0,16}(?:(?:ENV|ARG|#\s{0,3}define|define|setx|setenv|SetEnv|env\.set|(?:sudo )?(?:security|git|npm|pnpm|yarn|heroku|gh|az|pulumi|vercel|fly|flyctl|doppler|supabase|composer|poetry|pip|bundle|conda|twilio|snyk|gcloud|firebase)(?: [\w:-]{1,24}(?![\w:-])){1,3}|set(?: -[A-Za-z-]{1,12}){1,3}|set)[ \t]{1,40}|:)?|[({ ]:))(?:(?:--?[A-Za-z-]{1,24}|\/[A-Z])[ \t]{1,4}){0,2}(?<![\w.-])([A-Za-z_/][\w.:/-]{1,95})([ \t]{1,40})(["'`]?)(?=[^\s=:|])/g;
/** `aws_secret_access_key wJalr…`, `the token abc…`: a random value after a name, with at most one word between. */
const NEAR_NAME =
  /(?<![\w./-])([\w.-]{0,64}?(?:passw(?:or)?d|passphrase|passcode|secret|token|pass|pwd|psk|pw|[a-z][_-]?key))(["'`]?(?::?[ \t]{1,4})(?:(?:is |was )?[a-z][\w@ .-]{0,60}:[ \t]{1,4}|[A-Za-z][\w@.-]{0,40}[ \t]{1,4})?["'`]?)([^\s"'`;,|()]{8,512})/gi;
/** Another subject than the secret itself: `password manager: …`. */
const OTHER_SUBJECT =
  /\b(?:managers?|polic(?:y|ies)|types?|names?|ids?|files?|paths?|count|limit|hash(?:es)?|version):[ \t]+/i;
const PENDING_NEAR_NAME = openEnded(NEAR_NAME);

/** Finds secrets in statements of databases and devices, configuration lines and sentences. */
export function phraseSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  const mayHave = ANY_HINT.test(lower);
  for (const { kind, hint, pattern, pending, unless } of mayHave ? PHRASES : []) {
    if (!hint.test(lower)) continue;
    for (const { 1: before = '', 2: value = '', index } of text.matchAll(pattern)) {
      const start = index + before.length;
      if (!isNoSecret(value, unless)) spans.push(spanOf(start, value, kind));
      else if (isOpen && unless !== undefined && isUnfinished(text, start, value) && !isBenign(value))
        spans.push(pendingSpan(start, text));
    }
    if (isOpen && pending !== null) addPending(text, pending, spans);
  }
  if (NAME_HINT.test(lower)) {
    ledNames(text, spans, isOpen);
    nearNames(text, spans, isOpen);
  }
}

/** True if the value in a phrase is no secret. */
function isNoSecret(value: string, unless: Phrase['unless']): boolean {
  const trimmed = value.replace(/[.,:;!?)\]*\\]+$/, '');
  if (isBenign(value) || isFileName(trimmed) || isReference(trimmed) || isExpression(value) || isCaption(value))
    return true;
  // A label in another language, a dotfile.
  if (isPasswordLabel(trimmed) || isTerm(trimmed) || /^\.[a-z]/.test(trimmed)) return true;
  if (unless === 'unmixed') return !/\d/.test(trimmed) || !/[A-Za-z]/.test(trimmed) || isNumberedWords(trimmed);
  if (unless === 'ungenerated') return !looksGenerated(trimmed);
  return unless === 'word' && (isWord(trimmed) || /^[A-Za-z_]+[.,:;)]*$/.test(value));
}

/** Words with numbers: `12-character`, `SAML2`, `role3`. */
function isNumberedWords(text: string): boolean {
  return text
    .split(/[-_/.:]/)
    .every((part) =>
      /^(?:\d{1,4}|[A-Za-z]?[a-z]*|v?\d{1,3}[a-z]?|[A-Z]+|[A-Z]{2,5}\d{1,3}|(?:user|role|group|team|org|tenant|host|node)\d{1,2})$/.test(
        part,
      ),
    );
}

/** Finds random values after a name, with at most one word between. */
function nearNames(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const { 1: name = '', 2: between = '', 3: value = '', index } of text.matchAll(NEAR_NAME)) {
    if (secretName(name)?.strength !== 'strong' || !looksGenerated(value) || OTHER_SUBJECT.test(between)) continue;
    const start = index + name.length + between.length;
    spans.push({ start, end: start + value.length, kind: secretName(name)?.kind ?? 'secret' });
  }
  const found = isOpen ? PENDING_NEAR_NAME.exec(text.slice(-700)) : null;
  const value = found?.[3] ?? '';
  if (
    /\d|[!#$%^&*~]|[a-z][A-Z]|[A-Z]{2}[a-z]/.test(value) &&
    secretName(found?.[1] ?? '')?.strength === 'strong' &&
    !isBenign(value)
  )
    spans.push(pendingSpan(text.length - value.length, text));
}

/** Finds values separated from their names by blanks. */
function ledNames(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const { 0: whole, 1: leader = '', 2: name = '', 3: gap = '', 4: quote = '', index } of text.matchAll(LED_NAME)) {
    const named = secretName(name.replace(/^.*[/:]/, '').replace(/^_/, '')) ?? null;
    // A sentence: Pass `true` to …
    if (named === null || (name === 'Pass' && quote !== '')) continue;
    const start = index + whole.length;
    const value = argumentAt(text, start, quote);
    if (value === '' || value.startsWith('-') || isBenign(value)) continue;
    if (/^@?[A-Za-z.-]+\/[A-Za-z./-]+$/.test(value)) continue;
    const hasLeader = /[A-Za-z:]/.test(leader);
    const end = start + value.length;
    const isLast = /^[ \t]*(?:[\r\n#;"'`]|$)/.test(text.slice(end, end + 40)) || quote !== '';
    // A line start may be a sentence unless two blanks follow or the value ends the line.
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
      spans.push(pendingSpan(start, text));
  }
}

/** Marks a partial value at the end of the text. */
function addPending(text: string, open: RegExp, spans: SecretSpan[]): void {
  const found = open.exec(text.slice(-1_024));
  const value = found?.[2] ?? '';
  if (value !== '' && !isBenign(value) && isUnfinished(text, text.length - value.length, value))
    spans.push(pendingSpan(text.length - value.length, text));
}
