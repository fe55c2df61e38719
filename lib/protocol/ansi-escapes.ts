/** An escape sequence in some output, from its first sign to behind its last. */
export interface Escape {
  from: number;
  to: number;
  /** The parameters of a colour (SGR), `''` for a bare reset; null for every other escape. */
  colour: string | null;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what this is about
const OPENER = /[\x1b\x90\x98\x9b\x9d-\x9f]/g;
// CSI … final byte
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const CONTROL_SEQUENCE = /(?:\x1b\[|\x9b)([0-?]*)([ -/]*)([@-~])/y;
// OSC, DCS, SOS, PM, APC
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const STRING_OPENER = /\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const STRING_END = /[\x07\x1b\x9c]/g;
// any other escape of two bytes
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const TWO_BYTES = /\x1b[ -/]*[0-~]?/y;

/**
 * The escape sequences of some output, in order and apart.
 *
 * Every sign is looked at a bounded number of times: where one string of a terminal ends, or that it does not, is
 * remembered for all that are opened before that place.
 *
 * @see ECMA-48 §5.4 (control sequences), §5.6 (strings)
 */
export function* findEscapes(output: string): Generator<Escape> {
  /** Where the next sign stands that ends a string or breaks it off; what is opened before it ends there, too. */
  let stopAt = -1;
  OPENER.lastIndex = 0;
  let at = 0;
  for (;;) {
    const from = nextMatch(OPENER, output, at);
    if (from === -1) return;
    const sequence = matchAt(CONTROL_SEQUENCE, output, from);
    if (sequence) {
      at = from + sequence[0].length;
      const [, parameters = '', between, final] = sequence;
      // With anything between, or with parameters of its own, it is another command, whatever its last byte.
      const isColour = final === 'm' && between === '' && /^[\d;:]*$/.test(parameters);
      yield { from, to: at, colour: isColour ? parameters : null };
      continue;
    }
    const opener = matchAt(STRING_OPENER, output, from);
    if (opener) {
      const inside = from + opener[0].length;
      if (stopAt < inside) stopAt = nextMatch(STRING_END, output, inside);
      const to = endOfString(output, stopAt);
      if (stopAt === -1) stopAt = output.length;
      if (to !== null) {
        at = to;
        yield { from, to, colour: null };
        continue;
      }
    }
    const other = matchAt(TWO_BYTES, output, from);
    at = from + (other?.[0].length ?? 1);
    if (other) yield { from, to: at, colour: null };
  }
}

/** @returns null if the string is broken off by another escape: then it is none */
function endOfString(output: string, stopAt: number): number | null {
  if (stopAt === -1 || stopAt === output.length) return output.length;
  if (output[stopAt] !== '\u001b') return stopAt + 1;
  return output[stopAt + 1] === '\\' ? stopAt + 2 : null;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** @returns -1 where there is none */
function nextMatch(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? -1;
}
