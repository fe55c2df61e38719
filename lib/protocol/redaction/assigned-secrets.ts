import {
  type AssignedName,
  BLANK,
  isOf,
  isValueOf,
  labelledSecret,
  lineBegins,
  mayAssign,
  NAME_HINT,
  type NamedSecret,
  nameBefore,
  nameOf,
  type PairRole,
  pairRole,
  secretName,
} from './secret-names';
import {
  BEGUN,
  isPlaceholder,
  isSecretValue,
  isStandIn,
  isUnfinished,
  isWord,
  looksDrawn,
  mayBecome,
  QUOTED,
  run,
  type SecretSpan,
  spanOf,
  type ValuePlace,
} from './secret-values';

const LONGEST_VALUE = 8_192;
/** A label and its value: `name: DB_PASS` and, at most so much further on, `value: …`. */
const PAIR_REACH = 240;

/**
 * Signs between a name and its value. `|` stands between the cells of a table, `,` between a call's arguments, `>` behind an
 * XML tag, `(` behind a setter.
 */
const SIGN = /=>|:=|[=:]|[>,(|│┃║]/g;
/** An open quote, with the backslashes before it, a string's prefix and C#'s `@`. */
const OPEN_QUOTE = /(?:[rbfuNL@$]{1,2}(?=["']))?(\\{0,4})(["'`])/y;
const BLANKS = /[ \t\u00a0]*(?:\r?\n[ \t]*)?/y;
const BARE: Readonly<Record<string, RegExp>> = {
  value: /[^\s"'`,;&|(){}[\]<>]{1,8192}/y,
  /** All of a line's last word: `DB_PASS=a(b|c`. */
  last: /\S{1,8192}/y,
  text: /[^<\r\n]{1,8192}/y,
  cell: /[^\s|"']{1,8192}/y,
};
const ESCAPED: Readonly<Record<string, RegExp>> = {
  '"': /[^"\\\r\n]{1,8192}/y,
  "'": /[^'\\\r\n]{1,8192}/y,
  '`': /[^`\\\r\n]{1,8192}/y,
};
/** A type between a name and its value: `password: str = "…"`. */
const TYPED = /[ \t]{0,3}[&?\w.]{1,40}(?:[[<][\w ,.|&]{1,40}[\]>])?\??[ \t]{0,3}=[ \t]{0,3}(?=\\{0,4}["'`])/y;
/** Before the name in a cell: the edge of the cell and other words of the name. */
const CELL_WORDS = /(?:^|[|│┃║¦\n"'])[ \t`*]{0,3}((?:[A-Za-z]{1,16} ){0,3})$/;
/** Around a string that becomes the value: `String::from("…")`, `Some("…")`, `[]byte("…")`. */
const WRAPPED =
  /(?:&?(?:\w{1,32}::)?(?:String|Secret\w{0,12}|SecureString|Cow|Arc|Box)(?:::(?:from|new))?|Some|Just|\[\]byte|Bytes|bytes|str|Buffer\.from|new [A-Z]\w{0,40})\(\s{0,4}(?=\\{0,4}["'`])/y;
/** An anchor or a type of YAML before a value. */
const YAML_TAG = /(?:&[\w-]{1,64}|!![a-z]{1,16})[ \t]{1,8}/y;
/** The name of what is redacted already. */
const MARK_BEGUN = /\[redacted: [a-z0-9-]*$/;

/** The first branch of a condition: `? 'asks for a password' : …`. */
const TERNARY = /[\s)]\?\s{1,3}(["'`])(?:(?!\1)[^\r\n]){0,80}$/;
/** The text or selector that describes a field, in quotes. */
const FIELD_VALUE = /\s{0,8}(\\{0,4})(["'`])((?:(?!\1\2)[^\r\n]){2,160})\1\2/y;
/** The name that a label is given. */
const LABEL_VALUE = /\s{0,8}(?:\\{0,4}["'`]([\w.:/ -]{2,96})\\{0,4}["'`]|([\w.:/-]{2,96}))/y;
/** The block, tag or object around a value: `variable "db_password" { default = …`, `<Password value=…`. */
const ENCLOSING =
  /(?:variable\s{1,4}"([\w-]{1,64})"\s{0,4}\{[^}]*|<([\w.-]{1,64})\s[^<>]*|([\w.-]{2,64})\\{0,4}["']?\s{0,3}:\s{0,3}\{[^{}]*)$/;

interface Found {
  start: number;
  value: string;
  isQuoted: boolean;
  next: string;
}

interface Label {
  named: NamedSecret;
  name: string;
  at: number;
  /** Other than of a 'label', only a value in the same object or tag is its value. */
  role: PairRole;
}

/**
 * Values that a name marks as secrets: assignments of every language, pairs of a name and a value, cells, tags.
 *
 * @param isOpen whether the text may go on: then a value at its end is not known for a word, or for too short
 */
export function assignedSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (!NAME_HINT.test(lower) && !(isOpen && EARLY.test(lower))) return;
  const scan = new AssignmentScan(text, spans, isOpen);
  SIGN.lastIndex = 0;
  for (let match = SIGN.exec(text); match !== null; match = SIGN.exec(text)) {
    scan.sign(match.index, /[│┃║]/.test(match[0]) ? '|' : match[0]);
  }
  scan.end();
  fallbackSecrets(text, spans, isOpen);
}

/** True for a type between a name and its value: `var password string = …`. */
function isTypeOf(text: string, name: string, closing: string, start: number): boolean {
  return closing === '' && name === 'string' && nameOf(text, name, closing, start)?.strength === 'strong';
}

/** A value whose name may follow. */
const EARLY = /value|content|default|text/;

class AssignmentScan {
  readonly #text: string;
  readonly #spans: SecretSpan[];
  readonly #isOpen: boolean;
  /** Text before this place is decided. */
  #upTo = 0;
  #label: Label | null = null;
  /** The value before the name: `value="…" name="password"`. */
  #early: (Found & { name: string }) | null = null;

  constructor(text: string, spans: SecretSpan[], isOpen: boolean) {
    this.#text = text;
    this.#spans = spans;
    this.#isOpen = isOpen;
  }

  sign(at: number, sign: string): void {
    const text = this.#text;
    if (at < this.#upTo || !mayAssign(text, at, sign)) return;
    const { name, closing, start } = nameBefore(text, at, sign);
    if (name === '') return;
    // a list of a type: `keys: WriteKey[] = …`
    if (closing === '[]' && /:\s?$/.test(text.slice(Math.max(0, start - 2), start))) return;
    // the branches of a condition
    if (sign === ':' && closing !== '' && TERNARY.test(text.slice(Math.max(0, start - 96), start))) return;
    if (closing.includes(']') && MARK_BEGUN.test(text.slice(Math.max(0, start - 48), start + name.length))) return;
    const role = pairRole(name);
    if (sign === '>') this.#tag(name, role, at, start);
    else if (sign === '(') this.#setter(name, at, start);
    else if (sign === '|') this.#cell(name, closing, at, start);
    else if (sign === ',' && !/["'`]/.test(closing)) return;
    else if (role === 'value' && !isTypeOf(text, name, closing, start))
      this.#valueOf(at + sign.length, sign, start, name);
    else this.#assigned({ name, closing, start }, role, at, sign);
  }

  #assigned({ name, closing, start }: AssignedName, role: PairRole | null, at: number, sign: string): void {
    const text = this.#text;
    if (role !== null && role !== 'value') this.#labelled(at + sign.length, start, role);
    // the type of what a function returns, or its body
    if (closing.includes(')') && sign !== '=') return;
    const named = nameOf(text, name, closing, start);
    if (named === null) return;
    const found = this.#value(at + sign.length, sign, closing, start, name);
    if (found !== null) this.#judge(found, named, name, sign, closing, at);
  }

  end(): void {
    const { start, value } = this.#early ?? { start: 0, value: '' };
    const isNear = this.#isOpen && this.#early !== null && this.#text.length - start < PAIR_REACH;
    if (isNear && !/[}>\n]/.test(this.#text.slice(start + value.length)) && !isStandIn(value))
      this.#spans.push({ start, end: this.#text.length, kind: BEGUN });
  }

  #judge(found: Found, named: NamedSecret, name: string, sign: string, closing: string, at: number): void {
    const { start, value, isQuoted, next } = found;
    const isSpaced = /\s/.test(this.#text.charAt(start - 1)) || /\s/.test(this.#text.charAt(at - 1));
    const isProse = !isQuoted && !/["'\]]/.test(closing) && (sign === ':' || isSpaced);
    // an annotation, a ternary, the last field of an object in a program
    const end = start + value.length;
    const after = this.#text.slice(end, end + 16);
    if (
      isProse &&
      /^[A-Za-z_]+$/.test(value) &&
      /^\s{0,3}(?:[=)}>?&]|\|\s{0,3}(?:null|undefined|None|string|[A-Z]))/.test(after)
    )
      return;
    // a comparison with what a call returns
    if (closing.includes(')') && isWord(value)) return;
    // the next attribute: type="password" :value="…"
    if (/^[a-z][a-z-]{0,24}=\\*$/.test(value) && /["'`{]/.test(next)) return;
    const place: ValuePlace = { isQuoted, isProse, next };
    // a list of names is none of names and values
    const isListed = sign === ',' && (/^[A-Za-z_.]*$|^\/[\w/?=&.-]*$/.test(value) || value.length < 6 || isWord(value));
    if (!isListed && isSecretValue(value, named, name, place)) {
      this.#add(start, value, named.kind);
      return;
    }
    if (this.#isOpen && mayBecome(value, named) && isUnfinished(this.#text, start, value))
      this.#spans.push(spanOf(start, value, BEGUN));
    // so that no long value is read again and again
    if (value.length > 256) this.#upTo = start + value.length;
  }

  #add(start: number, value: string, kind: string): void {
    this.#spans.push(spanOf(start, value, kind));
    this.#upTo = start + value.length;
  }

  /** `name: "DB_PASSWORD"`: the value may follow, or have come before. */
  #labelled(from: number, start: number, role: PairRole): void {
    const isSelector =
      role === 'field' || role === 'question' || /^\s{0,8}\\{0,4}["'`][#.[]/.test(this.#text.slice(from, from + 16));
    const pattern = isSelector ? FIELD_VALUE : LABEL_VALUE;
    pattern.lastIndex = from;
    const found = pattern.exec(this.#text);
    const name = (isSelector ? found?.[3] : (found?.[1] ?? found?.[2])) ?? '';
    const named = labelledSecret(role, name);
    if (role === 'pointer' && named === null) return;
    if (role === 'label' && !(named === null && this.#isInField(start))) this.#label = null;
    if (named === null) return;
    const early = this.#early;
    if (
      early !== null &&
      isValueOf(role, early.name) &&
      start - early.start < PAIR_REACH &&
      !/[}>\n]/.test(this.#text.slice(early.start + early.value.length, start))
    ) {
      const place = { isQuoted: true, isProse: false, next: early.next };
      if (isSecretValue(early.value, named, name, place)) {
        this.#spans.push({ start: early.start, end: early.start + early.value.length, kind: named.kind });
      }
      this.#early = null;
      return;
    }
    this.#label = { named, name, at: start, role };
  }

  /** True if the last label describes a field whose object or tag goes on at a place. */
  #isInField(at: number): boolean {
    return this.#label !== null && this.#label.role !== 'label' && !/[{}<>]/.test(this.#text.slice(this.#label.at, at));
  }

  #valueOf(from: number, sign: string, start: number, name: string): void {
    const found = this.#value(from, sign, '', start, 'value');
    const isOwn = this.#label?.role === 'label' || this.#isInField(start);
    const label = isOwn && this.#label !== null && isValueOf(this.#label.role, name) ? this.#label : null;
    // the value may be an object: { key: …, value: { stringValue: … } }
    if (found === null && /^\s{0,8}\{/.test(this.#text.slice(from, from + 10))) return;
    this.#label = null;
    if (found === null) return;
    if (label === null || start - label.at > PAIR_REACH) {
      const around = ENCLOSING.exec(this.#text.slice(Math.max(0, start - PAIR_REACH), start));
      const outer = around?.[1] ?? around?.[2] ?? (sign === ',' ? '' : around?.[3]) ?? '';
      const named = secretName(outer);
      if (found.value.length > 256) this.#upTo = found.start + found.value.length;
      if (named === null) this.#early = { ...found, name };
      else this.#judge(found, named, outer, '=', '"', from);
      return;
    }
    // a scheme and its credentials
    const isBare = label.named.kind === 'authorization' && !found.isQuoted;
    const value = isBare ? (run(this.#text, found.start, BARE.text as RegExp) ?? found.value) : found.value;
    this.#judge({ ...found, value, isQuoted: true }, label.named, label.name, '=', '"', from);
  }

  /** `<password>…</password>`, `<entry key="password">…</entry>`, `<value>…</value>` behind a name. */
  #tag(name: string, role: PairRole | null, at: number, start: number): void {
    const text = this.#text;
    if (text.charAt(at - 1) === '/' || text.charAt(start - 1) === '/' || text.charAt(at + 1) === '') return;
    const isTag =
      text.charAt(start - 1) === '<' ||
      (text.charAt(start - 1) === ':' && /<\w{1,32}:$/.test(text.slice(Math.max(0, start - 40), start)));
    const label = this.#label;
    const isNear = label !== null && label.role === 'label' && at - label.at < PAIR_REACH;
    let from = at + 1;
    if (text.startsWith('<![CDATA[', from)) from += 9;
    if (text.charAt(from) === '<') return;
    if (isTag && role === 'label') {
      const inner = run(text, from, BARE.text as RegExp);
      const named = inner === null ? null : secretName(inner.trim());
      this.#label = named === null ? null : { named, name: (inner as string).trim(), at: start, role };
      return;
    }
    const isValue = (isTag && role === 'value') || (!isTag && /["'\w]$/.test(text.slice(start, at)) && isNear);
    const named = isTag && role !== 'value' ? secretName(name) : isNear && isValue ? label.named : null;
    if (named === null) return;
    if (isValue) this.#label = null;
    BLANKS.lastIndex = from;
    const blanks = BLANKS.exec(text)?.[0] ?? '';
    from += blanks.length;
    const value = run(text, from, BARE.text as RegExp)?.replace(/(?:\]\]>|\s)+$/, '');
    if (value === undefined || value === '') return;
    const end = from + value.length;
    const behind = text.slice(end, end + 44);
    // on a line of its own, the closing tag may be on the next
    const isLine = blanks.includes('\n') && /^\r?\n/.test(behind);
    if (!isLine && !/^\s{0,20}(?:\]\]>\s{0,20})?<\//.test(behind)) {
      // a tag that is never closed is a placeholder: <password>
      if (this.#isOpen && /^[\s\]>]*<?$/.test(behind) && !/\s/.test(value))
        this.#spans.push({ start: from, end: text.length, kind: BEGUN });
      return;
    }
    this.#judge(
      { start: from, value, isQuoted: true, next: text.charAt(from + value.length) },
      named,
      isTag ? name : (label?.name ?? name),
      '=',
      '"',
      at,
    );
  }

  /** `.setPassword("…")`, `withToken('…')`. */
  #setter(name: string, at: number, start: number): void {
    OPEN_QUOTE.lastIndex = at + 1;
    if (OPEN_QUOTE.exec(this.#text) === null) return;
    const isSetter =
      /^(?:.*\.)?(?:set|with|add|use)(?=[A-Z_])|^Secret(?:Str|String|Bytes)?$/.test(name) ||
      this.#text.charAt(start - 1) === '.' ||
      name.includes('.');
    const named = isSetter ? secretName(name) : null;
    if (
      named === null ||
      named.strength === 'weak' ||
      /(?:^|\.)(?:get|has|is|find|check|verify|validate|create|parse|decode|read|fetch|hash|includes|match)[A-Za-z]*$/.test(
        name,
      )
    )
      return;
    const found = this.#value(at + 1, ',', '"', start, name);
    if (found === null) return;
    if (!isWord(found.value)) this.#judge(found, named, name, '=', '"', at);
    else if (this.#isOpen && isUnfinished(this.#text, found.start, found.value))
      this.#spans.push({ start: found.start, end: this.#text.length, kind: BEGUN });
  }

  /** `| DB_PASSWORD | … |` */
  #cell(name: string, closing: string, at: number, start: number): void {
    const named = secretName(name);
    if (named === null || named.strength === 'weak') return;
    let from = at + 1;
    while (/[ \t]/.test(this.#text.charAt(from))) from += 1;
    const words = CELL_WORDS.exec(this.#text.slice(Math.max(0, start - 48), start));
    if (words === null && closing !== '`') return;
    // types of a program: Uint8Array | t.CryptoKey
    if (
      /^\s*[[(]?(?:[A-Za-z_]+\.[A-Za-z_]+[,;)\]]?|[A-Z]\w{0,40}[,;)\]])(?:\s|$)/.test(this.#text.slice(from, from + 96))
    )
      return;
    const isAlone = (words?.[1] ?? '') === '';
    if (isAlone && !isOf(BLANK, this.#text, at - 1) && !/[|¦]/.test(this.#text.slice(Math.max(0, start - 4), start)))
      return;
    if (this.#text.charAt(from) === '`') from += 1;
    const value = run(this.#text, from, BARE.cell as RegExp)?.replace(/`$/, '');
    if (
      value === undefined ||
      isWord(value) ||
      value.length < 6 ||
      /^[:-]+$/.test(value) ||
      (!isAlone && !looksDrawn(value))
    ) {
      if (this.#isOpen && value !== undefined && from + value.length === this.#text.length)
        this.#judge({ start: from, value, isQuoted: false, next: '' }, named, name, ':', '', at);
      return;
    }
    this.#judge({ start: from, value, isQuoted: false, next: ' ' }, named, name, '=', '"', at);
  }

  #value(from: number, sign: string, closing: string, nameAt: number, name: string): Found | null {
    const text = this.#text;
    if (sign === ':' && !/["'`]/.test(closing)) {
      TYPED.lastIndex = from;
      from += TYPED.exec(text)?.[0].length ?? 0;
    }
    // == and ===, >
    while (text.charAt(from) === '=' && sign === '=') from += 1;
    if (text.charAt(from) === '>' && sign === '=') from += 1;
    BLANKS.lastIndex = from;
    let start = from + (BLANKS.exec(text)?.[0].length ?? 0);
    if (start - from > 48) return null;
    if (sign === ':') start += run(text, start, YAML_TAG)?.length ?? 0;
    start += run(text, start, WRAPPED)?.length ?? 0;
    OPEN_QUOTE.lastIndex = start;
    const quote = OPEN_QUOTE.exec(text);
    if (quote !== null) {
      const { 0: opening, 1: escapes = '', 2: sort = '"' } = quote;
      // it closes the string that the name begins: '--token='.length
      const isTight = sign === '=' && escapes === '' && start === from && nameAt + name.length === from - 1;
      if (
        isTight &&
        text
          .slice(Math.max(0, nameAt - 3), nameAt)
          .replace(/-+$/, '')
          .endsWith(sort)
      )
        return null;
      const isTriple = escapes === '' && text.startsWith(sort + sort, start + opening.length);
      const at = start + opening.length + (isTriple ? 2 : 0);
      const value = run(text, at, (escapes === '' ? QUOTED : ESCAPED)[sort] as RegExp);
      if (value === null || value.length >= LONGEST_VALUE)
        return value === null ? null : { start: at, value, isQuoted: true, next: '' };
      return { start: at, value, isQuoted: true, next: text.charAt(at + value.length) };
    }
    if (sign === ',') return null;
    const value = run(text, start, BARE.value as RegExp);
    if (value === null) return this.#symbols(start, nameAt);
    const next = text.charAt(start + value.length);
    const isTight = start === from && start > nameAt;
    if (
      isTight &&
      sign === '=' &&
      next !== '' &&
      /[^\s"'`]/.test(next) &&
      lineBegins(text, nameAt) &&
      (next !== '(' || /[^A-Za-z_.]/.test(value))
    ) {
      const last = run(text, start, BARE.last as RegExp) as string;
      const end = text.charAt(start + last.length);
      const whole = last.replace(/[,;]$/, '');
      if (/^[A-Z][A-Z0-9_]*$/.test(name) || /[^\w.]/.test(value))
        return { start, value: whole, isQuoted: false, next: end };
    }
    return { start, value, isQuoted: false, next };
  }

  /** A value that begins with a bracket: `DB_PASS=(x9…`. */
  #symbols(start: number, nameAt: number): Found | null {
    if (!lineBegins(this.#text, nameAt) || !/[=:]/.test(this.#text.charAt(start - 1))) return null;
    const value = run(this.#text, start, BARE.last as RegExp);
    return value === null || value.length < 6 || /^[{[(<][\s{[(<"'`]?|["'`]/.test(value.slice(0, 2))
      ? null
      : { start, value, isQuoted: false, next: '' };
  }
}

/** A fallback for a missing value: `os.getenv("TOKEN") or "…"`, `process.env.TOKEN ?? '…'`. */
const FALLBACK = /([\w.-]{2,96})["'`]?\s{0,2}[\])}]{0,2}\s{0,3}(?:\|\||\?\?|\bor\b|\belse\b|\?:)\s{0,3}\(?(["'`])/g;
const FALLBACK_SIGN = /(?:\|\||\?\?|\bor|\belse|\?:)\s{0,3}\(?["'`]/;
/** `${DB_PASS:-hunter2}`: a shell's default. */
const SHELL_DEFAULT = /\$\{([A-Za-z_]\w{0,95}):?[-=+]([^}\s"'`$]{1,512})/g;

/** Values that stand in for a missing secret. */
function fallbackSecrets(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const pattern of [FALLBACK, SHELL_DEFAULT]) {
    if (pattern === SHELL_DEFAULT ? !text.includes('${') : !FALLBACK_SIGN.test(text)) continue;
    for (const { 0: whole, 1: name = '', 2: second = '', index } of text.matchAll(pattern)) {
      const named = secretName(name);
      if (named === null || named.strength === 'weak') continue;
      const isShell = pattern === SHELL_DEFAULT;
      const start = index + whole.length - (isShell ? second.length : 0);
      const value = isShell ? second : run(text, start, QUOTED[second] as RegExp);
      if (value === null || value === '') continue;
      const place = { isQuoted: true, isProse: false, next: '' };
      if (isSecretValue(value, named, name, place) && !(isWord(value) && !isShell))
        spans.push(spanOf(start, value, named.kind));
      else if (isOpen && start + value.length === text.length && !isPlaceholder(value))
        spans.push({ start, end: text.length, kind: BEGUN });
    }
  }
}
