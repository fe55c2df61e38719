import { KEY_BEGIN, KEY_LINE, KEY_REST, KEY_RUN, LONG_LINE, LONGEST_KEY, ODD_LINES } from './find-secrets';

/**
 * A private key while it comes: where it is decided how far it goes. Each of its lines is looked at once.
 *
 * Ordering: decided by the first of these: its last line, the beginning of another, so many lines in a row that are no key's, its length.
 */
export class KeyWatch {
  /** Where its first line begins in the text. */
  readonly at: number;
  readonly #last: string;
  /** Up to where it was looked at. */
  #looked: number;
  #isFirst = true;
  #odd = 0;
  #hasBegun = false;

  constructor(at: number, sign: string) {
    this.at = at;
    this.#last = sign.replace('BEGIN', 'END');
    this.#looked = at + sign.length;
  }

  /** @param text with all that has come. @returns where what it decides ends; null while that is open */
  end(text: string): number | null {
    const most = this.at + LONGEST_KEY;
    for (;;) {
      const newline = text.indexOf('\n', this.#looked);
      const lineEnd = newline < 0 ? text.length : newline + 1;
      const last = text.slice(this.#looked, lineEnd).indexOf(this.#last);
      // another key begins, which has to be looked at from its own beginning
      const next = text.slice(this.#looked, lineEnd).search(KEY_BEGIN.source);
      if (next >= 0 && (last < 0 || next < last)) return this.#isFirst ? this.#looked + next : this.#looked;
      if (last >= 0) return Math.min(this.#looked + last + this.#last.length, most);
      if (lineEnd >= most) return most;
      if (newline < 0) return null;
      this.#takeLine(text.slice(this.#looked, newline));
      this.#looked = lineEnd;
      if (this.#odd >= ODD_LINES) return lineEnd;
    }
  }

  #takeLine(line: string): void {
    const said = line.length > LONG_LINE ? null : line.trim();
    const isKeys = said !== null && (KEY_LINE.test(said) || (this.#hasBegun && KEY_REST.test(said)));
    if (isKeys || line.search(KEY_RUN) >= 0) {
      this.#odd = 0;
      this.#hasBegun = true;
    } else if (said !== '' && !this.#isFirst) this.#odd += 1;
    this.#isFirst = false;
  }
}
