import { GUTTER } from './normalize-text';
import { isMetadataName, secretName } from './secret-names';
import { isBenign, isSecretValue, looksGenerated, pendingSpan, type SecretSpan, spanOf } from './secret-values';

/** The start of a list or object value, or of the columns of an INSERT. */
const START =
  /(?:=>|:?=|:)\s{0,40}(?:(?:\[\]|new )\w{1,20}(?:\[\])?|vec!|%[wW]|@|List\.of|Arrays\.asList)?[[{(]|\b(?:insert|replace)(?:\s{1,40}\w{1,12}){0,3}\s{1,40}[^\s(]{1,128}\s{0,40}\(/gi;
/** The last character of every START. */
const BRACKET = /[[{(]/;
const NAME = /([\w.$-]{2,96})\\{0,4}["'`]?[ \t]{0,8}$/;
/** Characters kept from earlier chunks, so that a START may span chunks. */
const MAX_LEAD = 400;
const MAX_COLUMNS_TEXT = 4_096;
const MAX_LEVELS = 64;
/** Only the start of a longer value is classified. */
const MAX_VALUE_LENGTH = 8_192;
const TOKEN = /["'`]|[[({\])},;]|\n|=>|[:=](?=[\s"'`[{]|$)|[^\S\n]+|(?:[^\s"'`[\](){},;:=]|[:=](?![\s"'`[{]|$))+/y;
/** String content up to its end or the end of the line. */
const INSIDE: Readonly<Record<string, RegExp>> = {
  '"': /(?:[^"\\\n]|\\.|\\$)*/y,
  "'": /(?:[^'\\\n]|\\.|\\$|'')*/y,
  '`': /(?:[^`\\\n]|\\.|\\$)*/y,
};
/** String content in an SQL row, where decoding may have removed the backslash of a quote. */
const INSIDE_ROW = /(?:[^'\\\n]|\\.|\\$|''|'(?!\s|[,):;\]}"]|$))*/y;
/** A statement parameter, whose value is an argument after the statement. */
const PARAMETER = /^(?:\?|%|\$\d|:\w|@\w)/;

/**
 * Classifies a value in a list or object that has the name of a secret; null if the value is not a secret.
 *
 * @param key the value's key in an object; null in a list
 */
export function nestedKind(name: string, key: string | null, value: string, isQuoted = true): string | null {
  const named = secretName(name);
  if (named === null || (named.strength === 'weak' && named.kind !== 'token')) return null;
  // A character class, an escape sequence.
  if (/\s|(?:A-Z|a-z|0-9).*(?:A-Z|a-z|0-9)|\\["'\\]/.test(value) || (key !== null && isMetadataName(key))) return null;
  // Other keys name users, services or parts. `current`, `value` and numbers are the secret itself.
  const isSelf = key === null || secretName(`${name}_${key}`)?.strength === 'strong';
  const mayBeWeak =
    isQuoted && (isSelf || /passwords$/i.test(name)) && named.kind === 'password' && !/pass$/i.test(name);
  const place = { isQuoted, isProse: true, next: '' };
  const isSecret = isSecretValue(value, { ...named, strength: 'strong' }, name, place);
  return isSecret && (mayBeWeak || looksGenerated(value)) ? named.kind : null;
}

/** The name that marks the value of a key as a secret: the key, or the object's name. Empty without one. */
export function nestedName(name: string, key: string): string {
  if (secretName(key)?.strength === 'strong') return key;
  return isMetadataName(key) || secretName(name)?.strength !== 'strong' ? '' : name;
}

interface Level {
  isList: boolean;
  name: string;
  /** The key of the next value. */
  key: string | null;
  /** A string that is a key, or an entry if a comma follows on the same line. */
  pending: string | null;
  pendingAt: number | null;
}

const NO_KEY = { key: null, pending: null, pendingAt: null };

function levelOf(bracket: string, name: string): Level {
  return { isList: !bracket.endsWith('{'), name, ...NO_KEY };
}

function lineEnd(text: string, from: number): number {
  const index = text.indexOf('\n', from);
  return index < 0 ? text.length : index;
}

type State =
  | { kind: 'none' }
  | { kind: 'columns'; text: string }
  | {
      kind: 'rows';
      columns: readonly string[];
      /** Index of the current value; null between rows. */
      column: number | null;
      depth: number;
      phase: 'statement' | 'values' | 'parameters' | 'quoted' | 'called' | 'arguments';
    }
  | { kind: 'nested'; levels: readonly Level[] };

/**
 * Finds secrets in named lists and objects, and in the rows of an INSERT, of any length.
 *
 * Ordering: `scan` takes chunks in text order; its state depends only on the text so far.
 */
export class ValueLists {
  #state: State = { kind: 'none' };
  /** The quote of a string that continues in the next chunk or line. */
  #quote = '';
  #lead = '';
  #isLineStart = true;

  clone(): ValueLists {
    const clone = new ValueLists();
    const state = this.#state;
    clone.#state =
      state.kind === 'nested' ? { ...state, levels: state.levels.map((level) => ({ ...level })) } : { ...state };
    clone.#quote = this.#quote;
    clone.#lead = this.#lead;
    clone.#isLineStart = this.#isLineStart;
    return clone;
  }

  /** @param isOpen true if more text may follow */
  scan(chunk: string, isOpen: boolean): SecretSpan[] {
    const spans: SecretSpan[] = [];
    let at = this.#state.kind === 'none' ? 0 : this.#read(chunk, 0, spans, isOpen);
    const lead = at === 0 ? this.#lead : '';
    const text = lead + chunk;
    START.lastIndex = at;
    for (let match = BRACKET.test(chunk) ? START.exec(text) : null; match !== null; match = START.exec(text)) {
      const end = match.index + match[0].length;
      if (end <= lead.length || !this.#begin(text, match)) continue;
      at = this.#read(chunk, end - lead.length, spans, isOpen);
      START.lastIndex = at + lead.length;
    }
    this.#lead = text.slice(Math.max(at === 0 ? 0 : at + lead.length, text.length - MAX_LEAD));
    if (chunk !== '') this.#isLineStart = chunk.endsWith('\n');
    return spans;
  }

  #begin(text: string, { 0: start, index }: RegExpExecArray): boolean {
    this.#quote = '';
    if (/^[ir]/i.test(start)) {
      this.#state = { kind: 'columns', text: '' };
      return true;
    }
    const name = NAME.exec(text.slice(Math.max(0, index - 120), index))?.[1] ?? '';
    const named = secretName(name);
    if (named === null || (named.strength === 'weak' && named.kind !== 'token')) return false;
    this.#state = { kind: 'nested', levels: [levelOf(start, name)] };
    return true;
  }

  /** Reads up to the end of the list or statement. @returns that index */
  #read(text: string, from: number, spans: SecretSpan[], isOpen: boolean): number {
    let isLineStart = from === 0 && this.#isLineStart;
    for (let index = from; index < text.length; ) {
      if (isLineStart) {
        this.#endLine(text, spans, false);
        const end = lineEnd(text, index);
        const line = text.slice(index, end);
        isLineStart = false;
        // A blank line ends a list; braces in code may be unbalanced.
        if (this.#state.kind === 'nested' && end < text.length && line.trim() === '') this.#state = { kind: 'none' };
        else index += GUTTER.exec(line)?.[0].length ?? 0;
      }
      if (this.#state.kind === 'none') return index;
      if (this.#quote !== '') {
        index = this.#string(text, index, spans, isOpen);
        isLineStart = text.charAt(index - 1) === '\n';
        continue;
      }
      TOKEN.lastIndex = index;
      const token = TOKEN.exec(text)?.[0] ?? text.charAt(index);
      if (token === '\n') isLineStart = true;
      else if (token.startsWith('-') && this.#mayBeComment) {
        index = lineEnd(text, index);
        continue;
      } else if (/\S/.test(token)) this.#token(token, index, text, spans, isOpen);
      index += token.length;
    }
    this.#endLine(text, spans, isOpen && !isLineStart);
    return text.length;
  }

  /** True where `-` starts an SQL comment. Removing a diff gutter may have taken the first `-`. */
  get #mayBeComment(): boolean {
    return this.#state.kind === 'columns' || (this.#state.kind === 'rows' && this.#state.column === null);
  }

  #endLine(text: string, spans: SecretSpan[], isOpen: boolean): void {
    const level = this.#state.kind === 'nested' ? this.#state.levels.at(-1) : undefined;
    if (level === undefined || level.pendingAt === null) return;
    if (isOpen && level.name !== '') spans.push(pendingSpan(level.pendingAt, text));
    level.pendingAt = null;
  }

  /** Reads the rest of an open string. @returns the index after it */
  #string(text: string, at: number, spans: SecretSpan[], isOpen: boolean): number {
    const isRow = this.#state.kind === 'rows' && this.#quote === "'";
    const inside = isRow ? INSIDE_ROW : (INSIDE[this.#quote] as RegExp);
    inside.lastIndex = at;
    const value = inside.exec(text)?.[0] ?? '';
    const end = at + value.length;
    this.#value(at, value, true, isOpen && end === text.length, text, spans);
    if (end === text.length) return end;
    // Only SQL strings contain line breaks.
    if (text.charAt(end) !== '\n' || this.#state.kind === 'nested') this.#quote = '';
    return end + 1;
  }

  #token(token: string, at: number, text: string, spans: SecretSpan[], isOpen: boolean): void {
    const state = this.#state;
    if (state.kind === 'columns') this.#columns(token, state.text);
    else if (state.kind === 'rows' && state.column === null) this.#between(token, state);
    else if (/^["'`]$/.test(token)) this.#quote = token;
    else if (state.kind === 'rows') this.#row(token, state);
    else if (state.kind === 'nested') this.#nested(token, at, text, spans, isOpen, state.levels);
  }

  #columns(token: string, before: string): void {
    const isLong = before.length > MAX_COLUMNS_TEXT;
    if (token !== ')') {
      this.#state = /[(;{]/.test(token) || isLong ? { kind: 'none' } : { kind: 'columns', text: before + token };
      return;
    }
    const columns = before.replaceAll(/["'`[\]]/g, '').split(',');
    const hasSecret = columns.some((name) => secretName(name) !== null);
    this.#state = hasSecret ? { kind: 'rows', columns, column: null, depth: 0, phase: 'statement' } : { kind: 'none' };
  }

  /** Reads tokens between rows, and between a parameterized statement and its arguments. */
  #between(token: string, state: Extract<State, { kind: 'rows' }>): void {
    const { phase } = state;
    const begin = (depth: number) => {
      this.#state = { ...state, column: 0, depth };
    };
    if (phase === 'statement') {
      if (/^values?$/i.test(token)) this.#state = { ...state, phase: 'values' };
      else if (!/^(?:overriding|system|user|["'`+.\\]+)$/i.test(token)) this.#state = { kind: 'none' };
    } else if (phase === 'called') {
      // prepare("…").run("mara", …)
      if (token.startsWith('.')) begin(1);
      else this.#state = { kind: 'none' };
    } else if (token === '(' || (token === '[' && phase !== 'values')) begin(1);
    else if (token === ')' && phase === 'quoted') this.#state = { ...state, phase: 'called' };
    else if (token === ',') {
      if (phase === 'quoted') this.#state = { ...state, phase: 'arguments' };
    } else if (phase === 'values' || /[;)\]}]/.test(token)) this.#state = { kind: 'none' };
    else if (/^["'`]$/.test(token)) {
      if (phase !== 'arguments') this.#state = { ...state, phase: 'quoted' };
      else {
        begin(1);
        this.#quote = token;
      }
    } else if (phase === 'arguments') begin(1);
  }

  #row(token: string, state: Extract<State, { kind: 'rows' }>): void {
    const column = state.column ?? 0;
    if (/^[[({]$/.test(token)) {
      // A list of rows: executemany("…", [("mara", …), …]).
      const isOuter = state.phase !== 'values' && state.depth === 1 && column === 0 && token !== '{';
      if (!isOuter) this.#state = { ...state, depth: state.depth + 1 };
    } else if (/^[\])}]$/.test(token))
      this.#state = { ...state, depth: state.depth - 1, column: state.depth > 1 ? column : null };
    else if (token === ',' && state.depth === 1) this.#state = { ...state, column: column + 1 };
    else if (state.phase === 'values' && PARAMETER.test(token)) this.#state = { ...state, phase: 'parameters' };
  }

  #nested(
    token: string,
    at: number,
    text: string,
    spans: SecretSpan[],
    isOpen: boolean,
    levels: readonly Level[],
  ): void {
    const level = levels.at(-1) as Level;
    if (levels.length > MAX_LEVELS) this.#state = { kind: 'none' };
    else if (/^[[({]$/.test(token)) {
      const inner = level.isList || level.key === null ? level.name : nestedName(level.name, level.key);
      this.#state = { kind: 'nested', levels: [...levels, levelOf(token, token === '(' ? '' : inner)] };
    } else if (/^[\])}]$/.test(token)) {
      this.#entry(level, spans);
      const outer = levels.slice(0, -1);
      Object.assign(outer.at(-1) ?? {}, NO_KEY);
      this.#state = outer.length === 0 ? { kind: 'none' } : { kind: 'nested', levels: outer };
    } else if (/^[,;]$/.test(token)) {
      this.#entry(level, spans);
      Object.assign(level, NO_KEY);
    } else if (/^(?::|=>?)$/.test(token)) Object.assign(level, { key: level.pending, pendingAt: null });
    else this.#value(at, token, false, isOpen && at + token.length === text.length, text, spans);
  }

  /** A braced entry without a key: `{"…", "…"}`. */
  #entry({ name, pending, pendingAt }: Level, spans: SecretSpan[]): void {
    const kind = pending === null || pendingAt === null ? null : nestedKind(name, null, pending);
    if (kind !== null) spans.push(spanOf(pendingAt as number, pending as string, kind));
  }

  /** @param isOpen true if the value reaches the end of the text and more may follow */
  #value(at: number, value: string, isQuoted: boolean, isOpen: boolean, text: string, spans: SecretSpan[]): void {
    const state = this.#state;
    const head = value.slice(0, MAX_VALUE_LENGTH);
    let kind: string | null = null;
    if (state.kind === 'rows') {
      if (state.phase === 'values' && value === '%s') this.#state = { ...state, phase: 'parameters' };
      const column = state.columns[state.column ?? 0] ?? '';
      const named = secretName(column);
      if (named === null || value === '') return;
      const isSecret = isSecretValue(head, named, column, { isQuoted: true, isProse: false, next: '' });
      kind = isSecret ? named.kind : null;
    } else if (state.kind === 'nested') {
      const level = state.levels.at(-1) as Level;
      if (!level.isList && level.key === null) {
        Object.assign(level, { pending: value, pendingAt: isQuoted ? at : null });
        return;
      }
      const key = level.isList ? null : level.key;
      if (level.name === '' || (key !== null && isMetadataName(key))) return;
      kind = nestedKind(level.name, key, head, isQuoted);
      Object.assign(level, NO_KEY);
    }
    if (kind !== null) spans.push(spanOf(at, value, kind));
    else if (isOpen && value !== '' && !isBenign(value)) spans.push(pendingSpan(at, text));
  }
}
