import { RE2JS } from 're2js';
import { MAX_LOG_SEARCH_LENGTH, MAX_REGEX_PROGRAM, MAX_REGEX_STEPS } from '../limits';
import { truncateText } from '../text';
import type { LogRegex } from './log-filter';
import { foldText, type RequiredText, requireAll, requireAny } from './log-filter';

type RegexOutcome = { kind: 'compiled'; regex: LogRegex } | { kind: 'refused'; reason: string };

/** Maximum characters of a line in which matches are highlighted. */
const MAX_HIT_TEXT = 16 * 1024;
const MAX_HITS = 1000;
/** Maximum engine steps for one match, which may scan to the end of the text. */
const MAX_HIT_STEPS = MAX_REGEX_STEPS / 4;
/** Maximum engine steps for all matches of one line. */
const MAX_STEPS_OF_HITS = 16 * MAX_HIT_STEPS;
/**
 * Maximum size of the engine's cache of DFA states, in bytes. An ordinary regex has few states. With a new state at
 * every character, the cache makes matching ten times slower, so the engine drops it beyond this size.
 */
const MAX_STATES_BYTES = 256 * 1024;

/**
 * `^` and `$` match at each line of a message. Only the beginning of a long message is searched, as far as
 * `MAX_REGEX_STEPS` allows, as if the message ended there.
 *
 * A separate module, so that a page loads the engine only for a search by regex.
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
    // Without the flag that we added.
    return refused(text.replace(/^error parsing regexp: /, '').replace('`(?m)', '`'));
  }
  const size = compiled.programSize();
  if (size > MAX_REGEX_PROGRAM) {
    return refused(
      `it is too big: ${size} steps, and at most ${MAX_REGEX_PROGRAM} are allowed. Use smaller repetitions, or search for a part of it`,
    );
  }
  const { dfa } = compiled.re2();
  dfa.stateBudget = dfa.memBudget = MAX_STATES_BYTES;
  const reach = Math.floor(MAX_REGEX_STEPS / size);
  const required = requiredBy(source, compiled);
  const test = (message: string) => compiled.test(truncateText(message, reach));
  return { kind: 'compiled', regex: { source, required, test, hits } };

  function* hits(message: string): Generator<[number, number] | null> {
    const text = truncateText(message, Math.min(MAX_HIT_TEXT, Math.floor(MAX_HIT_STEPS / size)));
    const isWhole = text.length === message.length;
    const matcher = compiled.matcher(text);
    let steps = 0;
    let index = 0;
    for (let found = 0; found < MAX_HITS; ) {
      steps += (text.length - index) * size;
      if (steps > MAX_STEPS_OF_HITS || !matcher.find()) return;
      const [start, end] = [matcher.start(), matcher.end()];
      index = end;
      // A match that ends where the text was truncated could differ in the whole line.
      const isHit = end > start && (isWhole || end < text.length);
      if (isHit) found += 1;
      yield isHit ? [start, end] : null;
    }
  }
}

function refused(reason: string): RegexOutcome {
  return { kind: 'refused', reason };
}

const IGNORES_CASE = /^\(\?i\)/;

/**
 * The engine reports the literals that a regex requires, but not for a regex that ignores case. That one is compiled
 * again without the flag.
 */
function requiredBy(source: string, compiled: RE2JS): RequiredText | null {
  if (!IGNORES_CASE.test(source)) return requiredFrom(compiled.re2().prefilter, (text) => [foldText(text)]);
  try {
    const strict = RE2JS.compile(source.replace(IGNORES_CASE, ''), RE2JS.MULTILINE);
    return requiredFrom(strict.re2().prefilter, (text) => foldText(text).match(SAME_IN_BOTH) ?? []);
  } catch {
    return null;
  }
}

/** RE2 folds the long s to an s and the Kelvin sign to a k, among others; for these letters its folding equals ours. */
const SAME_IN_BOTH = /[\t -jl-rt-~]+/g;

/**
 * A node of re2js 2.10's `prefilter`: type 1 requires a literal, type 2 every part, type 3 at least one part.
 * Other types require nothing.
 */
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
