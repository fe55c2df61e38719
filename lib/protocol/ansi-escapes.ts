/** An escape sequence in terminal output, from its first character to after its last. */
export interface Escape {
  from: number;
  to: number;
  /** Parameters of a colour sequence (SGR), `''` for a bare reset; null for other escapes. */
  colour: string | null;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches escape characters
const OPENER = /[\x1b\x90\x98\x9b\x9d-\x9f]/g;
// CSI … final byte
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const CONTROL_SEQUENCE = /(?:\x1b\[|\x9b)([0-?]*)([ -/]*)([@-~])/y;
// OSC, DCS, SOS, PM, APC
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const STRING_OPENER = /\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const STRING_END = /[\x07\x1b\x9c]/g;
// Any other escape of two bytes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const TWO_BYTES = /\x1b[ -/]*[0-~]?/y;

/**
 * The escape sequences of terminal output, in order and without overlap.
 *
 * Linear: the end of a control string, or its absence, is remembered for all strings opened before it.
 *
 * @see ECMA-48 §5.4 (control sequences), §5.6 (strings)
 */
export function* findEscapes(output: string): Generator<Escape> {
  /** The next character that ends or breaks a control string. All strings opened before it end there. */
  let stopAt = -1;
  OPENER.lastIndex = 0;
  let index = 0;
  for (;;) {
    const from = nextMatch(OPENER, output, index);
    if (from === -1) return;
    const sequence = matchAt(CONTROL_SEQUENCE, output, from);
    if (sequence) {
      index = from + sequence[0].length;
      const [, parameters = '', between, final] = sequence;
      // With intermediate bytes or private parameters, a final `m` does not set a colour.
      const isColour = final === 'm' && between === '' && /^[\d;:]*$/.test(parameters);
      yield { from, to: index, colour: isColour ? parameters : null };
      continue;
    }
    const opener = matchAt(STRING_OPENER, output, from);
    if (opener) {
      const inside = from + opener[0].length;
      if (stopAt < inside) stopAt = nextMatch(STRING_END, output, inside);
      const to = endOfString(output, stopAt);
      if (stopAt === -1) stopAt = output.length;
      if (to !== null) {
        index = to;
        yield { from, to, colour: null };
        continue;
      }
    }
    const other = matchAt(TWO_BYTES, output, from);
    index = from + (other?.[0].length ?? 1);
    if (other) yield { from, to: index, colour: null };
  }
}

/** @returns null if another escape interrupts the string, which then does not count as one */
function endOfString(output: string, stopAt: number): number | null {
  if (stopAt === -1 || stopAt === output.length) return output.length;
  if (output[stopAt] !== '\u001b') return stopAt + 1;
  return output[stopAt + 1] === '\\' ? stopAt + 2 : null;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** The index of the next match, or -1. */
function nextMatch(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? -1;
}
