import { Lexer, type Token, type Tokens } from 'marked';
import remend from 'remend';

/**
 * What is parsed at a time. The parser's work grows with the square of some texts; of this much, the worst that is
 * known takes twenty milliseconds, and the usual one less than one.
 */
export const WINDOW = 4_000;
/** A block that is too much is parsed again with half as much of the text, down to this. */
const LEAST_WINDOW = 250;
/** One great block, such as a file's worth of code, is parsed as a whole where that takes no longer than this. */
const LONGEST_MS = 40;
/** Blocks at the end of a growing text that what follows may still change: a list goes on after an empty line. */
const UNSETTLED_BLOCKS = 3;
/** What a page takes of one text; what follows so many pieces is shown as it was written. */
const MOST_PIECES = 4_000;
/** What a browser lays out without a pause: blocks are settled so many pieces at a time. */
export const STEP_PIECES = 300;
/** A block of more, or of more signs, is cut: a list goes on as another list, a paragraph as another one. */
const MOST_BLOCK_PIECES = 1_000;
const MOST_BLOCK_CHARACTERS = 6_000;
/** A block of code has a box, its language and a button to copy it. */
const CODE_PIECES = 10;
/** How far a table is parsed to have as many rows as are shown. */
const MOST_TABLE = 32_000;
/** What is laid out of a table; nobody reads on. */
export const ROWS_SHOWN = 300;
/** A growing end that takes longer is not parsed again for every word: only when there is a quarter more of it. */
const COSTLY_MS = 8;
/** More marks of quotes and lists at the beginning of a line than anybody means, and than a stack may bear. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){40}/m;

/** How far a text is parsed. */
export interface Settled {
  /** The part that is parsed for good, and its blocks. */
  text: string;
  tokens: readonly Token[];
  /** All blocks that are known, the unsettled ones included. */
  shown: Token[];
  /** How much of the text `shown` stands for; what follows is shown as it was written. */
  shownLength: number;
  /** How many tokens there are in `tokens`, those within others included. */
  pieces: number;
  window: number;
  /** What the last parse took. */
  tookMs: number;
}

export const NOTHING_SETTLED: Settled = {
  text: '',
  tokens: [],
  shown: [],
  shownLength: 0,
  pieces: 0,
  window: WINDOW,
  tookMs: 0,
};

interface ParseOptions {
  /** Whether the text still grows. */
  streaming?: boolean;
  /** Asked after each window, with what there is by then; where it says no, the rest is left for another call. */
  goesOn?: (state: Settled) => boolean;
}

/**
 * Parses a text further, of which, if it grew, only the last blocks can have changed: a long message costs no more per
 * word than a short one, and a hostile one no more than a window at a time.
 */
export function parseFurther(before: Settled, text: string, options: ParseOptions = {}): Settled {
  const { streaming = true, goesOn = () => true } = options;
  let state = text.startsWith(before.text) ? before : NOTHING_SETTLED;
  if (streaming && waitsForMore(state, text)) return state;
  do state = parseWindow(state, text, streaming);
  while (!isParsed(state, text) && goesOn(state));
  return state;
}

/** Whether nothing more of the text will be parsed: it is all there, or there is too much. */
export function isParsed(state: Settled, text: string): boolean {
  return state.shownLength >= text.length || state.pieces >= MOST_PIECES;
}

/** All blocks of a text, at once. */
export function parse(text: string): Token[] {
  return parseFurther(NOTHING_SETTLED, text, { streaming: false }).shown;
}

/** Whether the end of a growing text is left as it was written until there is more of it. */
export function waitsForMore(state: Settled, text: string): boolean {
  const unsettled = state.shownLength - state.text.length;
  const grown = text.length - state.shownLength;
  return state.tookMs > COSTLY_MS && unsettled > WINDOW / 4 && grown > 0 && grown < unsettled / 4;
}

function parseWindow(state: Settled, text: string, streaming: boolean, mayGrow = true): Settled {
  const rest = text.slice(state.text.length);
  const part = windowOf(rest, state.window);
  const isEnd = part.length === rest.length;
  const { blocks, tookMs } = lexTimed(part);
  // Of tables and code no more is laid out than their beginning.
  const whole = blocks.filter(({ type }) => type !== 'table' && type !== 'code');
  const heaviest = whole.reduce((most, block) => Math.max(most, countPieces([block])), 0);
  if (heaviest > MOST_BLOCK_PIECES && part.length > LEAST_WINDOW) {
    return parseWindow({ ...state, window: Math.max(LEAST_WINDOW, part.length >> 1) }, text, streaming, false);
  }
  // The first line of a table may be longer than any other block.
  const mayBeTable = !isEnd && rest.startsWith('|') && part.length < MOST_TABLE;
  if (!mayBeTable && whole.some(({ raw }) => raw.length > MOST_BLOCK_CHARACTERS)) {
    return parseWindow({ ...state, window: MOST_BLOCK_CHARACTERS }, text, streaming, false);
  }
  const mayChange = isEnd && !streaming ? 0 : UNSETTLED_BLOCKS;
  const { count, length } = settledBlocks(blocks, part, mayChange);
  if (count > 0 && count < blocks.length - mayChange)
    return settled(state, text, blocks.slice(0, count), length, tookMs);
  if (count === 0 && !isEnd) {
    const isParsedOn = tookMs < LONGEST_MS && state.window < MOST_TABLE;
    if (isParsedOn && isShortTable(blocks.at(-1))) return { ...state, tookMs, window: state.window * 2 };
    const table = longTable(blocks, rest);
    if (table !== null) {
      const before = blocks.slice(0, -1);
      return settled(state, text, [...before, table], textLength(before) + table.raw.length, tookMs);
    }
  }
  if (count === 0 && !isEnd && mayGrow && tookMs * 4 < LONGEST_MS) {
    return { ...state, tookMs, window: state.window * 2 };
  }
  // What can't be parsed any wider ends here, whatever it would have become.
  const isCutHere = count === 0 && !isEnd;
  const newlySettled = isCutHere ? blocks : blocks.slice(0, count);
  const tokens = newlySettled.length === 0 ? state.tokens : [...state.tokens, ...newlySettled];
  const settledText = state.text + (isCutHere ? part : rest.slice(0, length));
  const end = isEnd ? blocks.slice(count) : [];
  return {
    text: settledText,
    tokens,
    shown: [...tokens, ...(streaming ? withOpenEnd(end) : end)],
    shownLength: isEnd ? text.length : settledText.length,
    pieces: state.pieces + countPieces(newlySettled),
    window: isEnd ? state.window : WINDOW,
    tookMs,
  };
}

