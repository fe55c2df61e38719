import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { idField, inputUserMessages } from '@interlude/protocol/event-fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';

export interface Awaited {
  /** Ids of the messages to answer, as in the log. */
  messageIds: readonly string[];
  /** An open turn that is the answer, because it continues after an interrupt or another client began it. */
  answeredIn: string | null;
  /**
   * True if the next turn is the answer regardless of the messages it names, because it continues from the client's
   * answers.
   */
  answersNext: boolean;
}

/** `maybe`: a user turn that began after the message and names no message. */
export type Answers = 'yes' | 'maybe' | 'no';

interface TurnStart {
  id: string;
  kind: 'user' | 'between-run';
  /** The messages that the turn answers; null if it names none. */
  named: string[] | null;
  parentRunId: string | null;
}

/** @param position of the event, which identifies a turn without an id */
export function turnStartOf(event: AgUiEvent, position: string): TurnStart {
  const { turn, userMessageIds } = readInterlude(event);
  const input = inputUserMessages(event).map(({ id }) => id);
  const parentRunId = idField(event, 'parentRunId');
  const isBetweenRuns = event.input === undefined && parentRunId !== null;
  return {
    id: idField(event, 'runId') ?? `run:${position}`,
    kind: turn ?? (isBetweenRuns ? 'between-run' : 'user'),
    named: userMessageIds ?? (input.length > 0 ? input : null),
    parentRunId,
  };
}

/** Tracks the answer that a client waits for, over any number of turns. */
export class AwaitedAnswer {
  readonly #messageIds: Set<string>;
  #turnId: string | null;
  #isNext: boolean;

  constructor({ messageIds, answeredIn, answersNext }: Awaited) {
    this.#messageIds = new Set(messageIds);
    this.#turnId = answeredIn;
    this.#isNext = answersNext;
  }

  get isPending(): boolean {
    return this.hasMessages || this.#turnId !== null || this.#isNext;
  }

  get hasMessages(): boolean {
    return this.#messageIds.size > 0;
  }

  isIn(turnId: string): boolean {
    return turnId === this.#turnId;
  }

  expect(turnId: string | null): void {
    this.#turnId = turnId;
  }

  pendingOf(ids: readonly string[] = []): string[] {
    return ids.filter((id) => this.#messageIds.has(id));
  }

  /** Decides whether a starting turn is the answer. */
  classify({ id, kind, named }: TurnStart): Answers {
    if (this.#isNext) {
      this.#isNext = false;
      this.#turnId = id;
    }
    if (id === this.#turnId || this.pendingOf(named ?? []).length > 0) return 'yes';
    return this.hasMessages && kind === 'user' && (named === null || named.length === 0) ? 'maybe' : 'no';
  }

  /** @param named every message that the turn names as answered */
  ended(turnId: string, answers: Answers, named: readonly string[]): void {
    this.answered(named);
    if (turnId === this.#turnId) this.#turnId = null;
    // An agent that never names messages has answered every awaited message with this turn.
    if (answers === 'maybe' && named.length === 0) this.#messageIds.clear();
  }

  answered(ids: readonly string[]): void {
    for (const id of ids) this.#messageIds.delete(id);
  }

  clear(): void {
    this.#messageIds.clear();
    this.#turnId = null;
    this.#isNext = false;
  }
}
