import {
  isPasswordLabel,
  NAME_HINT,
  PASSWORD_LABELS,
  SECRET_FIELD_WORDS,
  SHORT_FIELD_WORDS,
  secretName,
  TOKEN_LABELS,
} from './secret-names';
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

/** A phrase before a secret, without an assignment operator. The first group ends where the secret starts. */
interface Phrase {
  kind: string;
  /** Lower-case literals, at least one of which every match contains. */
  hints: readonly string[];
  /** Global. The second group is the secret. */
  pattern: RegExp;
  /** Matches a partial secret at the end; by default `openEnded(pattern)`. Null if later text identifies the secret. */
  pending?: RegExp | null;
  /**
   * Values to skip. 'word': plain words. 'unmixed': values without both letters and digits, and words with numbers.
   * 'ungenerated': values that fail `looksGenerated`.
   */
  unless?: 'word' | 'unmixed' | 'ungenerated';
}

/** @param pattern a RegExp, or the source of one with `flags` */
function phrase(
  kind: string,
  hints: readonly string[],
  pattern: RegExp | string,
  { flags = 'gi', ...more }: Pick<Phrase, 'pending' | 'unless'> & { flags?: string } = {},
): Phrase {
  return { kind, hints, pattern: typeof pattern === 'string' ? new RegExp(pattern, flags) : pattern, ...more };
}

/** An opening or closing quote, possibly escaped. */
const Q = String.raw`(?:[Nn]?\\{0,4}["'\x60])`;
const NOT_QUOTE = String.raw`[^"'\x60\\\r\n]`;
const BARE = String.raw`[^\s"'\x60;,]`;

const PASSWORD = '(?<![A-Za-z])(?:password|passphrase|passcode|passwd)';
const TOKEN =
  '(?<![A-Za-z])(?:token|api[ _-]?key|access[ _-]?key|secret|secret[ _-]?key|client[ _-]?secret|recovery code|private[ _-]?key)';
const PASSWORD_HINTS = ['password', 'passphrase', 'passcode', 'passwd'];
const TOKEN_HINTS = ['token', 'key', 'secret', 'recovery code'];
/** A remark in parentheses after a label. */
const ABOUT = String.raw`(?: \([A-Za-z][A-Za-z @.-]{0,40}\))?`;
const BE = '(?:is|was|got|will be|should be|must be|can be|ha(?:s|d) been)';
const SET_TO = `(?:${BE} )?(?:(?:now|just|recently) )?(?:set|reset|changed|updated|switched|rotated) (?:to|from|as)`;
const IS_NOW = '(?:is|was|will be|becomes)(?: (?:now|currently|still))?';
const ARROW = '(?:->|[→⇒➜›»])';
/** The verb or punctuation between a label and its value. */
const SAYS = String.raw`(?:,? which)? (?:${SET_TO}|${IS_NOW}|to|from)(?: now)?:?|(?:[ .]{2,40})?:| (?:${ARROW}|=>|[—–-])| (?=\()`;
/** From a label to the next non-blank line, which may be in a code fence. */
const NEXT_LINE = String.raw`(?: is)?[ \t]{0,4}[:：]?[ \t]{0,4}\r?\n(?:[ \t>]{0,12}\r?\n){0,2}(?:[ \t>]{0,12}(?:\x60{3}|~~~)[\w-]{0,16}[ \t]*\r?\n)?[ \t>]{0,12}(?:- )?${Q}?`;
const LINE_VALUE = String.raw`([^\s"'\x60|¦<]{4,256})(?=${Q}?[ \t]*(?:[\r\n]|$)|${Q}?["'][ \t]{0,2}(?:[,}\]]|$))`;
/** A word of a mnemonic; function words belong to prose. */
const WORD = String.raw`(?!(?:the|is|are|was|an?|to|of|for|not|must|be|use|uses|with|your|and|or|in|at|has|it|you|this|that|should)\b)[a-z]{3,10}`;
/** The label before a mnemonic. */
const MNEMONIC = String.raw`((?:mnemonic|passphrase|(?:seed|recovery|backup|secret)[ _-](?:phrase|words))["']?\s{0,2}(?:is|[:=]):?\s{0,3}${Q}?)`;
/** A form field for a secret, as browser automation addresses it. */
const FIELD = `(?:${SECRET_FIELD_WORDS}|(?<![a-z])(?:${SHORT_FIELD_WORDS})(?![a-z]))`;
const FIELD_HINTS = ['pass', 'secret', 'token', 'pwd', 'pw', 'pin', 'otp'];
const IS = String.raw`(?:["'\x60]?\s{0,2}[:：=]|\s(?:ist|lautet|est|es|é|è|is|er|är|to)(?![\p{L}\d]):?|[はを是为為]|[는은을를]\s| [—–→-])\s{0,2}${Q}?`;
const alternatives = (labels: Iterable<string>) => [...labels].join('|');

