import type { Token } from 'marked';
import remend from 'remend';
import { lex } from './lex';
import { isShortTable, longTable, MOST_TABLE, tableHead } from './long-table';

/** What is parsed at a time, where it is no more than `MOST_WORK` by what is in it. */
export const WINDOW = 4_000;
/** Some ten milliseconds of the slowest text that is known; the usual one comes nowhere near. */
const MOST_WORK = 5_000_000;
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
/** And so many signs, which may be hundreds of lines. */
const STEP_SIGNS = 30_000;
/** A block of more, or of more signs, is cut: a list goes on as another list, a paragraph as another one. */
const MOST_BLOCK_PIECES = 1_000;
const MOST_BLOCK_CHARACTERS = 6_000;
/** A block of code has a box, its language and a button to copy it. */
const CODE_PIECES = 10;
/** A growing end that takes longer is not parsed again for every word: only when there is a quarter more of it. */
const COSTLY_MS = 8;
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

/** Whether what is known since is as much as a page takes in one go. */
export function fillsStep(before: Settled, now: Settled): boolean {
  return now.pieces - before.pieces >= STEP_PIECES || now.shownLength - before.shownLength >= STEP_SIGNS;
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

function parseWindow(state: Settled, text: string, streaming: boolean, isNarrowed = false): Settled {
  const rest = text.slice(state.text.length);
  const wanted = windowOf(rest, isNarrowed ? state.window : Math.max(state.window, tableHead(rest)));
  const { part, blocks, tookMs } = lexLight(wanted);
  const isEnd = part.length === rest.length;
  const mayGrow = !isNarrowed && part.length === wanted.length;
  // Of tables and code no more is laid out than their beginning.
  const whole = blocks.filter(({ type }) => type !== 'table' && type !== 'code');
  const heaviest = whole.reduce((most, block) => Math.max(most, countPieces([block])), 0);
  if (heaviest > MOST_BLOCK_PIECES && part.length > LEAST_WINDOW) {
    return parseWindow({ ...state, window: Math.max(LEAST_WINDOW, part.length >> 1) }, text, streaming, true);
  }
  if (whole.some(({ raw }) => raw.length > MOST_BLOCK_CHARACTERS)) {
    return parseWindow({ ...state, window: MOST_BLOCK_CHARACTERS }, text, streaming, true);
  }
  const mayChange = isEnd && !streaming ? 0 : UNSETTLED_BLOCKS;
  const { count, length } = settledBlocks(blocks, part, mayChange);
  if (count > 0 && count < blocks.length - mayChange)
    return settled(state, text, blocks.slice(0, count), length, tookMs);
  const before = blocks.slice(0, -1);
  if (count === 0 && !isEnd) {
    const mayGoOn = mayGrow && state.window < MOST_TABLE && isShortTable(blocks.at(-1));
    if (mayGoOn && isQuick(part, tookMs, LONGEST_MS)) return { ...state, tookMs, window: state.window * 2 };
    const table = longTable(blocks, rest);
    if (table !== null) {
      return settled(state, text, [...before, table], textLength(before) + table.raw.length, tookMs);
    }
  }
  // A block of code that is cut off begins the next window, so that it has room to end in.
  const endsInCode = before.length > 0 && blocks.at(-1)?.type === 'code';
  if (count === 0 && !isEnd && endsInCode && isBeginning(before, part)) {
    return settled(state, text, before, textLength(before), tookMs);
  }
  if (count === 0 && !isEnd && mayGrow && isQuick(part, tookMs, LONGEST_MS / 4)) {
    return { ...state, tookMs, window: state.window * 2 };
  }
  // What can't be parsed any wider ends here, even if more text would have made it something else.
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
  return isBeginning(settled, text) ? { count, length: textLength(settled) } : { count: 0, length: 0 };
}

/** The lexer normalises some white space; where its pieces are not the text's own, nothing is settled for good. */
function isBeginning(blocks: readonly Token[], text: string): boolean {
  return text.startsWith(blocks.map(({ raw }) => raw).join(''));
}

function textLength(blocks: readonly Token[]): number {
  return blocks.reduce((sum, { raw }) => sum + raw.length, 0);
}

/** As much of a part as is no more work than `MOST_WORK`: its beginning, halved until it is. */
function lexLight(wanted: string): { part: string; blocks: Token[]; tookMs: number } {
  for (let part = wanted; ; ) {
    const { blocks, isTooMuch, tookMs } = lexTimed(part, part.length > LEAST_WINDOW ? MOST_WORK : undefined);
    if (!isTooMuch) return { part, blocks, tookMs };
    // Code is no work: what makes it too much stands behind it.
    const [first] = blocks;
    const code = first?.type === 'code' && part.startsWith(first.raw) ? first.raw : '';
    part = code.length > part.length / 2 ? code : windowOf(part, part.length >> 1);
  }
}

function lexTimed(part: string, mostWork?: number) {
  const began = performance.now();
  const lexed = lex(part, mostWork);
  return { ...lexed, tookMs: performance.now() - began };
}

/** Once more, before a busy machine is taken for a slow text. */
function isQuick(part: string, tookMs: number, mostMs: number): boolean {
  return tookMs < mostMs || lexTimed(part, MOST_WORK).tookMs < mostMs;
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
  return closed === last.raw ? blocks : [...blocks.slice(0, -1), ...lex(closed).blocks];
}
