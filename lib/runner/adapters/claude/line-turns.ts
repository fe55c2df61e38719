import { type Fields, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';

/** Most lines that are remembered: a line in the wrong place is near the right one. */
const MAX_LINES = 1_024;

/**
 * Which turn each line of the main thread belongs to: that of its parent in the conversation, wherever in the file it
 * is. A line without a known parent belongs to the newest turn.
 */
export class LineTurns {
  readonly #turnOf = new Map<string, number>();
  #newest = 0;
  #opener: string | null = null;

  /** The line asks for a new turn. Said again of the same line, it changes nothing. */
  opened(line: Fields): void {
    const uuid = textOf(line.uuid);
    if (uuid !== null && uuid === this.#opener) return;
    this.#opener = uuid;
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