/** With these blocks too, which are the next `length` signs of the text. */
function settled(state: Settled, text: string, blocks: readonly Token[], length: number, tookMs: number): Settled {
  const tokens = [...state.tokens, ...blocks];
  const shownLength = state.text.length + length;
  const pieces = state.pieces + countPieces(blocks);
  return { text: text.slice(0, shownLength), tokens, shown: tokens, shownLength, pieces, window: WINDOW, tookMs };
}

/** The beginning of a text, up to the end of a line where there is one. */
function windowOf(text: string, length: number): string {
  if (text.length <= length) return text;
  const lineEnd = text.lastIndexOf('\n', length - 1) + 1;
  return text.slice(0, lineEnd > 0 ? lineEnd : length);
}

/**
 * @param mayChange how many of the last may become others yet
 * @returns how many blocks are settled, at most a step of them, and how much of the text they are
 */
function settledBlocks(blocks: readonly Token[], text: string, mayChange: number): { count: number; length: number } {
  const most = Math.max(0, blocks.length - mayChange);
  let count = 0;
  for (let pieces = 0; count < most && pieces < STEP_PIECES; count++) pieces += countPieces([blocks[count] as Token]);
  const settled = blocks.slice(0, count);
  const raw = settled.map((block) => block.raw).join('');
  // The lexer normalises some white space; where its pieces are not the text's own, nothing is settled for good.
  return text.startsWith(raw) ? { count, length: raw.length } : { count: 0, length: 0 };
}

/** A table of which only so many rows were parsed as are shown. */
export interface LongTable extends Tokens.Table {
  /** How many it has in all. */
  rowCount: number;
}

function isShortTable(block: Token | undefined): boolean {
  return block?.type === 'table' && (block as Tokens.Table).rows.length < ROWS_SHOWN;
}

/** Of a table that is longer than what is shown of it, the rest is counted and not parsed. */
function longTable(blocks: readonly Token[], text: string): LongTable | null {
  const last = blocks.at(-1) as Tokens.Table | undefined;
  const from = textLength(blocks.slice(0, -1));
  if (last?.type !== 'table' || last.rows.length === 0 || !text.startsWith(last.raw, from)) return null;
  let rowCount = last.rows.length;
  let end = from + last.raw.length;
  while (end < text.length) {
    const next = text.indexOf('\n', end);
    const line = text.slice(end, next === -1 ? text.length : next);
    if (!line.includes('|')) break;
    rowCount += 1;
    end = next === -1 ? text.length : next + 1;
  }
  return { ...last, raw: text.slice(from, end), rowCount };
}

function textLength(blocks: readonly Token[]): number {
  return blocks.reduce((sum, { raw }) => sum + raw.length, 0);
}

function lexTimed(text: string): { blocks: Token[]; tookMs: number } {
  const began = performance.now();
  const blocks = lex(text);
  const ended = performance.now();
  if (ended - began <= COSTLY_MS) return { blocks, tookMs: ended - began };
  // Once more, before a busy machine is taken for a slow text.
  lex(text);
  return { blocks, tookMs: Math.min(ended - began, performance.now() - ended) };
}

/** What can't be parsed is one block, shown as it was written. */
function lex(text: string): Token[] {
  if (TOO_DEEP.test(text)) return [{ type: 'as-written', raw: text }];
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return [{ type: 'as-written', raw: text }];
  }
}

/** Where a token has others in it. */
interface Nested {
  tokens?: Token[];
  items?: Token[];
  rows?: { tokens: Token[] }[][];
}

/** How many tokens these are, with those within them: about as many elements. */
export function countPieces(tokens: readonly Token[]): number {
  let count = 0;
  const waiting: (readonly Token[])[] = [tokens];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    count += next.length;
    for (const token of next as readonly (Token & Nested)[]) {
      if (token.type === 'code') count += CODE_PIECES;
      if (token.tokens) waiting.push(token.tokens);
      if (token.items) waiting.push(token.items);
      for (const row of token.rows ?? []) for (const cell of row) waiting.push(cell.tokens);
    }
  }
  return count;
}

const HAS_INLINE = new Set(['paragraph', 'heading', 'list', 'blockquote']);

/** Emphasis or code that the last block has begun is shown as if it had ended: nothing flickers when it does. */
function withOpenEnd(blocks: Token[]): Token[] {
  const last = blocks.at(-1);
  if (last === undefined || !HAS_INLINE.has(last.type) || last.raw.endsWith('\n\n')) return blocks;
  if (last.raw.length > WINDOW) return blocks;
  const closed = remend(last.raw);
  return closed === last.raw ? blocks : [...blocks.slice(0, -1), ...lex(closed)];
}
