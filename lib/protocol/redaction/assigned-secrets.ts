import {
  type AssignedName,
  BLANK,
  classifyName,
  isIn,
  isValueOf,
  mayAssign,
  NAME_HINT,
  type NamedSecret,
  nameBefore,
  type PairRole,
  pairRole,
  secretName,
  secretOfLabel,
  startsLine,
} from './secret-names';
import {
  isBenign,
  isPlaceholder,
  isSecretValue,
  isUnfinished,
  isWord,
  looksGenerated,
  matchAt,
  mayBecomeSecret,
  pendingSpan,
  QUOTED,
  type SecretSpan,
  spanOf,
  type ValueContext,
} from './secret-values';

const MAX_VALUE_LENGTH = 8_192;
/** Longest distance in characters between a label (`name: DB_PASS`) and its value (`value: …`). */
const PAIR_REACH = 240;

/** Assignment operators, and the separators of table cells (`|`), arguments (`,`), XML tags (`>`) and setters (`(`). */
const OPERATOR = /=>|:=|[=:]|[>,(|│┃║]/g;
/** An opening quote, with a string prefix or C#'s `@` and any backslashes. */
const OPEN_QUOTE = /(?:[rbfuNL@$]{1,2}(?=["']))?(\\{0,4})(["'`])/y;
const BLANKS = /[ \t\u00a0]*(?:\r?\n[ \t]*)?/y;
const BARE: Readonly<Record<string, RegExp>> = {
  value: /[^\s"'`,;&|(){}[\]<>]{1,8192}/y,
  /** The rest of a line up to a blank: `DB_PASS=a(b|c`. */
  last: /\S{1,8192}/y,
  text: /[^<\r\n]{1,8192}/y,
  cell: /[^\s|"']{1,8192}/y,
};
const ESCAPED: Readonly<Record<string, RegExp>> = {
  '"': /[^"\\\r\n]{1,8192}/y,
  "'": /[^'\\\r\n]{1,8192}/y,
  '`': /[^`\\\r\n]{1,8192}/y,
};
/** A type annotation: `password: str = "…"`. */
const TYPED = /[ \t]{0,3}[&?\w.]{1,40}(?:[[<][\w ,.|&]{1,40}[\]>])?\??[ \t]{0,3}=[ \t]{0,3}(?=\\{0,4}["'`])/y;
/** The cell's edge and the words before a name. */
const CELL_WORDS = /(?:^|[|│┃║¦\n"'])[ \t`*]{0,3}((?:[A-Za-z]{1,16} ){0,3})$/;
/** A conversion around a string: `String::from("…")`, `Some("…")`, `[]byte("…")`. */
const WRAPPED =
  /(?:&?(?:\w{1,32}::)?(?:String|Secret\w{0,12}|SecureString|Cow|Arc|Box)(?:::(?:from|new))?|Some|Just|\[\]byte|Bytes|bytes|str|Buffer\.from|new [A-Z]\w{0,40})\(\s{0,4}(?=\\{0,4}["'`])/y;
/** A YAML anchor or tag before a value. */
const YAML_TAG = /(?:&[\w-]{1,64}|!![a-z]{1,16})[ \t]{1,8}/y;
/** Letters that are no name in code: a lone lower-case letter, or 17 letters of one case in a row. */
const RANDOM_LETTERS = /(?<![a-z])[a-z](?![a-z])|[a-z]{17}|[A-Z]{17}/;
/** The start of a redaction mark. */
const PARTIAL_MARK = /\[redacted: [a-z0-9-]*$/;

/** The first branch of a ternary: `? 'asks for a password' : …`. */
const TERNARY = /[\s)]\?\s{1,3}(["'`])(?:(?!\1)[^\r\n]){0,80}$/;
/** A quoted label or selector of a form field. */
const FIELD_VALUE = /\s{0,8}(\\{0,4})(["'`])((?:(?!\1\2)[^\r\n]){2,160})\1\2/y;
/** The value of a label field. */
const LABEL_VALUE = /\s{0,8}(?:\\{0,4}["'`]([\w.:/ -]{2,96})\\{0,4}["'`]|([\w.:/-]{2,96}))/y;
/** The enclosing block, tag or object: `variable "db_password" { default = …`, `<Password value=…`. */
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
  /** Only a 'label' applies beyond its own object or tag. */
  role: PairRole;
}

/**
 * Finds values by their names: assignments in any language, label–value pairs, table cells, tags.
 *
 * @param isOpen true if more text may follow: a word or short value at the end is then pending
 */
export function assignedSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (!NAME_HINT.test(lower) && !(isOpen && VALUE_FIRST_HINT.test(lower))) return;
  const scan = new AssignmentScan(text, spans, isOpen);
  OPERATOR.lastIndex = 0;
  for (let match = OPERATOR.exec(text); match !== null; match = OPERATOR.exec(text)) {
    scan.apply(match.index, /[│┃║]/.test(match[0]) ? '|' : match[0]);
  }
  scan.end();
  fallbackSecrets(text, spans, isOpen);
}

/** True for a type after the name: `var password string = …`. */
function isTypeOf(text: string, name: string, closing: string, start: number): boolean {
  return closing === '' && name === 'string' && classifyName(text, name, closing, start)?.strength === 'strong';
}

/** Fields whose label may follow. */
const VALUE_FIRST_HINT = /value|content|default|text/;

class AssignmentScan {
  readonly #text: string;
  readonly #spans: SecretSpan[];
  readonly #isOpen: boolean;
  /** Operators before this index are done. */
  #upTo = 0;
  #label: Label | null = null;
  /** A value before its label: `value="…" name="password"`. */
  #early: (Found & { name: string }) | null = null;

  constructor(text: string, spans: SecretSpan[], isOpen: boolean) {
    this.#text = text;
    this.#spans = spans;
    this.#isOpen = isOpen;
  }

  apply(at: number, operator: string): void {
    const text = this.#text;
    if (at < this.#upTo || !mayAssign(text, at, operator)) return;
    const { name, closing, start } = nameBefore(text, at, operator);
    if (name === '') return;
    // An array type: `keys: WriteKey[] = …`.
    if (closing === '[]' && /:\s?$/.test(text.slice(Math.max(0, start - 2), start))) return;
    // The second branch of a ternary.
    if (operator === ':' && closing !== '' && TERNARY.test(text.slice(Math.max(0, start - 96), start))) return;
    if (closing.includes(']') && PARTIAL_MARK.test(text.slice(Math.max(0, start - 48), start + name.length))) return;
    const role = pairRole(name);
    if (operator === '>') this.#tag(name, role, at, start);
    else if (operator === '(') this.#setter(name, at, start);
    else if (operator === '|') this.#cell(name, closing, at, start);
    else if (operator === ',' && !/["'`]/.test(closing)) return;
    else if (role === 'value' && !isTypeOf(text, name, closing, start))
      this.#valueOf(at + operator.length, operator, start, name);
    else this.#assigned({ name, closing, start }, role, at, operator);
  }

  #assigned({ name, closing, start }: AssignedName, role: PairRole | null, at: number, operator: string): void {
    const text = this.#text;
    if (role !== null && role !== 'value') this.#labelled(at + operator.length, start, role);
    // A return type or a function body.
    if (closing.includes(')') && operator !== '=') return;
    const named = classifyName(text, name, closing, start);
    if (named === null) return;
    const found = this.#value(at + operator.length, operator, closing, start, name);
    if (found !== null) this.#classify(found, named, name, operator, closing, at);
  }

  end(): void {
    const { start, value } = this.#early ?? { start: 0, value: '' };
    const isNear = this.#isOpen && this.#early !== null && this.#text.length - start < PAIR_REACH;
    if (isNear && !/[}>\n]/.test(this.#text.slice(start + value.length)) && !isBenign(value))
      this.#spans.push(pendingSpan(start, this.#text));
  }

  #classify(found: Found, named: NamedSecret, name: string, operator: string, closing: string, at: number): void {
    const { start, value, isQuoted, next } = found;
    const isSpaced = /\s/.test(this.#text.charAt(start - 1)) || /\s/.test(this.#text.charAt(at - 1));
    const isProse = !isQuoted && !/["'\]]/.test(closing) && (operator === ':' || isSpaced);
    // A type annotation, a ternary, the last field of an object literal.
    const end = start + value.length;
    const after = this.#text.slice(end, end + 16);
    if (
      isProse &&
      /^[A-Za-z_]+$/.test(value) &&
      !RANDOM_LETTERS.test(value) &&
      /^\s{0,3}(?:[=)}>?&]|\|\s{0,3}(?:null|undefined|None|string|[A-Z]))/.test(after)
    )
      return;
    // A comparison with a return value.
    if (closing.includes(')') && isWord(value)) return;
    // The next attribute: type="password" :value="…".
    if (/^[a-z][a-z-]{0,24}=\\*$/.test(value) && /["'`{]/.test(next)) return;
    const place: ValueContext = { isQuoted, isProse, next };
    // A list of names rather than of names and values.
    const isListed =
      operator === ',' && (/^[A-Za-z_.]*$|^\/[\w/?=&.-]*$/.test(value) || value.length < 6 || isWord(value));
    if (!isListed && isSecretValue(value, named, name, place)) {
      this.#add(start, value, named.kind);
      return;
    }
    if (this.#isOpen && mayBecomeSecret(value, named) && isUnfinished(this.#text, start, value))
      this.#spans.push(pendingSpan(start, this.#text));
    // Reads a long value once.
    if (value.length > 256) this.#upTo = start + value.length;
  }

  #add(start: number, value: string, kind: string): void {
    this.#spans.push(spanOf(start, value, kind));
    this.#upTo = start + value.length;
  }

  /** `name: "DB_PASSWORD"`, whose value follows or precedes it. */
  #labelled(from: number, start: number, role: PairRole): void {
    const isSelector =
      role === 'field' || role === 'question' || /^\s{0,8}\\{0,4}["'`][#.[]/.test(this.#text.slice(from, from + 16));
    const pattern = isSelector ? FIELD_VALUE : LABEL_VALUE;
    pattern.lastIndex = from;
    const found = pattern.exec(this.#text);
    const name = (isSelector ? found?.[3] : (found?.[1] ?? found?.[2])) ?? '';
    const named = secretOfLabel(role, name);
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
        this.#spans.push(spanOf(early.start, early.value, named.kind));
      }
      this.#early = null;
      return;
    }
    this.#label = { named, name, at: start, role };
  }

  /** True if the object or tag of the last form field label still encloses an index. */
  #isInField(at: number): boolean {
    return this.#label !== null && this.#label.role !== 'label' && !/[{}<>]/.test(this.#text.slice(this.#label.at, at));
  }

  #valueOf(from: number, operator: string, start: number, name: string): void {
    const found = this.#value(from, operator, '', start, 'value');
    const isOwn = this.#label?.role === 'label' || this.#isInField(start);
    const label = isOwn && this.#label !== null && isValueOf(this.#label.role, name) ? this.#label : null;
    // A nested value: { key: …, value: { stringValue: … } }.
    if (found === null && /^\s{0,8}\{/.test(this.#text.slice(from, from + 10))) return;
    this.#label = null;
    if (found === null) return;
    if (label === null || start - label.at > PAIR_REACH) {
      const around = ENCLOSING.exec(this.#text.slice(Math.max(0, start - PAIR_REACH), start));
      const outer = around?.[1] ?? around?.[2] ?? (operator === ',' ? '' : around?.[3]) ?? '';
      const named = secretName(outer);
      if (found.value.length > 256) this.#upTo = found.start + found.value.length;
      if (named === null) this.#early = { ...found, name };
      else this.#classify(found, named, outer, '=', '"', from);
      return;
    }
    // An authentication scheme and its credentials.
    const isBare = label.named.kind === 'authorization' && !found.isQuoted;
    const value = isBare ? (matchAt(this.#text, found.start, BARE.text as RegExp) ?? found.value) : found.value;
    this.#classify({ ...found, value, isQuoted: true }, label.named, label.name, '=', '"', from);
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
      const inner = matchAt(text, from, BARE.text as RegExp);
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
    const value = matchAt(text, from, BARE.text as RegExp)?.replace(/(?:\]\]>|\s)+$/, '');
    if (value === undefined || value === '') return;
    const end = from + value.length;
    const behind = text.slice(end, end + 44);
    // The closing tag may be on the line after the value.
    const isLine = blanks.includes('\n') && /^\r?\n/.test(behind);
    if (!isLine && !/^\s{0,20}(?:\]\]>\s{0,20})?<\//.test(behind)) {
      // A tag that never closes is a placeholder: <password>.
      if (this.#isOpen && /^[\s\]>]*<?$/.test(behind) && !/\s/.test(value)) this.#spans.push(pendingSpan(from, text));
      return;
    }
    this.#classify(
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
    if (!isWord(found.value)) this.#classify(found, named, name, '=', '"', at);
    else if (this.#isOpen && isUnfinished(this.#text, found.start, found.value))
      this.#spans.push(pendingSpan(found.start, this.#text));
  }

  /** `| DB_PASSWORD | … |` */
  #cell(name: string, closing: string, at: number, start: number): void {
    const named = secretName(name);
    if (named === null || named.strength === 'weak') return;
    let from = at + 1;
    while (/[ \t]/.test(this.#text.charAt(from))) from += 1;
    const words = CELL_WORDS.exec(this.#text.slice(Math.max(0, start - 48), start));
    if (words === null && closing !== '`') return;
    // Type unions: Uint8Array | t.CryptoKey.
    if (
      /^\s*[[(]?(?:[A-Za-z_]+\.[A-Za-z_]+[,;)\]]?|[A-Z]\w{0,40}[,;)\]])(?:\s|$)/.test(this.#text.slice(from, from + 96))
    )
      return;
    const isAlone = (words?.[1] ?? '') === '';
    if (isAlone && !isIn(BLANK, this.#text, at - 1) && !/[|¦]/.test(this.#text.slice(Math.max(0, start - 4), start)))
      return;
    if (this.#text.charAt(from) === '`') from += 1;
    const value = matchAt(this.#text, from, BARE.cell as RegExp)?.replace(/`$/, '');
    if (
      value === undefined ||
      isWord(value) ||
      value.length < 6 ||
      /^[:-]+$/.test(value) ||
      (!isAlone && !looksGenerated(value))
    ) {
      if (this.#isOpen && value !== undefined && from + value.length === this.#text.length)
        this.#classify({ start: from, value, isQuoted: false, next: '' }, named, name, ':', '', at);
      return;
    }
    this.#classify({ start: from, value, isQuoted: false, next: ' ' }, named, name, '=', '"', at);
  }

  #value(from: number, operator: string, closing: string, nameAt: number, name: string): Found | null {
    const text = this.#text;
    if (operator === ':' && !/["'`]/.test(closing)) {
      TYPED.lastIndex = from;
      from += TYPED.exec(text)?.[0].length ?? 0;
    }
    // == and ===, >
    while (text.charAt(from) === '=' && operator === '=') from += 1;
    if (text.charAt(from) === '>' && operator === '=') from += 1;
    BLANKS.lastIndex = from;
    let start = from + (BLANKS.exec(text)?.[0].length ?? 0);
    if (start - from > 48) return null;
    if (operator === ':') start += matchAt(text, start, YAML_TAG)?.length ?? 0;
    start += matchAt(text, start, WRAPPED)?.length ?? 0;
    OPEN_QUOTE.lastIndex = start;
    const quote = OPEN_QUOTE.exec(text);
    if (quote !== null) {
      const { 0: opening, 1: escapes = '', 2: mark = '"' } = quote;
      // The quote closes the string around the name: '--token='.length.
      const isTight = operator === '=' && escapes === '' && start === from && nameAt + name.length === from - 1;
      if (
        isTight &&
        text
          .slice(Math.max(0, nameAt - 3), nameAt)
          .replace(/-+$/, '')
          .endsWith(mark)
      )
        return null;
      const isTriple = escapes === '' && text.startsWith(mark + mark, start + opening.length);
      const at = start + opening.length + (isTriple ? 2 : 0);
      const value = matchAt(text, at, (escapes === '' ? QUOTED : ESCAPED)[mark] as RegExp);
      if (value === null || value.length >= MAX_VALUE_LENGTH)
        return value === null ? null : { start: at, value, isQuoted: true, next: '' };
      return { start: at, value, isQuoted: true, next: text.charAt(at + value.length) };
    }
    if (operator === ',') return null;
    const value = matchAt(text, start, BARE.value as RegExp);
    if (value === null) return this.#symbols(start, nameAt);
    const next = text.charAt(start + value.length);
    const isTight = start === from && start > nameAt;
    if (
      isTight &&
      operator === '=' &&
      next !== '' &&
      /[^\s"'`]/.test(next) &&
      startsLine(text, nameAt) &&
      (next !== '(' || /[^A-Za-z_.]/.test(value))
    ) {
      const last = matchAt(text, start, BARE.last as RegExp) as string;
      const end = text.charAt(start + last.length);
      const whole = last.replace(/[,;]$/, '');
      if (/^[A-Z][A-Z0-9_]*$/.test(name) || /[^\w.]/.test(value))
        return { start, value: whole, isQuoted: false, next: end };
    }
    return { start, value, isQuoted: false, next };
  }

  /** A value that starts with a symbol: `DB_PASS=(x9…`. */
  #symbols(start: number, nameAt: number): Found | null {
    if (!startsLine(this.#text, nameAt) || !/[=:]/.test(this.#text.charAt(start - 1))) return null;
    const value = matchAt(this.#text, start, BARE.last as RegExp);
    return value === null || value.length < 6 || /^[{[(<][\s{[(<"'`]?|["'`]/.test(value.slice(0, 2))
      ? null
      : { start, value, isQuoted: false, next: '' };
  }
}

/** `os.getenv("TOKEN") or "…"`, `process.env.TOKEN ?? '…'`. */
const FALLBACK = /([\w.-]{2,96})["'`]?\s{0,2}[\])}]{0,2}\s{0,3}(?:\|\||\?\?|\bor\b|\belse\b|\?:)\s{0,3}\(?(["'`])/g;
const FALLBACK_HINT = /(?:\|\||\?\?|\bor|\belse|\?:)\s{0,3}\(?["'`]/;
/** `${DB_PASS:-hunter2}` in a shell. */
const SHELL_DEFAULT = /\$\{([A-Za-z_]\w{0,95}):?[-=+]([^}\s"'`$]{1,512})/g;

/** Finds fallbacks for a missing secret. */
function fallbackSecrets(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const pattern of [FALLBACK, SHELL_DEFAULT]) {
    if (pattern === SHELL_DEFAULT ? !text.includes('${') : !FALLBACK_HINT.test(text)) continue;
    for (const { 0: whole, 1: name = '', 2: second = '', index } of text.matchAll(pattern)) {
      const named = secretName(name);
      if (named === null || named.strength === 'weak') continue;
      const isShell = pattern === SHELL_DEFAULT;
      const start = index + whole.length - (isShell ? second.length : 0);
      const value = isShell ? second : matchAt(text, start, QUOTED[second] as RegExp);
      if (value === null || value === '') continue;
      const place = { isQuoted: true, isProse: false, next: '' };
      if (isSecretValue(value, named, name, place) && !(isWord(value) && !isShell))
        spans.push(spanOf(start, value, named.kind));
      else if (isOpen && start + value.length === text.length && !isPlaceholder(value))
        spans.push(pendingSpan(start, text));
    }
  }
}
