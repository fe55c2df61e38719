import { SECRET_SHAPES } from './secret-shapes';
import { BEGUN, type SecretSpan } from './secret-span';

/** The end of a text that is looked at: a shape has no blank, and no service makes longer ones. */
const LOOK_BACK = 8_192;
const ENDS_WORD = /[\s"'`<>]/;

const ATOM = /^(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\[(])/s;
const TIMES = /^(?:\{(\d+)(,)?(\d*)\}|[*+?])/;

/**
 * Each shape as far as it may have been written: after its fixed beginning, any part of the rest, up to the end of the
 * text.
 */
const SHAPES_BEGUN = SECRET_SHAPES.map(({ hints, isPrefix, isWordLike = false, pattern }) => ({
  hints,
  isPrefix,
  isWordLike,
  pattern: new RegExp(`(?:${begun(pattern.source).join('|')})$`),
}));

/** What may be a secret of a known shape that is not written to its end. */
export function begunShapes(text: string, spans: SecretSpan[]): void {
  const least = Math.max(0, text.length - LOOK_BACK);
  let from = text.length;
  while (from > least && !ENDS_WORD.test(text.charAt(from - 1))) from -= 1;
  if (text.length - from < 3) return;
  const word = text.slice(from);
  for (const { hints, isPrefix, isWordLike, pattern } of SHAPES_BEGUN) {
    if (!hints.some((hint) => word.includes(hint))) continue;
    const found = pattern.exec(word);
    if (found === null || (isWordLike && !/\d/.test(found[0]))) continue;
    // where the hint comes later, what comes before it could be anything
    if (isPrefix || hints.some((hint) => found[0].includes(hint)))
      spans.push({ start: text.length - word.length + found.index, end: text.length, kind: BEGUN });
  }
}

/** Expressions for a pattern that breaks off in one of its runs: `ab[c]{3,}d` may be `ab[c]{0,}`. */
function begun(source: string): string[] {
  for (const parts of alternatives(source)) if (parts !== source) return alternatives(source).flatMap(begun);
  const atoms = atomsOf(source);
  const found: string[] = [];
  let before = '';
  for (const { atom, least, most } of atoms) {
    if (/^\(\?<?[=!]/.test(atom)) {
      // what must follow may still come
      if (!atom.startsWith('(?=')) before += atom;
      continue;
    }
    const inner = /^\((?:\?:)?(.*)\)$/s.exec(atom)?.[1];
    if (inner !== undefined && least === null) for (const part of begun(inner)) found.push(before + part);
    if (least !== null) found.push(`${before}(?:${atom}){0,${most ?? ''}}`);
    before += least === null ? atom : `${atom}{${least},${most ?? ''}}`;
  }
  return found;
}

interface Atom {
  atom: string;
  /** Of what it is repeated; null if it is not. */
  least: string | null;
  most: string | null;
}

function atomsOf(source: string): Atom[] {
  const atoms: Atom[] = [];
  for (let at = 0; at < source.length; ) {
    const rest = source.slice(at);
    const atom = rest.startsWith('(') ? rest.slice(0, groupEnd(rest)) : (ATOM.exec(rest)?.[0] ?? rest);
    const times = TIMES.exec(rest.slice(atom.length));
    at += atom.length + (times?.[0].length ?? 0);
    if (times === null) atoms.push({ atom, least: null, most: null });
    else if (times[1] !== undefined)
      atoms.push({ atom, least: times[1], most: times[2] === undefined ? times[1] : times[3] || null });
    else atoms.push({ atom, least: times[0] === '+' ? '1' : '0', most: times[0] === '?' ? '1' : null });
  }
  return atoms;
}

function groupEnd(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '\\') at += 1;
    else if (sign === '[') at += (/^\[(?:\\.|[^\]\\])*\]/s.exec(text.slice(at))?.[0].length ?? 1) - 1;
    else if (sign === '(') depth += 1;
    else if (sign === ')' && --depth === 0) return at + 1;
  }
  return text.length;
}

/** The parts between the `|` outside of groups. */
function alternatives(source: string): string[] {
  const parts = [''];
  for (const { atom, least, most } of atomsOf(source)) {
    if (atom === '|') parts.push('');
    else parts[parts.length - 1] += least === null ? atom : `${atom}{${least},${most ?? ''}}`;
  }
  return parts.length === 1 ? [source] : parts;
}
