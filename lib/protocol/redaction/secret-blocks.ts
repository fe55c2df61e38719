import { HtmlTables } from './html-json-tables';
import { GUTTER, toOriginalSpan, unescapedTexts, unmapped } from './normalize-text';
import { secretName } from './secret-names';
import { PRIVATE_PEM64 } from './secret-shapes';
import {
  isBasicPair,
  isBenign,
  isWord,
  looksRandom,
  PENDING,
  type SecretSpan,
  shiftedSpan,
  spanOf,
} from './secret-values';
import {
  confirmedTable,
  MAX_TABLE_LINE,
  NO_ROW,
  pendingSecrets,
  type Row,
  rowSecrets,
  TABLE_HINT,
  type Table,
  tableAfter,
  tableHeader,
} from './table-secrets';
import { nestedKind, nestedName, ValueLists } from './value-lists';

/** Matches every text in which a block may start. */
const HINT =
  /(?:data|Data)["']?\s{0,3}:|Private-Lines|LS0tLS1CRUdJTi|[|>][+-]?\d?[+-]?\s*(?:#|\n|$)|"""|'''|<<[-~]?["']?\w{1,32}["']?\s*(?:\n|$)|kind["']?\s{0,3}:|---\s*(?:\n|$)/;
const PUTTY = /^\s{0,8}Private-Lines:\s{0,3}(\d{1,3})\s*$/;
/** The data of a Kubernetes manifest, which `kubectl get secret -o yaml` prints before the kind. */
const DATA = /^(\s{0,40})(?:- )?["']?(data|stringData|binaryData)["']?\s{0,3}:\s{0,3}\{?\s*$/;
const KIND = /^\s{0,40}(?:- )?["']?kind["']?\s{0,3}:\s{0,3}["']?(\w{1,64})/;
const CHILD = /^(\s{0,64}["']?[\w./-]{1,253}["']?\s{0,3}:\s{0,3}["']?)([^"'\r\n]{1,65536}?)["']?,?\s*$/;
const SCALAR =
  /^(\s{0,64})(?:- )?["']?([\w.-]{1,96})["']?\s{0,3}:\s{0,3}(?:!\S{1,32}\s{1,3})?[|>][+-]?\d?[+-]?\s*(?:#.*)?$/;
const FENCED = /(?:^|[^\w.-])["']?([\w.-]{2,96})["']?\s{0,3}[:=]\s{0,3}[rfbu]?("""|''')(.*)$/;
/** The name of a YAML list or mapping. */
const LIST = /^\s{0,64}(?:- )?["']?([\w.-]{2,96})["']?\s{0,3}:\s{0,3}(?:#.*)?$/;
/** An entry of a YAML list or mapping. */
const ENTRY =
  /^(?=\s*(?:-|["']?[\w.-]{1,96}["']?:)\s)(\s{0,64}(?:- )?(?:["']?([\w.-]{1,96})["']?:\s{1,8})?["']?)([^\s"']{1,8192})["']?\s*(?:#.*)?$/;
/** The columns of a `COPY … FROM stdin` in a PostgreSQL dump. */
const COPY = /\bcopy\s{1,4}\S{1,128}\s{0,4}\(([^()]{1,2000})\)\s{1,4}from\s{1,4}stdin\b/i;
const HEREDOC = /(?:^|[^\w.-])([\w.-]{2,96})\s{0,3}[:=]\s{0,3}(?:\$\(cat )?<<[-~]?["']?(\w{1,32})["']?\s*$/;
const PEM64 = new RegExp(`${PRIVATE_PEM64}[A-Za-z0-9+/_-]{20,}={0,2}\\s*["']?\\s*$`);
const BASE64_LINE = /^\s{0,64}["']?[A-Za-z0-9+/_-]{4,}={0,2}["']?[,;+]?\s*$/;

/** Text up to the first JSON string of a line. */
const STRING_BEGINS =
  /^(?:.{0,400}[{,]\s{0,2}"[\w.-]{1,64}"\s{0,2}:\s{0,2}"|\s{0,80}(?:"[\w.-]{1,64}"\s{0,2}:\s{0,2}|\[\s{0,8})?")(?=[^"]|"\w)/;
/** The end of a JSON string. */
const STRING_ENDS = /"\s{0,2}(?:,\s{0,2}"|[}\]])/;
/** The end of a JSON string after quoted CSV cells. */
const CELLS_END = /"{1,2}(?:,\s{0,2}"[\w.-]{1,64}"\s{0,2}:|\s{0,2}[}\]])/;
/** The end of a JSON string on an incomplete line. */
const STRING_MAY_END = /"\s{0,2}(?:,\s{0,2}"|[}\]]|,?\s{0,2}$)/;

function mayStartBlock(text: string): boolean {
  return HINT.test(text) || TABLE_HINT.test(text);
}

type Mode =
  | { kind: 'none' }
  /** The next lines. */
  | { kind: 'lines'; left: number }
  /** Lines of base64. */
  | { kind: 'base64' }
  /** Lines with a deeper indent. */
  | { kind: 'indent'; indent: number }
  /** Values of keys with a deeper indent. */
  | { kind: 'data'; indent: number; isPlain: boolean; scalar: number | null }
  /** Entries of a list with the same or a deeper indent, or of a mapping with a deeper indent. */
  | { kind: 'list'; indent: number; name: string }
  /** Rows below a header. */
  | { kind: 'table'; table: Table }
  /** Lines up to the one that contains the fence, or equals it. */
  | { kind: 'fence'; fence: string; isLine: boolean };

/**
 * Finds multi-line secrets by their first line: a Kubernetes Secret, a YAML block scalar, a PuTTY key, a base64-encoded
 * private key, a table.
 *
 * Ordering: `scan` takes chunks in text order; its state depends only on the text so far.
 */
class SecretBlocks {
  #mode: Mode = { kind: 'none' };
  /** True if the lines come from decoded JSON strings. */
  readonly #isDecoded: boolean;
  /** The kind of the Kubernetes manifest, once known. */
  #manifest: string | null = null;
  /** True to read lines without their gutters. */
  readonly #isBehindGutter: boolean;
  /** The incomplete line at the end of the last chunk. */
  #partial = '';

  constructor(isDecoded: boolean, isBehindGutter: boolean) {
    this.#isDecoded = isDecoded;
    this.#isBehindGutter = isBehindGutter;
  }

  clone(): SecretBlocks {
    const clone = new SecretBlocks(this.#isDecoded, this.#isBehindGutter);
    clone.#mode = { ...this.#mode };
    clone.#manifest = this.#manifest;
    clone.#partial = this.#partial;
    return clone;
  }

  /** True outside blocks at the start of a line. */
  get #isIdle(): boolean {
    return this.#mode.kind === 'none' && this.#partial === '';
  }

  /** @param isOpen true if the last line may continue */
  scan(chunk: string, isOpen: boolean): SecretSpan[] {
    const spans: SecretSpan[] = [];
    if (this.#isIdle && !mayStartBlock(chunk)) {
      this.#partial = lastLine(chunk);
      return spans;
    }
    for (let index = 0; index < chunk.length; ) {
      const newline = chunk.indexOf('\n', index);
      const end = newline < 0 ? chunk.length : newline;
      const before = index === 0 ? this.#partial : '';
      const line = before + chunk.slice(index, end).replace(/\r$/, '');
      const isWhole = newline >= 0;
      const found = this.#isDecoded ? this.#string(line, isWhole, isOpen) : this.#withoutGutter(line, isWhole, isOpen);
      for (const span of found) {
        const start = Math.max(index, index - before.length + span.start);
        const to = index - before.length + span.end;
        if (to > start) spans.push({ start, end: to, kind: span.kind });
      }
      this.#partial = isWhole ? '' : line.slice(0, MAX_PARTIAL);
      index = end + 1;
    }
    return spans;
  }

  /** Reads a line of a JSON string, which may start or end on the line. */
  #string(line: string, isWhole: boolean, isOpen: boolean): SecretSpan[] {
    const isChild = this.#mode.kind === 'data' && CHILD.test(line);
    const gutter = this.#gutter(line);
    const opening = isChild ? null : STRING_BEGINS.exec(line.slice(gutter));
    const lead = opening === null ? 0 : gutter + opening[0].length;
    if (lead > 0 && isWhole) this.#mode = { kind: 'none' };
    const rest = line.slice(lead);
    const ends = /^"[^"]*",/.test(rest) ? CELLS_END : isWhole ? STRING_ENDS : STRING_MAY_END;
    // The quotes of a fence don't end the string.
    const isFence = this.#mode.kind === 'fence' && rest.includes(this.#mode.fence);
    const end = isFence ? -1 : (ends.exec(rest)?.index ?? -1);
    const text = end < 0 ? rest : rest.slice(0, end);
    const found = this.#withoutGutter(text, isWhole || end >= 0, isOpen, opening !== null && gutter > 0);
    if (end >= 0) this.#mode = { kind: 'none' };
    return found.map((span) => shiftedSpan(span, lead));
  }

  #gutter(line: string): number {
    return this.#isBehindGutter ? (GUTTER.exec(line)?.[0].length ?? 0) : 0;
  }

  /** @param hasGutter true if a gutter precedes the string that starts on the line */
  #withoutGutter(line: string, isWhole: boolean, isOpen: boolean, hasGutter = false): SecretSpan[] {
    const gutter = this.#gutter(line);
    // The scan without gutters reads the other lines.
    if (this.#isBehindGutter && gutter === 0 && !hasGutter && this.#mode.kind === 'none') return [];
    return this.#read(line.slice(gutter), isWhole, isOpen).map((span) => shiftedSpan(span, gutter));
  }

  #read(line: string, isWhole: boolean, isOpen: boolean): SecretSpan[] {
    const { spans, isRow } = this.#mode.kind === 'table' ? this.#row(line, this.#mode.table, isWhole, isOpen) : NO_ROW;
    if (isRow) return spans;
    const found = isWhole || !isOpen ? this.#line(line, isWhole) : this.#openLine(line);
    return found === null ? spans : [...spans, found];
  }

  #row(line: string, known: Table, isWhole: boolean, isOpen: boolean): Row {
    const table = confirmedTable(known, line);
    if (isOpen && !isWhole && (table === null || table.header !== null))
      return { spans: pendingSecrets(line, known), isRow: false };
    const row = table === null ? NO_ROW : rowSecrets(line, table, isOpen && !isWhole);
    if (!isWhole) return row;
    const next = table === null ? null : tableAfter(table, line, row.isRow);
    this.#mode = next === null ? { kind: 'none' } : { kind: 'table', table: next };
    return row;
  }

  #openLine(line: string): SecretSpan | null {
    const found = this.#line(line, false);
    if (found !== null) return found;
    // The value is still too short to classify.
    const entry = this.#mode.kind === 'list' ? ENTRY.exec(line) : null;
    if (entry !== null && this.#mode.kind === 'list') {
      const [, before = '', key, value = ''] = entry;
      const mayBecome = !isBenign(value) && (key === undefined || nestedName(this.#mode.name, key) !== '');
      return mayBecome ? { start: before.length, end: line.length, kind: PENDING } : null;
    }
    const child = this.#mode.kind === 'data' ? CHILD.exec(line) : null;
    const value = child?.[2] ?? '';
    if (child === null || isBenign(value) || !/^[A-Za-z0-9+/=]+$/.test(value) || (isWord(value) && value.length < 8))
      return null;
    return { start: (child[1] ?? '').length, end: line.length, kind: PENDING };
  }

  /** @param isWhole true for a complete line; only these change the state */
  #line(line: string, isWhole: boolean): SecretSpan | null {
    const mode = this.#mode;
    const found = this.#within(line, mode, isWhole);
    if (found !== undefined) return found;
    if (isWhole) this.#begin(line);
    return null;
  }

  /** @returns undefined if the line is not part of the block */
  #within(line: string, mode: Mode, isWhole: boolean): SecretSpan | null | undefined {
    const none: Mode = { kind: 'none' };
    switch (mode.kind) {
      case 'none':
      case 'table':
        return undefined;
      case 'lines':
        if (isWhole) this.#mode = mode.left > 1 ? { kind: 'lines', left: mode.left - 1 } : none;
        return /^[A-Za-z0-9+/=\s]*$/.test(line) ? wholeLine(line, 'private-key') : undefined;
      case 'base64':
        if (BASE64_LINE.test(line) || (!isWhole && /^\s*[A-Za-z0-9+/=_-]*$/.test(line)))
          return wholeLine(line, 'private-key');
        if (isWhole) this.#mode = none;
        return undefined;
      case 'fence': {
        const end = mode.isLine ? (line.trim() === mode.fence ? 0 : -1) : line.indexOf(mode.fence);
        if (isWhole && end >= 0) this.#mode = none;
        return wholeLine(end < 0 ? line : line.slice(0, end), 'secret');
      }
      case 'indent':
        if (line.trim() === '' || indentOf(line) > mode.indent) return wholeLine(line, 'secret');
        if (isWhole) this.#mode = none;
        return undefined;
      case 'data':
        return this.#data(line, mode, isWhole);
      case 'list': {
        if (/^\s*(?:#.*)?$/.test(line)) return null;
        const isEntry = /^\s*-(?: |$)/.test(line) ? indentOf(line) >= mode.indent : indentOf(line) > mode.indent;
        if (!isEntry) {
          if (isWhole) this.#mode = none;
          return undefined;
        }
        const [, before = '', key = null, value = ''] = ENTRY.exec(line) ?? [];
        const kind = nestedKind(mode.name, key, value);
        return kind === null ? undefined : spanOf(before.length, value, kind);
      }
    }
  }

  #data(line: string, mode: Extract<Mode, { kind: 'data' }>, isWhole: boolean): SecretSpan | null | undefined {
    if (line.trim() === '') return null;
    const indent = indentOf(line);
    if (indent <= mode.indent) {
      if (isWhole) this.#mode = { kind: 'none' };
      return undefined;
    }
    if (mode.scalar !== null && indent > mode.scalar) return wholeLine(line, 'secret');
    const scalar = SCALAR.exec(line);
    if (isWhole) this.#mode = { ...mode, scalar: scalar !== null && mode.isPlain ? indent : null };
    if (scalar !== null) return null;
    const [, before = '', value = ''] = CHILD.exec(line) ?? [];
    if (value === '' || isBenign(value) || /^[[{|>]/.test(value)) return null;
    const isSecret = mode.isPlain || this.#manifest === 'secret' || isEncoded(value);
    return isSecret ? { start: before.length, end: before.length + value.length, kind: 'secret' } : null;
  }

  #begin(line: string): void {
    const kind = KIND.exec(line)?.[1]?.toLowerCase();
    if (kind !== undefined) this.#manifest = kind;
    else if (/^---\s*$/.test(line)) this.#manifest = null;
    const count = PUTTY.exec(line)?.[1];
    if (count !== undefined && Number(count) > 0) {
      this.#mode = { kind: 'lines', left: Number(count) };
      return;
    }
    const data = DATA.exec(line);
    if (data !== null && (this.#manifest === null || this.#manifest === 'secret' || data[2] === 'stringData')) {
      this.#mode = { kind: 'data', indent: (data[1] ?? '').length, isPlain: data[2] === 'stringData', scalar: null };
      return;
    }
    const scalar = SCALAR.exec(line);
    if (scalar !== null && secretName(scalar[2] ?? '')?.strength === 'strong') {
      this.#mode = { kind: 'indent', indent: indentOf(line) };
      return;
    }
    const fenced = FENCED.exec(line);
    if (
      fenced !== null &&
      !(fenced[3] ?? '').includes(fenced[2] as string) &&
      secretName(fenced[1] ?? '')?.strength === 'strong'
    ) {
      this.#mode = { kind: 'fence', fence: fenced[2] as string, isLine: false };
      return;
    }
    const heredoc = HEREDOC.exec(line);
    if (heredoc !== null && secretName(heredoc[1] ?? '')?.strength === 'strong') {
      this.#mode = { kind: 'fence', fence: heredoc[2] as string, isLine: true };
      return;
    }
    if (PEM64.test(line)) {
      this.#mode = { kind: 'base64' };
      return;
    }
    const list = LIST.exec(line)?.[1] ?? '';
    if (secretName(list)?.strength === 'strong') {
      this.#mode = { kind: 'list', indent: indentOf(line), name: list };
      return;
    }
    const separator = /\bcsv\b/i.test(line) ? ',' : '\t';
    const copied = COPY.exec(line)?.[1]
      ?.replaceAll(/\s*,\s*/g, separator)
      .replaceAll('"', '');
    const table = TABLE_HINT.test(line) ? tableHeader(copied ?? line) : null;
    if (table !== null) this.#mode = { kind: 'table', table };
  }
}

/** Covers the first line of any block, and a table row. */
const MAX_PARTIAL = MAX_TABLE_LINE;

function lastLine(text: string): string {
  return text.slice(text.lastIndexOf('\n') + 1).slice(0, MAX_PARTIAL);
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function wholeLine(line: string, kind: string): SecretSpan | null {
  const start = indentOf(line);
  const end = line.trimEnd().length;
  return end > start ? { start, end, kind } : null;
}

/** True for base64-encoded data rather than a word in the base64 alphabet. */
function isEncoded(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{4,}={0,2}$/.test(value) || value.length % 4 !== 0) return false;
  if (isWord(value) || /^\d+$/.test(value)) return false;
  if (value.endsWith('=') || looksRandom(value) || isBasicPair(value)) return true;
  try {
    return /^[\s\x20-\x7e]{6,}$/.test(atob(value));
  } catch {
    return false;
  }
}

interface Scan {
  clone(): Scan;
  scan(chunk: string, isOpen: boolean): SecretSpan[];
}

/** Scans a text as written and with decoded escapes, each with and without gutters. */
export class BlockScan {
  readonly #written: readonly Scan[];
  readonly #decoded: readonly Scan[];

  constructor(
    written: readonly Scan[] = [new SecretBlocks(false, false), new SecretBlocks(false, true), new ValueLists()],
    decoded: readonly Scan[] = [
      new SecretBlocks(true, false),
      new SecretBlocks(true, true),
      new ValueLists(),
      new HtmlTables(),
    ],
  ) {
    this.#written = written;
    this.#decoded = decoded;
  }

  clone(): BlockScan {
    return new BlockScan(
      this.#written.map((blocks) => blocks.clone()),
      this.#decoded.map((blocks) => blocks.clone()),
    );
  }

  /** Reads the next chunk. @returns its secrets */
  scan(chunk: string, isOpen = false): SecretSpan[] {
    const source = unescapedTexts(chunk).at(-1) ?? unmapped(chunk);
    const decoded = this.#decoded.flatMap((blocks) => blocks.scan(source.text, isOpen));
    return [
      ...this.#written.flatMap((blocks) => blocks.scan(chunk, isOpen)),
      ...decoded.map((span) => toOriginalSpan(span, source, chunk)),
    ];
  }
}
