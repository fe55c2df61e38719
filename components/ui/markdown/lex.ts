import { Lexer, type Token } from 'marked';
import { inlineWork } from './inline-work';

/** More marks of quotes and lists at the beginning of a line than anybody means, and than a stack may bear. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){40}/m;

interface Lexed {
  blocks: Token[];
  /** The blocks have nothing in them yet: that would be more work than was allowed. */
  isTooMuch: boolean;
}

/**
 * A text as blocks. What they are is found in one walk; what is in them may take the square of their length, so it is
 * counted before. What can't be parsed is one block, shown as it was written.
 *
 * @param mostWork as `inlineWork` counts it
 */
export function lex(text: string, mostWork = Number.POSITIVE_INFINITY): Lexed {
  const asWritten = { blocks: [{ type: 'as-written', raw: text }], isTooMuch: false };
  if (TOO_DEEP.test(text)) return asWritten;
  const lexer = new Lexer({ gfm: true });
  try {
    lexer.blockTokens(text.replace(/\r\n?/g, '\n'), lexer.tokens);
    const work = lexer.inlineQueue.reduce((sum, { src }) => sum + inlineWork(src), 0);
    if (work > mostWork) return { blocks: lexer.tokens, isTooMuch: true };
    // The blocks are there: this does what waits.
    return { blocks: lexer.lex(''), isTooMuch: false };
  } catch {
    return asWritten;
  }
}
