import { findEscapes } from '@/lib/protocol/ansi-escapes';
import type { Redactor } from './redactor';
import type { SecretSpan } from './secret-span';

/**
 * Takes the secrets out of a piece of what a command writes, and leaves everything else as it is: escape sequences too,
 * which may stand in the middle of a secret.
 *
 * @param before what came before the piece: a secret that begins there is known by its whole
 */
export function redactOutput(redactor: Redactor, before: string, piece: string): { text: string; redacted: number } {
  const spans = spansIn(redactor, before + piece).filter(({ end }) => end > before.length);
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, kind } of spans) {
    parts.push(piece.slice(at, Math.max(at, start - before.length)), `[redacted: ${kind}]`);
    at = end - before.length;
  }
  parts.push(piece.slice(at));
  return { text: parts.join(''), redacted: spans.length };
}

/** Where the secrets of a text are, as its reader sees it: without escape sequences. */
function spansIn(redactor: Redactor, text: string): SecretSpan[] {
  const stretches = plainStretches(text);
  const [first] = stretches;
  if (stretches.length === 1 && first?.from === 0) return redactor.find(text);
  const plain = stretches.map(({ from, to }) => text.slice(from, to)).join('');
  return redactor.find(plain).map(({ start, end, kind }) => ({
    start: placeIn(stretches, start),
    end: placeIn(stretches, end - 1) + 1,
    kind,
  }));
}

/** What stands between two escape sequences. `at` is its place in the text without them. */
interface Stretch {
  from: number;
  to: number;
  at: number;
}

function plainStretches(text: string): Stretch[] {
  const stretches: Stretch[] = [];
  let from = 0;
  let at = 0;
  const add = (to: number) => {
    if (to === from) return;
    stretches.push({ from, to, at });
    at += to - from;
  };
  for (const sequence of findEscapes(text)) {
    add(sequence.from);
    from = sequence.to;
  }
  add(text.length);
  return stretches;
}

/** Where a sign of the text without escape sequences stands in the text with them. */
function placeIn(stretches: readonly Stretch[], at: number): number {
  let low = 0;
  let high = stretches.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((stretches[middle] as Stretch).at <= at) low = middle;
    else high = middle - 1;
  }
  const stretch = stretches[low];
  return stretch === undefined ? at : stretch.from + at - stretch.at;
}
