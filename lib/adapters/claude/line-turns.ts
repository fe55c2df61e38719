import { type Fields, textOf } from '@/lib/protocol/fields';
import { remember } from './remember';

/** Most lines that are remembered: what stands in the wrong place stands near the right one. */
const MAX_LINES = 1_024;

/**
 * Which turn each line of the main thread belongs to: that of the line it follows in the conversation, wherever in the
 * file it stands. A line that names none, or one that is not known, is of the newest turn.
 */
export class LineTurns {
  readonly #turnOf = new Map<string, number>();
  #newest = 0;

  /** The line asks for a new turn. */
  opened(line: Fields): void {
    this.#newest += 1;
    this.#keep(line, this.#newest);
  }

  /** Whether the line belongs to a turn before the newest one. */
  isBehind(line: Fields): boolean {
    const turn = this.#turnOf.get(textOf(line.parentUuid) ?? '') ?? this.#newest;
    this.#keep(line, turn);
    return turn < this.#newest;
  }

  #keep(line: Fields, turn: number): void {
    const uuid = textOf(line.uuid);
    if (uuid !== null) remember(this.#turnOf, uuid, turn, MAX_LINES);
  }
}
