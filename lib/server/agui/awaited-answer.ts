import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { idField, inputUserMessages } from '@interlude/protocol/event-fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';

/** Which turn the client waits for. */
export interface Awaited {
  /** The messages, by their ids in the log, that are to be answered. */
  awaits: readonly string[];
  /** The turn that is its answer though it began before: it goes on after an interrupt, or another client began it. */
  answeredIn: string | null;
  /** True if the next run is the answer, whichever messages it names: it continues from the client's answers. */
  answersNext: boolean;
}

/** `maybe`: it began behind the message and does not say whom it answers. */
export type Answers = 'yes' | 'maybe' | 'no';

/** What a turn says of itself when it begins. */
export interface Begun {
  id: string;
  kind: 'user' | 'between-run';
  /** The messages it answers; null if it does not say. */
  named: string[] | null;
  parentRunId: string | null;
}

/** @param position of the event: a turn without an id is known by it */
export function begunBy(event: AgUiEvent, position: string): Begun {
  const said = readInterlude(event);
  const input = inputUserMessages(event).map(({ id }) => id);
  const parentRunId = idField(event, 'parentRunId');
  const isByItself = event.input === undefined && parentRunId !== null;
  return {
    id: idField(event, 'runId') ?? `run:${position}`,
    kind: said.turn ?? (isByItself ? 'between-run' : 'user'),
    named: said.userMessageIds ?? (input.length > 0 ? input : null),
    parentRunId,
  };
}

/** The answer that the client waits for: in how many turns ever. */
export class AwaitedAnswer {
  readonly #awaits: Set<string>;
  #turnId: string | null;
  #isNext: boolean;

  constructor({ awaits, answeredIn, answersNext }: Awaited) {
    this.#awaits = new Set(awaits);
    this.#turnId = answeredIn;
    this.#isNext = answersNext;
  }

  get isPending(): boolean {
    return this.#awaits.size > 0 || this.#turnId !== null || this.#isNext;
  }

  get hasMessages(): boolean {
    return this.#awaits.size > 0;
  }

  isIn(turnId: string): boolean {
    return turnId === this.#turnId;
  }

  /** From now on it is this turn, which began before. */
  expectIn(turnId: string | null): void {
    this.#turnId = turnId;
  }

  amongst(ids: readonly string[] | undefined): string[] {
    return ids?.filter((id) => this.#awaits.has(id)) ?? [];
  }

  /** A turn begins. */
  judge({ id, kind, named }: Begun): Answers {
    if (this.#isNext) {
      this.#isNext = false;
      this.#turnId = id;
    }
    if (id === this.#turnId || this.amongst(named ?? []).length > 0) return 'yes';
    return this.#awaits.size > 0 && kind === 'user' && (named === null || named.length === 0) ? 'maybe' : 'no';
  }

  /** A turn that was shown has ended. @param named all that it says it answers */
  ended(turnId: string, answers: Answers, named: readonly string[]): void {
    for (const id of named) this.#awaits.delete(id);
    if (turnId === this.#turnId) this.#turnId = null;
    // An agent that never says whom it answers has answered with this.
    if (answers === 'maybe' && named.length === 0) this.#awaits.clear();
  }

  answered(ids: readonly string[]): void {
    for (const id of ids) this.#awaits.delete(id);
  }

  giveUp(): void {
    this.#awaits.clear();
    this.#turnId = null;
    this.#isNext = false;
  }
}
