import { StringDecoder } from 'node:string_decoder';

/**
 * One JSON value a line, as agents write them to their stdout.
 *
 * Ordering: lines are handed over in the order in which they came, each once it is whole.
 * Failure: a line that is no JSON, or too long to be held, is told as `onUnreadable` and passed over; what follows is
 * read. What a process that ended left without a line break is one of these.
 */
export interface JsonLinesListener {
  onValue(value: unknown): void;
  /** @param line its beginning */
  onUnreadable(why: 'not JSON' | 'too long' | 'cut off', line: string): void;
}

/** UTF-16 units. What an agent writes in one line, images included, is far below. */
const MAX_LINE = 64 * 1024 * 1024;
const QUOTED = 200;

export class JsonLines {
  readonly #listener: JsonLinesListener;
  readonly #maxLine: number;
  readonly #decoder = new StringDecoder('utf8');
  #parts: string[] = [];
  #length = 0;

  constructor(listener: JsonLinesListener, maxLine = MAX_LINE) {
    this.#listener = listener;
    this.#maxLine = maxLine;
  }

  write(chunk: Buffer): void {
    const pieces = this.#decoder.write(chunk).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) {
      this.#add(piece);
      this.#line();
    }
    this.#add(last);
  }

  /** Nothing more comes. */
  end(): void {
    this.#add(this.#decoder.end());
    const rest = this.#parts.join('').trim();
    if (rest !== '') this.#listener.onUnreadable('cut off', rest.slice(0, QUOTED));
    this.#parts = [];
    this.#length = 0;
  }

  #add(piece: string): void {
    this.#length += piece.length;
    // Of a line that is too long only the beginning is kept, to quote it.
    if (this.#length <= this.#maxLine) this.#parts.push(piece);
    else if (this.#parts.length > 1) this.#parts = [this.#parts.join('').slice(0, QUOTED)];
  }

  #line(): void {
    const line = this.#parts.join('').trim();
    const isTooLong = this.#length > this.#maxLine;
    this.#parts = [];
    this.#length = 0;
    if (isTooLong) this.#listener.onUnreadable('too long', line.slice(0, QUOTED));
    else if (line !== '') this.#value(line);
  }

  #value(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.#listener.onUnreadable('not JSON', line.slice(0, QUOTED));
      return;
    }
    this.#listener.onValue(value);
  }
}
