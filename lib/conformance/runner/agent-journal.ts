import { readFileSync, statSync } from 'node:fs';
import { type Fields, fieldsOf, listOf, parseJson } from '@interlude/protocol/fields';

/** A line of the trivial agent's own account. */
export interface JournalLine extends Fields {
  /** Epoch milliseconds. */
  at: number;
  pid: number;
  /** `in`: what it got. `out`: what it wrote. */
  dir: 'start' | 'in' | 'out';
  type?: string;
  id?: string;
  text?: string;
  /** Of what it wrote: for how long nobody read it. */
  blockedMs?: number;
}

/** Reads what the agents of a run have noted, process after process. */
export class AgentJournal {
  readonly #file: string;
  #size = 0;
  #lines: JournalLine[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  get lines(): readonly JournalLine[] {
    const { size } = statSync(this.#file, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size === this.#size) return this.#lines;
    const whole = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1);
    this.#lines = whole.map((line) => fieldsOf(parseJson(line)) as JournalLine);
    this.#size = size;
    return this.#lines;
  }

  /** What it got, of one type. */
  got(type: string): JournalLine[] {
    return this.lines.filter((line) => line.dir === 'in' && line.type === type);
  }

  /** What it wrote, of one type. */
  wrote(type: string): JournalLine[] {
    return this.lines.filter((line) => line.dir === 'out' && line.type === type);
  }

  /** What it wrote in the turn that a message began; all up to now while it goes on. A turn before it may still end. */
  inTurnOf(messageId: string): JournalLine[] {
    const lines = this.lines.filter(({ dir }) => dir === 'out');
    const from = lines.findIndex(({ type, messages }) => type === 'turn-start' && listOf(messages).includes(messageId));
    if (from === -1) return [];
    const turn = lines[from]?.turn;
    const end = lines.findIndex((line) => line.type === 'turn-end' && line.turn === turn);
    return lines.slice(from, end === -1 ? undefined : end + 1);
  }
}