/** Labels in sentences, above a value and beside a form field. */
const LABELLED: readonly Phrase[] = [
  phrase(
    'password',
    PASSWORD_HINTS,
    `(${PASSWORD}(?: (?:for|of) (?:(?:the|user|account) ){0,2}${Q}?${BARE}{1,64}${Q}?)?${Q}?${ABOUT}(?:${SAYS}) {0,2}[(]?${Q}?)(${BARE}{4,256})`,
    { unless: 'word' },
  ),
  phrase(
    'token',
    TOKEN_HINTS,
    `(${TOKEN}(?: for \\S{1,40})?${Q}?${ABOUT}(?: (?:${SET_TO}|${IS_NOW})(?: now)?:?|(?<=\\)):| ${ARROW}) {1,2}${Q}?)(${BARE}{8,512})`,
    { unless: 'word' },
  ),
  phrase(
    'secret',
    [...PASSWORD_HINTS, ...TOKEN_HINTS],
    `((?:${PASSWORD}|${TOKEN}) (?:should|must|has to|needs to) be:? ${Q}?)(${BARE}{6,256})`,
    { unless: 'unmixed' },
  ),
  phrase(
    'secret',
    [...PASSWORD_HINTS, ...TOKEN_HINTS],
    `(\\b(?:with|using|use[ds]?|enter(?:ed)?|try|tried|and|by) (?:(?:the|its|your|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}) ${Q}?)(${BARE}{6,256})`,
    { unless: 'ungenerated' },
  ),
  phrase(
    'password',
    ['log', 'sign', 'cred', 'account'],
    `(\\b(?:log[- ]?[io]n|sign[- ]?in|credentials?|creds|account)(?:[^\\n]{0,60}?${Q}[\\w.@+-]{1,64}${Q} {0,2}[:/|] {0,2}${Q}|(?: (?:with|as|is|are|details))?:? {0,2}${Q}?[\\w.@+-]{1,64}${Q}?(?: {1,2}/ {1,2}| (?:with|and|using) )${Q}?))(${BARE}{4,256})`,
    { unless: 'unmixed' },
  ),
  phrase(
    'secret',
    ['code'],
    /((?:verification|one[- ]time|security|login|2fa|mfa|otp|authentication|confirmation|backup|recovery) (?:pass)?code(?: is)?:? {1,2}["'`]?)(\d{4,10})/gi,
  ),
  phrase('secret', ['mnemonic', 'phrase', 'words'], `${MNEMONIC}(${WORD}(?: ${WORD}){2,23})`, {
    pending: new RegExp(`${MNEMONIC}([a-z]{1,10}(?: [a-z]{0,10}){0,23})$`, 'i'),
  }),
  phrase('password', PASSWORD_HINTS, `((?:^|\\n)[^\\n]{0,60}?${PASSWORD}${NEXT_LINE})${LINE_VALUE}`, {
    unless: 'unmixed',
  }),
  phrase('token', TOKEN_HINTS, `((?:^|\\n)[^\\n]{0,60}?${TOKEN}${NEXT_LINE})${LINE_VALUE}`, { unless: 'unmixed' }),
  phrase(
    'secret',
    [...TOKEN_HINTS, ...PASSWORD_HINTS],
    `((?:^|\\n)[^\\n]{0,60}?(?:key|token|secret|password)(?: [\\w' ]{1,40})?:${NEXT_LINE})${LINE_VALUE}`,
    { unless: 'ungenerated' },
  ),
  phrase('token', TOKEN_HINTS, `(\\bset ${Q}?[\\w.-]{0,40}?${TOKEN}${Q}? to ${Q}?)(${BARE}{8,512})`, {
    unless: 'word',
  }),
  // The secret before its label.
  phrase(
    'secret',
    [...PASSWORD_HINTS, ...TOKEN_HINTS],
    `(\\b(?:uses?|using|enter|with|set|has) ${Q}?)(${BARE}{6,128})(?=${Q}? as (?:(?:the|its|your|a|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}))`,
    { pending: null, unless: 'unmixed' },
  ),
  phrase(
    'secret',
    [...PASSWORD_HINTS, ...TOKEN_HINTS],
    `(\\b(?:use|using|enter(?:ed)?|with|set|typed?|fill(?:ed)?|put|paste) ${Q})(${NOT_QUOTE}{4,128})(?=${Q} (?:as|for|in|into) (?:(?:the|its|your|a|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}))`,
    { pending: null, unless: 'unmixed' },
  ),
  phrase(
    'secret',
    [...PASSWORD_HINTS, ...TOKEN_HINTS],
    `(\\b(?:use|using|enter|with|set) ${Q}?)(${BARE}{6,128})(?=${Q}? for (?:(?:the|its|your|a|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}))`,
    { pending: null, unless: 'ungenerated' },
  ),
  phrase(
    'secret',
    ['echo ', 'printf '],
    `((?:echo|printf)\\s{1,3}(?:-n\\s{1,3})?${Q}?)(${BARE}{4,256})(?=${Q}?\\s{1,3}>{1,2}\\s{0,3}\\S{0,120}(?:pass(?:word|wd)?|secret|token|cred|\\.key)[\\w.-]{0,20}(?![\\w.-]))`,
    { pending: null, unless: 'word', flags: 'g' },
  ),
  // Standard input of a command that reads a secret.
  phrase(
    'password',
    ['<<<'],
    `((?:\\b(?:kinit|cryptsetup|chpasswd|passwd|su)\\b|\\bsudo\\b[^\\n|;]{0,40} -S\\b|--(?:password|token)-stdin|--with-token|\\b(?:secrets?|env)\\b[^\\n|;]{0,20} (?:put|add|set|create)\\b)[^\\n|;]{0,120}<<<\\s{0,2}${Q}?)(${BARE}{3,256})`,
    { flags: 'g' },
  ),
  // Browser automation: page.fill('#password', '…'), getByLabel('Password').fill('…').
  phrase(
    'password',
    FIELD_HINTS,
    `(${FIELD}(?:(?!find|getby|locator|queryselector|\\$\\()[^\\n]){0,80}?\\.(?:(?:fill|type|type_?text|send_?keys|set_?value|press_?sequentially|insert_?text|add_?value|input_?text|val)\\(|value\\s{0,2}=(?!=))\\s{0,2}${Q})(${NOT_QUOTE}{3,256})(?!${Q}?\\s{0,2},\\s{0,2}["'\\w])`,
    { unless: 'word' },
  ),
  phrase(
    'password',
    FIELD_HINTS,
    `(\\b(?:fill|type|fill_?in|input_?text|set_?value|send_?keys|enter_?text)\\s?[( ][^\\n;]{0,80}?${FIELD}[^\\n,;]{0,40},\\s{0,3}(?:with:\\s{0,2})?${Q})(${NOT_QUOTE}{3,256})`,
    { unless: 'word' },
  ),
  phrase(
    'password',
    ['change'],
    `(\\bchange\\([^\\n]{0,80}?${FIELD}[^\\n]{0,40}?\\bvalue:\\s{0,2}${Q})(${NOT_QUOTE}{3,256})`,
    { unless: 'word' },
  ),
  phrase(
    'password',
    ['<input'],
    `(${FIELD}[^<>\\n]{0,40}</label>\\s{0,40}<input\\b[^<>]{0,200}?\\bvalue=${Q})(${NOT_QUOTE}{3,256})`,
    { unless: 'word' },
  ),
  // Expect scripts: expect "assword:" { send "…\r" }.
  phrase(
    'password',
    ['assword', 'assphrase'],
    `(ass(?:word|phrase)[^\\n]{0,40}[\\n{]\\s{0,8}(?:\\w{1,20}\\.)?(?:exp_)?send(?:_?line)?[( ]\\s?(?:--\\s)?${Q})(${NOT_QUOTE}{3,256})`,
    { flags: 'g' },
  ),
  // Labels in other languages.
  phrase('password', [...PASSWORD_LABELS], `((?:${alternatives(PASSWORD_LABELS)})${IS})(${BARE}{4,256})`, {
    unless: 'word',
    flags: 'giu',
  }),
  phrase(
    'password',
    [...PASSWORD_LABELS],
    `((?:${alternatives(PASSWORD_LABELS)})(?: \\p{L}{1,16}){1,3}(?:${IS}| (?:на|auf|a|à|para|en|in|naar|til|till|na) ${Q}?))(${BARE}{4,256})`,
    { unless: 'unmixed', flags: 'giu' },
  ),
  phrase('token', [...TOKEN_LABELS], `((?:${alternatives(TOKEN_LABELS)})${IS})(${BARE}{8,512})`, {
    unless: 'unmixed',
    flags: 'giu',
  }),
];

/** Part of an SQL statement rather than a sentence. */
const IDENTIFIED = String.raw`\b(?:create|alter|grant|set|user|role|change|@)\b[^\n;]{0,160}?\bidentified`;
const STATEMENTS: readonly Phrase[] = [
  // SQL
  phrase(
    'password',
    ['identified'],
    `(${IDENTIFIED}\\s{1,8}(?:with\\s{1,8}\\S{1,64}\\s{1,8})?(?:by|as)\\s{1,8}(?:password\\s{1,8}|values?\\s{1,8})?${Q})(${NOT_QUOTE}{1,512})`,
  ),
  phrase(
    'password',
    ['identified'],
    `(${IDENTIFIED}\\s{1,8}by\\s{1,8})(?!(?:values|password|random|the|their|its|an?|his|her|your|our|this|that|one|each|name|email|id)\\b)([^\\s"'\`;\\\\]{3,512})`,
  ),
  phrase('password', ['password'], `(\\bpassword(?:\\s{1,4}|\\s{0,4}[(=]\\s{0,4})${Q})(${NOT_QUOTE}{3,512})`, {
    unless: 'word',
    flags: 'g',
  }),
  phrase(
    'password',
    ['password'],
    `(\\bPASSWORD(?:\\s{1,4}|\\s{0,4}[(=]\\s{0,4}|\\s{1,4}FOR\\s{1,4}\\S{1,80}\\s{1,4}(?:=|TO)\\s{0,4})${Q})(${NOT_QUOTE}{1,512})`,
    { flags: 'g' },
  ),
  // .netrc
  phrase(
    'password',
    ['machine', 'default'],
    /((?:\bmachine\s{1,4}\S{1,256}|\bdefault)\s{1,8}(?:(?:login|user|account)\s{1,4}\S{1,256}\s{1,8}){0,2}password\s{1,4}["']?)([^\s"']{1,512})/g,
  ),
  phrase('password', ['login'], /((?:^|\n)[ \t]{0,8}login\s{1,4}\S{1,256}\s{1,8}password\s{1,4})(\S{1,512})/g),
  // FTP, POP3, IRC; IMAP and SMTP; Redis
  phrase('password', ['pass '], /((?:^|[\r\n"'`]|> |C: )\s{0,2}PASS )([^\s:"'`]{3,512})(?=[\r\n"'`]|$)/g),
  phrase(
    'password',
    ['login '],
    `((?:\\b[A-Za-z]{0,4}\\d{1,6} |(?:^|[\\n"'\`]))LOGIN ${Q}?${BARE}{1,128}${Q}? ${Q}?)(${BARE}{1,512})`,
    { flags: 'g' },
  ),
  phrase('authorization', ['auth '], /(\bAUTH (?:PLAIN|LOGIN|XOAUTH2) )([A-Za-z0-9+/=]{4,4096})/g),
  phrase(
    'password',
    ['auth '],
    /((?:^|[\n"'`]|> |\bredis(?:-cli)?(?: -\w{1,4} [\w.-]{1,64}){0,4} )\s{0,2}AUTH (?!PLAIN|LOGIN|TLS|SSL|XOAUTH2|CRAM)(?:default )?["']?)([^\s"']{3,512})(?=["']?(?:[\r\n,}]|$))/g,
  ),
  // Cisco, Juniper, FortiOS
  phrase(
    'password',
    ['password', 'secret', 'key', 'md5'],
    /(\b(?:enable|username (?!and\b|or\b|with\b)\S{1,64}(?: privilege \d{1,2})?) (?:secret|password) (?:\d{1,2} )?)([^\s"']{3,256})/g,
  ),
  phrase(
    'password',
    ['password', 'key'],
    /(\b(?:(?:key-string|(?:tacacs|radius)-server key|pre-shared-key|set passw(?:or)?d ENC|set psksecret ENC|password|secret|key) [0579] ))([^\s"']{3,256})/g,
  ),
  phrase('secret', ['community'], /((?:snmp-server community|rocommunity6?|rwcommunity6?) ["']?)([^\s"']{3,128})/g),
  // Kickstart and preseed files
  phrase(
    'password',
    ['rootpw', 'passwd'],
    /(\brootpw\s{1,4}(?:--(?:plaintext|iscrypted)\s{1,4}){0,2})(?!--)([^\s"']{3,256})/g,
  ),
  phrase(
    'password',
    ['passwd/'],
    /(\bpasswd\/[a-z-]{1,40}password(?:-again|-crypted)?\s{1,4}password\s{1,4})(\S{1,256})/g,
  ),
  // Windows
  phrase(
    'password',
    ['convertto-securestring'],
    `(\\bconvertto-securestring\\s{1,4}(?:-(?:asplaintext|force|string)\\s{1,4}){0,3}${Q})(${NOT_QUOTE}{1,512})`,
  ),
  phrase(
    'password',
    ['convertto-securestring'],
    /(\bconvertto-securestring\s{1,4}(?:-(?:asplaintext|force|string)\s{1,4}){0,3})(?![-$("'])([^\s"'`)]{3,512})/gi,
  ),
  phrase(
    'password',
    ['networkcredential', 'basicauth', 'passwordauthentication', 'httpbasicauth', 'basic_auth'],
    `(\\b(?:networkcredential|(?:http)?_?basic_?auth(?:entication)?(?:credentials?)?|(?:usernamepassword|password)(?:authentication|credentials?))\\s{0,2}\\(\\s{0,4}[^(),\\r\\n]{1,128},\\s{0,4}(?:["'\`][^"'\`\\r\\n]{0,64}["'\`]\\.to\\w+|${Q}))(${NOT_QUOTE}{1,512})`,
  ),
  phrase(
    'password',
    ['auth'],
    `(\\bauth["']?\\s{0,2}[=:]\\s{0,2}[([]\\s{0,2}${Q}${NOT_QUOTE}{1,128}${Q},\\s{0,3}${Q})(${NOT_QUOTE}{1,512})`,
    { flags: 'g' },
  ),
  phrase(
    'password',
    ['getconnection', 'login', 'connect', 'auth', 'sign', 'sp_'],
    `((?:\\.getConnection|\\.connect|\\.auth|\\b(?:login|authenticate|sign_?in)|\\bsp_(?:addlogin|password|setapprole))[( ]\\s{0,4}(?:(?:${Q}${NOT_QUOTE}{1,256}${Q}|[\\w.]{1,64}),\\s{0,4}){1,3}${Q})(${NOT_QUOTE}{3,512})`,
    { unless: 'word' },
  ),
  // The master key of Rails credentials
  phrase(
    'api-key',
    ['master.key', '.key'],
    /((?:master|production|staging|development|credentials)\.key["'`]?\s{0,3}(?:\||<<?|>>?|[:=\n]|is)?\s{0,3}["'`]?)([0-9a-f]{32})(?![0-9a-f])/g,
  ),
  phrase(
    'password',
    ['plainauth'],
    `(PlainAuth\\(\\s{0,4}${Q}${NOT_QUOTE}{0,64}${Q},\\s{0,4}(?:${Q}${NOT_QUOTE}{1,128}${Q}|[\\w.]{1,64}),\\s{0,4}${Q})(${NOT_QUOTE}{1,512})`,
    { flags: 'g' },
  ),
  // Impacket
  phrase(
    'password',
    ['impacket', 'psexec', 'wmiexec', 'smbexec', 'secretsdump'],
    /((?:impacket-\w{1,20}|(?:psexec|wmiexec|smbexec|secretsdump)\.py)(?: -\S{1,40}){0,4} ['"]?(?:[\w.-]{1,64}\/)?[\w.$-]{1,64}:)([^\s@'"]{1,256})/g,
  ),
  // Credential helpers of git and gh
  phrase('password', ['password='], /((?:^|\n)password=)(\S{1,512})/g),
];

const PHRASES = [...STATEMENTS, ...LABELLED].map(({ hints, pattern, pending = openEnded(pattern), ...rules }) => ({
  ...rules,
  pattern,
  pending,
  hints,
  hint: anyOf(hints),
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

/** Finds secrets in database statements, device commands, configuration lines and sentences. */
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

/** True if the value in a phrase is not a secret. */
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

/** True for words with numbers: `12-character`, `SAML2`, `role3`. */
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
