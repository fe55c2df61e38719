import { RE2JS } from 're2js';
import { MAX_LOG_SEARCH_LENGTH, MAX_REGEX_PROGRAM } from '@/lib/protocol/limits';

/** A regular expression in the syntax of RE2, which takes time in proportion to the text and no more. */
export interface LogRegex {
  readonly source: string;
  test(message: string): boolean;
  /** Where it matches: `[start, end)`, ascending, without the empty ones. */
  hits(message: string): [number, number][];
}

export type RegexOutcome = { kind: 'compiled'; regex: LogRegex } | { kind: 'refused'; reason: string };

/** Hits are only for showing; what stands further back in a very long line is found, but not marked. */
const MAX_HIT_TEXT = 16 * 1024;
const MAX_HITS = 1000;

/**
 * `^` and `$` are the ends of each line of a message.
 *
 * In a module of its own, so that a page loads the engine when somebody searches by regex.
 *
 * @see https://github.com/google/re2/wiki/Syntax
 */
export function compileLogRegex(source: string): RegexOutcome {
  if (source.length > MAX_LOG_SEARCH_LENGTH) {
    return refused(`it is longer than ${MAX_LOG_SEARCH_LENGTH} characters`);
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source, RE2JS.MULTILINE);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return refused(text.replace(/^error parsing regexp: /, ''));
  }
  const size = compiled.programSize();
  if (size > MAX_REGEX_PROGRAM) {
    return refused(`it is too big: ${size} steps, of ${MAX_REGEX_PROGRAM}. Repeat less, or search for a part of it`);
  }
  return { kind: 'compiled', regex: { source, test: (message) => compiled.test(message), hits } };

  function hits(message: string): [number, number][] {
    const isWhole = message.length <= MAX_HIT_TEXT;
    const text = isWhole ? message : message.slice(0, MAX_HIT_TEXT);
    const found: [number, number][] = [];
    const matcher = compiled.matcher(text);
    while (found.length < MAX_HITS && matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()];
      // at the edge of what was looked at, the whole line may match otherwise
      if (end > start && (isWhole || end < text.length)) found.push([start, end]);
    }
    return found;
  }
}

function refused(reason: string): RegexOutcome {
  return { kind: 'refused', reason };
}
