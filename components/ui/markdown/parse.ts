import { Lexer, type Token } from 'marked';
import remend from 'remend';
import { stripAnsi } from '../ansi';

/** Longer texts are shown as written: no reader misses the emphasis, and no parser holds up the page. */
const MOST_CHARACTERS = 120_000;
/** Blocks at the end of a growing text that what follows may still change: a list goes on after an empty line. */
const UNSETTLED_BLOCKS = 3;

/** @returns null for what can't be parsed */
export function parse(raw: string): Token[] | null {
  if (raw.length > MOST_CHARACTERS) return null;
  const text = stripAnsi(raw);
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return null;
  }
}

/** How far a growing text is parsed for good. */
export interface Settled {
  text: string;
  tokens: readonly Token[];
  /** All blocks, the unsettled ones included. */
  shown: Token[] | null;
}

export const NOTHING_SETTLED: Settled = { text: '', tokens: [], shown: [] };

/**
 * Parses a growing text again, of which only the last blocks can have changed: a long message costs no more per word
 * than a short one.
 */
export function parseFurther(before: Settled, text: string): Settled {
  const from = text.startsWith(before.text) ? before : NOTHING_SETTLED;
  const rest = text.slice(from.text.length);
  const blocks = parse(rest);
  if (blocks === null) return { ...from, shown: parse(text) };
  const shown = withOpenEnd(blocks);
  const settledCount = Math.max(0, blocks.length - UNSETTLED_BLOCKS);
  const settled = blocks.slice(0, settledCount);
  const length = settled.reduce((sum, block) => sum + block.raw.length, 0);
  // The lexer normalises some white space; where its pieces are not the text's own, nothing is settled for good.
  const agrees = settled.map((block) => block.raw).join('') === rest.slice(0, length);
  if (settledCount === 0 || !agrees) return { ...from, shown: [...from.tokens, ...shown] };
  return {
    text: from.text + rest.slice(0, length),
    tokens: [...from.tokens, ...settled],
    shown: [...from.tokens, ...shown],
  };
}

const HAS_INLINE = new Set(['paragraph', 'heading', 'list', 'blockquote']);

/** Emphasis or code that the last block has begun is shown as if it had ended: nothing flickers when it does. */
function withOpenEnd(blocks: Token[]): Token[] {
  const last = blocks.at(-1);
  if (last === undefined || !HAS_INLINE.has(last.type) || last.raw.endsWith('\n\n')) return blocks;
  const closed = remend(last.raw);
  return closed === last.raw ? blocks : [...blocks.slice(0, -1), ...(parse(closed) ?? [last])];
}
