import { RE2JS } from 're2js';
import { MAX_LOG_SEARCH_LENGTH, MAX_REGEX_PROGRAM, MAX_REGEX_STEPS } from '@/lib/protocol/limits';
import { foldText } from './fold-text';
import { type RequiredText, requireAll, requireAny } from './required-text';

/** A regular expression in the syntax of RE2, which takes time in proportion to the text and no more. */
export interface LogRegex {
  readonly source: string;
  /** What every message that matches has in it; null where that is not known. */
  readonly required: RequiredText | null;
  test(message: string): boolean;
  /**
   * Where it matches: `[start, end)`, ascending, looked for one at a time; null for one that is empty. Each takes
   * `MAX_HIT_STEPS` at most, which for a line full of them is too much to be done in one go.
   */
  hits(message: string): Iterable<[number, number] | null>;
}

export type RegexOutcome = { kind: 'compiled'; regex: LogRegex } | { kind: 'refused'; reason: string };

/** Hits are only for showing; what stands further back in a very long line is found, but not marked. */
const MAX_HIT_TEXT = 16 * 1024;
const MAX_HITS = 1000;
/** To look for one hit, the engine goes to the end of the text if it must: so many steps at most. */
const MAX_HIT_STEPS = MAX_REGEX_STEPS / 4;
/** And for all of one line, if it had to for each of them. */
const MAX_STEPS_OF_HITS = 16 * MAX_HIT_STEPS;
/**
 * What the engine may remember of the states a text has brought it into, in bytes. An ordinary regex has few. One that
 * has another at every character costs ten times as much while they are remembered as without; past this, the engine
 * goes without.
 */
const MAX_STATES_BYTES = 256 * 1024;

/**
 * `^` and `$` are the ends of each line of a message. Of a long one the beginning is looked at, as far as
 * `MAX_REGEX_STEPS` allow, as if it ended there.
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
    // quoted without the flag that was set for it
    return refused(text.replace(/^error parsing regexp: /, '').replace('`(?m)', '`'));
  }
  const size = compiled.programSize();
  if (size > MAX_REGEX_PROGRAM) {
    return refused(`it is too big: ${size} steps, of ${MAX_REGEX_PROGRAM}. Repeat less, or search for a part of it`);
  }
  const { dfa } = compiled.re2();
  dfa.stateBudget = dfa.memBudget = MAX_STATES_BYTES;
  const reach = Math.floor(MAX_REGEX_STEPS / size);
  const required = requiredBy(source, compiled);
  const test = (message: string) => compiled.test(beginningOf(message, reach));
  return { kind: 'compiled', regex: { source, required, test, hits } };

  function* hits(message: string): Generator<[number, number] | null> {
    const text = beginningOf(message, Math.min(MAX_HIT_TEXT, Math.floor(MAX_HIT_STEPS / size)));
    const isWhole = text.length === message.length;
    const matcher = compiled.matcher(text);
    let steps = 0;
    let at = 0;
    for (let found = 0; found < MAX_HITS; ) {
      steps += (text.length - at) * size;
      if (steps > MAX_STEPS_OF_HITS || !matcher.find()) return;
      const [start, end] = [matcher.start(), matcher.end()];
      at = end;
      // at the edge of what was looked at, the whole line may match otherwise
      const isHit = end > start && (isWhole || end < text.length);
      if (isHit) found += 1;
      yield isHit ? [start, end] : null;
    }
  }
}

/** Never cut between the two halves of a character. */
function beginningOf(message: string, length: number): string {
  if (message.length <= length) return message;
  return message.slice(0, /[\ud800-\udbff]/.test(message.charAt(length - 1)) ? length - 1 : length);
}

function refused(reason: string): RegexOutcome {
  return { kind: 'refused', reason };
}

const IGNORES_CASE = /^\(\?i\)/;

/** The engine knows the literal parts of a regex, but not of one that ignores case, of which it is asked without. */
function requiredBy(source: string, compiled: RE2JS): RequiredText | null {
  if (!IGNORES_CASE.test(source)) return requiredFrom(compiled.re2().prefilter, (text) => [foldText(text)]);
  try {
    const strict = RE2JS.compile(source.replace(IGNORES_CASE, ''), RE2JS.MULTILINE);
    return requiredFrom(strict.re2().prefilter, (text) => foldText(text).match(SAME_IN_BOTH) ?? []);
  } catch {
    return null;
  }
}

/** RE2 takes the long s for an s and the sign of Kelvin for a k, among others; with these letters it agrees with us. */
const SAME_IN_BOTH = /[\t -jl-rt-~]+/g;

/** Of `prefilter`, @see re2js 2.10: 1 is a literal, 2 all of its parts, 3 any of them. Anything else says nothing. */
function requiredFrom(node: unknown, piecesOf: (text: string) => string[]): RequiredText | null {
  if (typeof node !== 'object' || node === null) return null;
  const { type, str, subs } = node as { type?: unknown; str?: unknown; subs?: unknown };
  if (type === 1 && typeof str === 'string') {
    const pieces = piecesOf(str).filter((piece) => piece !== '');
    return requireAll(pieces.map((text) => ({ kind: 'text', text })));
  }
  if (!Array.isArray(subs)) return null;
  const parts = subs.map((sub) => requiredFrom(sub, piecesOf));
  if (type === 2) return requireAll(parts);
  return type === 3 ? requireAny(parts) : null;
}
