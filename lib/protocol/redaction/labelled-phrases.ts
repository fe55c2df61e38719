import { PASSWORD_LABELS, SECRET_FIELD_WORDS, SHORT_FIELD_WORDS, TOKEN_LABELS } from './secret-names';

/** A phrase before a secret, without an assignment operator. The first group ends where the secret starts. */
export interface Phrase {
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

export const Q = String.raw`(?:[Nn]?\\{0,4}["'\x60])`;
export const NOT_QUOTE = String.raw`[^"'\x60\\\r\n]`;
export const BARE = String.raw`[^\s"'\x60;,]`;

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
/** The label of a mnemonic. */
const MNEMONIC = String.raw`((?:mnemonic|passphrase|(?:seed|recovery|backup|secret)[ _-](?:phrase|words))["']?\s{0,2}(?:is|[:=]):?\s{0,3}${Q}?)`;
/** A form field for a secret, as browser automation addresses it. */
const FIELD = `(?:${SECRET_FIELD_WORDS}|(?<![a-z])(?:${SHORT_FIELD_WORDS})(?![a-z]))`;
const FIELD_HINTS = ['pass', 'secret', 'token', 'pwd', 'pw', 'pin', 'otp'];
const IS = String.raw`(?:["'\x60]?\s{0,2}[:：=]|\s(?:ist|lautet|est|es|é|è|is|er|är|to)(?![\p{L}\d]):?|[はを是为為]|[는은을를]\s| [—–→-])\s{0,2}${Q}?`;
const anyOf = (labels: Iterable<string>) => [...labels].join('|');

/** Labels in sentences, above a value and beside a form field. */
export const LABELLED: readonly Phrase[] = [
  {
    kind: 'password',
    hints: PASSWORD_HINTS,
    pattern: new RegExp(
      `(${PASSWORD}(?: (?:for|of) (?:(?:the|user|account) ){0,2}${Q}?${BARE}{1,64}${Q}?)?${Q}?${ABOUT}(?:${SAYS}) {0,2}[(]?${Q}?)(${BARE}{4,256})`,
      'gi',
    ),
    unless: 'word',
  },
  {
    kind: 'token',
    hints: TOKEN_HINTS,
    pattern: new RegExp(
      `(${TOKEN}(?: for \\S{1,40})?${Q}?${ABOUT}(?: (?:${SET_TO}|${IS_NOW})(?: now)?:?|(?<=\\)):| ${ARROW}) {1,2}${Q}?)(${BARE}{8,512})`,
      'gi',
    ),
    unless: 'word',
  },
  {
    kind: 'secret',
    hints: [...PASSWORD_HINTS, ...TOKEN_HINTS],
    pattern: new RegExp(`((?:${PASSWORD}|${TOKEN}) (?:should|must|has to|needs to) be:? ${Q}?)(${BARE}{6,256})`, 'gi'),
    unless: 'unmixed',
  },
  {
    kind: 'secret',
    hints: [...PASSWORD_HINTS, ...TOKEN_HINTS],
    pattern: new RegExp(
      `(\\b(?:with|using|use[ds]?|enter(?:ed)?|try|tried|and|by) (?:(?:the|its|your|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}) ${Q}?)(${BARE}{6,256})`,
      'gi',
    ),
    unless: 'ungenerated',
  },
  {
    kind: 'password',
    hints: ['log', 'sign', 'cred', 'account'],
    pattern: new RegExp(
      `(\\b(?:log[- ]?[io]n|sign[- ]?in|credentials?|creds|account)(?:[^\\n]{0,60}?${Q}[\\w.@+-]{1,64}${Q} {0,2}[:/|] {0,2}${Q}|(?: (?:with|as|is|are|details))?:? {0,2}${Q}?[\\w.@+-]{1,64}${Q}?(?: {1,2}/ {1,2}| (?:with|and|using) )${Q}?))(${BARE}{4,256})`,
      'gi',
    ),
    unless: 'unmixed',
  },
  {
    kind: 'secret',
    hints: ['code'],
    pattern:
      /((?:verification|one[- ]time|security|login|2fa|mfa|otp|authentication|confirmation|backup|recovery) (?:pass)?code(?: is)?:? {1,2}["'`]?)(\d{4,10})/gi,
  },
  {
    kind: 'secret',
    hints: ['mnemonic', 'phrase', 'words'],
    pattern: new RegExp(`${MNEMONIC}(${WORD}(?: ${WORD}){2,23})`, 'gi'),
    pending: new RegExp(`${MNEMONIC}([a-z]{1,10}(?: [a-z]{0,10}){0,23})$`, 'i'),
  },
  ...[
    { kind: 'password', label: PASSWORD, hints: PASSWORD_HINTS },
    { kind: 'token', label: TOKEN, hints: TOKEN_HINTS },
  ].map(
    ({ kind, label, hints }): Phrase => ({
      kind,
      hints,
      pattern: new RegExp(`((?:^|\\n)[^\\n]{0,60}?${label}${NEXT_LINE})${LINE_VALUE}`, 'gi'),
      unless: 'unmixed',
    }),
  ),
  {
    kind: 'secret',
    hints: [...TOKEN_HINTS, ...PASSWORD_HINTS],
    pattern: new RegExp(
      `((?:^|\\n)[^\\n]{0,60}?(?:key|token|secret|password)(?: [\\w' ]{1,40})?:${NEXT_LINE})${LINE_VALUE}`,
      'gi',
    ),
    unless: 'ungenerated',
  },
  {
    kind: 'token',
    hints: TOKEN_HINTS,
    pattern: new RegExp(`(\\bset ${Q}?[\\w.-]{0,40}?${TOKEN}${Q}? to ${Q}?)(${BARE}{8,512})`, 'gi'),
    unless: 'word',
  },
  // The secret before its label.
  {
    kind: 'secret',
    hints: [...PASSWORD_HINTS, ...TOKEN_HINTS],
    pattern: new RegExp(
      `(\\b(?:uses?|using|enter|with|set|has) ${Q}?)(${BARE}{6,128})(?=${Q}? as (?:(?:the|its|your|a|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}))`,
      'gi',
    ),
    pending: null,
    unless: 'unmixed',
  },
  {
    kind: 'secret',
    hints: [...PASSWORD_HINTS, ...TOKEN_HINTS],
    pattern: new RegExp(
      `(\\b(?:use|using|enter(?:ed)?|with|set|typed?|fill(?:ed)?|put|paste) ${Q})(${NOT_QUOTE}{4,128})(?=${Q} (?:as|for|in|into) (?:(?:the|its|your|a|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}))`,
      'gi',
    ),
    pending: null,
    unless: 'unmixed',
  },
  {
    kind: 'secret',
    hints: [...PASSWORD_HINTS, ...TOKEN_HINTS],
    pattern: new RegExp(
      `(\\b(?:use|using|enter|with|set) ${Q}?)(${BARE}{6,128})(?=${Q}? for (?:(?:the|its|your|a|my) )?(?:\\w{1,20} )?(?:${PASSWORD}|${TOKEN}))`,
      'gi',
    ),
    pending: null,
    unless: 'ungenerated',
  },
  {
    kind: 'secret',
    hints: ['echo ', 'printf '],
    pattern: new RegExp(
      `((?:echo|printf)\\s{1,3}(?:-n\\s{1,3})?${Q}?)(${BARE}{4,256})(?=${Q}?\\s{1,3}>{1,2}\\s{0,3}\\S{0,120}(?:pass(?:word|wd)?|secret|token|cred|\\.key)[\\w.-]{0,20}(?![\\w.-]))`,
      'g',
    ),
    pending: null,
    unless: 'word',
  },
  // Standard input of a command that reads a secret.
  {
    kind: 'password',
    hints: ['<<<'],
    pattern: new RegExp(
      `((?:\\b(?:kinit|cryptsetup|chpasswd|passwd|su)\\b|\\bsudo\\b[^\\n|;]{0,40} -S\\b|--(?:password|token)-stdin|--with-token|\\b(?:secrets?|env)\\b[^\\n|;]{0,20} (?:put|add|set|create)\\b)[^\\n|;]{0,120}<<<\\s{0,2}${Q}?)(${BARE}{3,256})`,
      'g',
    ),
  },
  // Browser automation: page.fill('#password', '…'), getByLabel('Password').fill('…').
  {
    kind: 'password',
    hints: FIELD_HINTS,
    pattern: new RegExp(
      `(${FIELD}(?:(?!find|getby|locator|queryselector|\\$\\()[^\\n]){0,80}?\\.(?:(?:fill|type|type_?text|send_?keys|set_?value|press_?sequentially|insert_?text|add_?value|input_?text|val)\\(|value\\s{0,2}=(?!=))\\s{0,2}${Q})(${NOT_QUOTE}{3,256})(?!${Q}?\\s{0,2},\\s{0,2}["'\\w])`,
      'gi',
    ),
    unless: 'word',
  },
  {
    kind: 'password',
    hints: FIELD_HINTS,
    pattern: new RegExp(
      `(\\b(?:fill|type|fill_?in|input_?text|set_?value|send_?keys|enter_?text)\\s?[( ][^\\n;]{0,80}?${FIELD}[^\\n,;]{0,40},\\s{0,3}(?:with:\\s{0,2})?${Q})(${NOT_QUOTE}{3,256})`,
      'gi',
    ),
    unless: 'word',
  },
  {
    kind: 'password',
    hints: ['change'],
    pattern: new RegExp(
      `(\\bchange\\([^\\n]{0,80}?${FIELD}[^\\n]{0,40}?\\bvalue:\\s{0,2}${Q})(${NOT_QUOTE}{3,256})`,
      'gi',
    ),
    unless: 'word',
  },
  {
    kind: 'password',
    hints: ['<input'],
    pattern: new RegExp(
      `(${FIELD}[^<>\\n]{0,40}</label>\\s{0,40}<input\\b[^<>]{0,200}?\\bvalue=${Q})(${NOT_QUOTE}{3,256})`,
      'gi',
    ),
    unless: 'word',
  },
  // Expect scripts: expect "assword:" { send "…\r" }.
  {
    kind: 'password',
    hints: ['assword', 'assphrase'],
    pattern: new RegExp(
      `(ass(?:word|phrase)[^\\n]{0,40}[\\n{]\\s{0,8}(?:\\w{1,20}\\.)?(?:exp_)?send(?:_?line)?[( ]\\s?(?:--\\s)?${Q})(${NOT_QUOTE}{3,256})`,
      'g',
    ),
  },
  // Labels in other languages.
  {
    kind: 'password',
    hints: [...PASSWORD_LABELS],
    pattern: new RegExp(`((?:${anyOf(PASSWORD_LABELS)})${IS})(${BARE}{4,256})`, 'giu'),
    unless: 'word',
  },
  {
    kind: 'password',
    hints: [...PASSWORD_LABELS],
    pattern: new RegExp(
      `((?:${anyOf(PASSWORD_LABELS)})(?: \\p{L}{1,16}){1,3}(?:${IS}| (?:на|auf|a|à|para|en|in|naar|til|till|na) ${Q}?))(${BARE}{4,256})`,
      'giu',
    ),
    unless: 'unmixed',
  },
  {
    kind: 'token',
    hints: [...TOKEN_LABELS],
    pattern: new RegExp(`((?:${anyOf(TOKEN_LABELS)})${IS})(${BARE}{8,512})`, 'giu'),
    unless: 'unmixed',
  },
];
