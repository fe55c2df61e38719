import { Lexer, type Token, type Tokens } from 'marked';
import remend from 'remend';

/** Longest text that is parsed while the page renders, in UTF-16 units. A worker parses longer ones. */
export const LIGHT_CHARACTERS = 4_000;
/** Maximum inline work for such a text: about five milliseconds of the slowest known one. */
const LIGHT_WORK = 500_000;
/** Blocks at the end of a growing text that more text may still change: a list continues after an empty line. */
const UNSETTLED_BLOCKS = 3;
/** One text gets at most this many elements; the rest is shown as written. */
const MAX_PIECES = 4_000;
/** A step that a browser lays out without a pause, in elements and in characters. */
const STEP = { pieces: 300, characters: 30_000 };
/** A larger block is split: a list becomes several lists, a paragraph several paragraphs. */
const MAX_BLOCK = { pieces: 500, characters: 6_000 };
/** Rows of a table that are parsed and laid out. */
const MAX_ROWS = 300;
/** A code block has a box, a language name and a copy button. */
const CODE_PIECES = 10;
/** Deeper nesting than anyone writes, which may overflow the parser's stack. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){40}/m;
/** Each of these makes the parser search the rest of its paragraph for a counterpart. */
const MARKS = /[*_~`[\]<>!&\\|@:#]/g;

/** A table whose `rows` are truncated to `MAX_ROWS`. */
export interface LongTable extends Tokens.Table {
  rowCount: number;
}

/** A text as blocks, as far as it is parsed. */
export interface Parsed {
  /** The text that was parsed. */
  text: string;
  blocks: readonly Token[];
  /** The end of each block in the text. Text after the last one is shown as written. */
  ends: readonly number[];
  /** Leading blocks that more text can't change. */
  settled: number;
  /** True if the limit of elements is reached: the rest is not parsed. */
  isFull: boolean;
  /** True if the text was still growing when it was parsed. */
  isGrowing: boolean;
}

export const NOTHING_PARSED: Parsed = { text: '', blocks: [], ends: [], settled: 0, isFull: false, isGrowing: true };

/** Upper bound of the inline parser's work on one paragraph, in characters visited. */
export function inlineWork(paragraph: string): number {
  return paragraph.length * (1 + (paragraph.match(MARKS)?.length ?? 0));
}

/**
 * Blocks of a whole text. Text the parser can't handle becomes one block, shown as written.
 *
 * @returns null if inline parsing would take more than `maxWork`
 */
export function parseBlocks(text: string, maxWork = Number.POSITIVE_INFINITY): Token[] | null {
  if (TOO_DEEP.test(text)) return asWritten(text);
  const lexer = new Lexer({ gfm: true });
  try {
    const blocks = lexer.blockTokens(text.replace(/\r\n?/g, '\n'), lexer.tokens);
    const queue = lexer.inlineQueue.splice(0);
    if (queue.reduce((sum, { src }) => sum + inlineWork(src), 0) > maxWork) return null;
    for (const { src, tokens } of queue) {
      if (src.length <= MAX_BLOCK.characters) lexer.inlineTokens(src, tokens);
      else tokens.push({ type: 'as-written', raw: src });
    }
    return split(blocks, lexer);
  } catch {
    return asWritten(text);
  }
}

/** The part of a text that `parseBlocks` has to parse, given what is settled. */
export function unparsedPart(before: Parsed, text: string): string {
  return text.slice(settledLength(before, text));
}

/**
 * Adds the blocks of `unparsedPart`. Only the last blocks of a growing text can change, so a long message costs no more
 * per word than a short one.
 *
 * @param part the blocks of `unparsedPart(before, text)`
 */
export function withPart(before: Parsed, text: string, part: readonly Token[], streaming: boolean): Parsed {
  const from = settledLength(before, text);
  const settledCount = from === 0 ? 0 : before.settled;
  const [blocks, ends] = [before.blocks.slice(0, settledCount), before.ends.slice(0, settledCount)];
  let pieces = countPieces(blocks);
  let end = from;
  for (const block of part) {
    if (pieces > MAX_PIECES) return { text, blocks, ends, settled: blocks.length, isFull: true, isGrowing: streaming };
    end = endOf(block, text, end);
    blocks.push(block);
    ends.push(end);
    pieces += countPieces([block]);
  }
  if (ends.length > 0) ends[ends.length - 1] = text.length;
  const settled = streaming ? Math.max(settledCount, blocks.length - UNSETTLED_BLOCKS) : blocks.length;
  const shown = blocks.length > settled ? withOpenEnd(blocks) : blocks;
  return { text, blocks: shown, ends, settled, isFull: false, isGrowing: streaming };
}

/** @returns null if the remaining part takes too long to parse while the page renders */
export function parseLight(before: Parsed, text: string, streaming: boolean): Parsed | null {
  if (before.isFull && settledLength(before, text) > 0) return { ...before, text, isGrowing: streaming };
  const part = unparsedPart(before, text);
  const blocks = part.length > LIGHT_CHARACTERS ? null : parseBlocks(part, LIGHT_WORK);
  return blocks === null ? null : withPart(before, text, blocks, streaming);
}

/** The number of shown blocks after one more step: at least one more than `count` if any are left. */
export function nextStep({ blocks, ends }: Parsed, count: number): number {
  const begin = ends[count - 1] ?? 0;
  let shown = count;
  for (let pieces = 0; shown < blocks.length; shown++) {
    if (pieces >= STEP.pieces || (ends[shown - 1] ?? 0) - begin >= STEP.characters) break;
    pieces += countPieces([blocks[shown] as Token]);
  }
  return shown;
}

interface Nested {
  tokens?: Token[];
  items?: Token[];
  rows?: { tokens: Token[] }[][];
}

/** The number of tokens including nested ones, which is about the number of elements. */
export function countPieces(tokens: readonly Token[]): number {
  let count = 0;
  const left: (readonly Token[])[] = [tokens];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    count += next.length;
    for (const token of next as readonly (Token & Nested)[]) {
      if (token.type === 'code') count += CODE_PIECES;
      if (token.tokens) left.push(token.tokens);
      if (token.items) left.push(token.items);
      for (const row of token.rows ?? []) for (const cell of row) left.push(cell.tokens);
    }
  }
  return count;
}

/** The server's limit for the texts of one page: about thirty milliseconds for the worst texts. */
const SERVER = { work: 3_000_000, characters: 64_000 };
/** Fixed cost of a paragraph. */
const WORK_PER_PARAGRAPH = 1_500;

/** Upper bound of the work of parsing a text, in characters visited. */
export function markdownWork(text: string): number {
  let work = 0;
  for (const paragraph of text.split('\n\n')) {
    let lines = 1;
    for (let index = paragraph.indexOf('\n'); index !== -1; index = paragraph.indexOf('\n', index + 1)) lines += 1;
    work += WORK_PER_PARAGRAPH + inlineWork(paragraph) + paragraph.length * lines;
  }
  return work;
}

/**
 * The texts that the server parses into the page: short ones, while their sum is cheap. The browser parses the others.
 *
 * @param texts newest first
 */
export function textsParsedAtOnce(texts: Iterable<string>): ReadonlySet<string> {
  const parsed = new Set<string>();
  let { work, characters } = SERVER;
  for (const text of texts) {
    if (text.length > LIGHT_CHARACTERS) continue;
    work -= markdownWork(text);
    characters -= text.length;
    if (work < 0 || characters < 0) break;
    parsed.add(text);
  }
  return parsed;
}

function settledLength(before: Parsed, text: string): number {
  const length = before.ends[before.settled - 1] ?? 0;
  return text.startsWith(before.text.slice(0, length)) ? length : 0;
}

/** The lexer drops some white space, so a block may begin a little after the one before it ended. */
function endOf({ raw }: Token, text: string, from: number): number {
  let at = from;
  while (!text.startsWith(raw, at) && /\s/.test(text.charAt(at))) at += 1;
  return text.startsWith(raw, at) ? at + raw.length : Math.min(text.length, from + raw.length);
}

function asWritten(raw: string): Token[] {
  return slices(raw).map((slice) => ({ type: 'as-written', raw: slice }));
}

/** Parts of at most `max` characters, cut at line ends or spaces if possible. */
function slices(text: string, max = MAX_BLOCK.characters): string[] {
  const parts: string[] = [];
  let index = 0;
  while (text.length - index > max) {
    const part = text.slice(index, index + max);
    const cut = Math.max(part.lastIndexOf('\n'), part.lastIndexOf(' ')) + 1;
    const end = cut > 0 ? cut : part.length - (/[\ud800-\udbff]$/.test(part) ? 1 : 0);
    parts.push(part.slice(0, end));
    index += end;
  }
  return [...parts, text.slice(index)];
}

function isLarge(block: Token): boolean {
  return block.raw.length > MAX_BLOCK.characters || countPieces([block]) > MAX_BLOCK.pieces;
}

/** Splits blocks to a bounded size. The concatenation of their `raw` texts stays the same. */
function split(blocks: readonly Token[], lexer: Lexer): Token[] {
  return blocks.flatMap((block): Token[] => {
    if (block.type === 'code') return [block];
    if (block.type === 'table') {
      const { rows } = block as Tokens.Table;
      return [{ ...block, rows: rows.slice(0, MAX_ROWS), rowCount: rows.length } as LongTable];
    }
    if (!isLarge(block)) return [block];
    switch (block.type) {
      case 'paragraph':
        return splitParagraph(block.raw, MAX_BLOCK.characters, lexer);
      case 'list':
        return splitList(block as Tokens.List);
      case 'blockquote':
        return splitQuote(block as Tokens.Blockquote, lexer);
      default:
        return asWritten(block.raw);
    }
  });
}

function splitParagraph(text: string, max: number, lexer: Lexer): Token[] {
  return slices(text, max).flatMap((raw) => {
    const paragraph = { type: 'paragraph', raw, text: raw, tokens: lexer.inlineTokens(raw) };
    return isLarge(paragraph) && raw.length > 1 ? splitParagraph(raw, raw.length >> 1, lexer) : [paragraph];
  });
}

/** Lines of the quote correspond to lines of its content. */
function splitQuote(quote: Tokens.Blockquote, lexer: Lexer): Token[] {
  const lines = quote.raw.split(/(?<=\n)/);
  const inner = split(quote.tokens, lexer);
  return inner.map((token, index) => {
    const count = index === inner.length - 1 ? lines.length : token.raw.split('\n').length - 1;
    return { ...quote, raw: lines.splice(0, count).join(''), tokens: [token] };
  });
}

/** An item that exceeds the limits alone is shown as written. */
function splitList(list: Tokens.List): Token[] {
  const parts: Token[] = [];
  let items: Tokens.ListItem[] = [];
  let [pieces, characters] = [0, 0];
  const close = (next: number) => {
    if (items.length > 0) {
      const start = list.ordered ? Number(list.start) + next - items.length : list.start;
      parts.push({ ...list, items, start, raw: items.map(({ raw }) => raw).join('') });
    }
    [items, pieces, characters] = [[], 0, 0];
  };
  for (const [index, item] of list.items.entries()) {
    pieces += countPieces([item]);
    characters += item.raw.length;
    if (pieces > MAX_BLOCK.pieces || characters > MAX_BLOCK.characters) close(index);
    if (isLarge(item)) {
      parts.push(...asWritten(item.raw));
      continue;
    }
    if (items.length === 0) [pieces, characters] = [countPieces([item]), item.raw.length];
    items.push(item);
  }
  close(list.items.length);
  return parts;
}

const HAS_INLINE = new Set(['paragraph', 'heading', 'list', 'blockquote']);

/** Closes emphasis or code that the last block has opened, so that nothing flickers when its end arrives. */
function withOpenEnd(blocks: Token[]): Token[] {
  const last = blocks.at(-1);
  if (last === undefined || !HAS_INLINE.has(last.type) || last.raw.endsWith('\n\n')) return blocks;
  if (last.raw.length > LIGHT_CHARACTERS) return blocks;
  const closed = remend(last.raw);
  const reparsed = closed === last.raw ? null : parseBlocks(closed, LIGHT_WORK);
  return reparsed?.length === 1 ? [...blocks.slice(0, -1), ...reparsed] : blocks;
}
