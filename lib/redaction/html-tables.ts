import { GUTTER } from './readings';
import { BEGUN, type SecretSpan } from './secret-span';
import { isStandIn } from './secret-values';
import { type Columns, isCellSecret, secretColumns } from './table-secrets';

const TAG = /<(\/?)(table|tr|td|th)(?:\s[^<>]{0,400})?>/gi;
/** The beginning of such a tag at the end of a text. */
const BEGUN_TAG = /<\/?(?:t(?:[a-z]{0,4}|[a-z]{1,4}\s[^<>]{0,400}))?$/i;
/** Tags inside a cell, and what stands between them. */
const WORD = /<[^<>]{0,200}(?:>|$)|[^\s<>]+/g;
/** Enough of a cell for its name and the tags around that. */
const MOST_NAME = 400;

/** A row of names so far. */
interface NameRow {
  names: string[];
  /** True if all of its cells are `<th>`. */
  isHeader: boolean;
}

/**
 * Finds secrets in the columns of HTML tables.
 *
 * Ordering: `scan` gets a text's chunks in order. The state after a chunk depends only on the text before it.
 */
export class HtmlTables {
  #columns: Columns | null = null;
  #row: NameRow | null = null;
  #cell = -1;
  #isInCell = false;
  #isFirstRow = false;
  /** The tag that the last chunk broke off in. */
  #partial = '';
  /** True if the next chunk begins a line. */
  #isAtLine = true;

  clone(): HtmlTables {
    const clone = new HtmlTables();
    clone.#columns = this.#columns;
    clone.#row = this.#row === null ? null : { ...this.#row, names: [...this.#row.names] };
    clone.#cell = this.#cell;
    clone.#isInCell = this.#isInCell;
    clone.#isFirstRow = this.#isFirstRow;
    clone.#partial = this.#partial;
    clone.#isAtLine = this.#isAtLine;
    return clone;
  }

  /** @param isOpen whether the text may go on */
  scan(chunk: string, isOpen: boolean): SecretSpan[] {
    if (!this.#isInCell && this.#partial === '' && !chunk.includes('<')) {
      this.#isAtLine = chunk.endsWith('\n');
      return [];
    }
    const before = this.#partial.length;
    const text = this.#partial + chunk;
    const spans: SecretSpan[] = [];
    let at = 0;
    for (const { 0: tag, 1: slash, 2: name = '', index } of text.matchAll(TAG)) {
      this.#read(text.slice(0, index), at, false, spans);
      at = index + tag.length;
      this.#enter(name.toLowerCase(), slash === '/');
    }
    this.#partial = BEGUN_TAG.exec(text.slice(at).slice(-MOST_NAME))?.[0] ?? '';
    this.#read(this.#partial === '' ? text : text.slice(0, -this.#partial.length), at, isOpen, spans);
    this.#isAtLine = chunk.endsWith('\n');
    return spans
      .filter(({ end }) => end > before)
      .map(({ start, end, kind }) => ({ start: Math.max(0, start - before), end: end - before, kind }));
  }

  #enter(tag: string, isEnd: boolean): void {
    if (tag === 'table' || tag === 'tr') {
      this.#endRow();
      if (tag === 'table') [this.#columns, this.#isFirstRow] = [null, !isEnd];
      else if (!isEnd) this.#row = { names: [], isHeader: true };
      return;
    }
    this.#isInCell = !isEnd;
    if (isEnd) return;
    this.#cell += 1;
    if (this.#row === null) return;
    if (tag === 'td') this.#row.isHeader = false;
    if (this.#row.isHeader || this.#isFirstRow) this.#row.names.push('');
    else this.#row = null;
  }

  #endRow(): void {
    const { names = [], isHeader = false } = this.#row ?? {};
    if (names.length > 0) {
      const columns = secretColumns(names.map((name) => name.replaceAll(/<[^<>]*>/g, ' ').trim()));
      // without a header, the first column may hold the names of rows
      this.#columns = columns !== null && !isHeader ? new Map([...columns].filter(([at]) => at > 0)) : columns;
      this.#isFirstRow = false;
    }
    [this.#row, this.#cell, this.#isInCell] = [null, -1, false];
  }

  /** The text of a cell. Each of its lines is read by itself: chunks end with lines. */
  #read(text: string, from: number, isOpen: boolean, spans: SecretSpan[]): void {
    if (!this.#isInCell || from === text.length) return;
    const column = this.#columns?.get(this.#cell);
    for (let at = from; at < text.length; ) {
      const newline = text.indexOf('\n', at);
      const end = newline < 0 ? text.length : newline;
      const line = text.slice(at, end);
      const isAtLine = at === 0 ? this.#isAtLine : text[at - 1] === '\n';
      const gutter = isAtLine ? (GUTTER.exec(line)?.[0].length ?? 0) : 0;
      const { names = [] } = this.#row ?? {};
      if (names.length > 0) names.push(`${names.pop()} ${line.slice(gutter)}`.slice(0, MOST_NAME));
      const word = onlyWord(line, 0) ?? onlyWord(line, gutter);
      if (column !== undefined && word !== null) {
        const start = at + word.from;
        const isLast = isOpen && at + word.to === text.length;
        if (isCellSecret(word.text, column)) spans.push({ start, end: at + word.to, kind: column.named.kind });
        else if (isLast && !isStandIn(word.text)) spans.push({ start, end: text.length, kind: BEGUN });
      }
      at = end + 1;
    }
  }
}

/** The only word of a line, without tags and emphasis; null if the line has none or several. */
function onlyWord(line: string, from: number): { text: string; from: number; to: number } | null {
  const words = [...line.slice(from).matchAll(WORD)].filter(([part]) => !part.startsWith('<'));
  const [word] = words;
  if (word === undefined || words.length > 1) return null;
  const [, before = '', text = ''] = /^(["'`*_]{0,3})(.*?)["'`*_]{0,3}$/.exec(word[0]) ?? [];
  const start = from + word.index + before.length;
  return text === '' ? null : { text, from: start, to: start + text.length };
}
