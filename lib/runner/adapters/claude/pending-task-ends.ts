import type { TurnTrigger } from '@interlude/protocol/ag-ui';

/** A run of a task; `runId` is null if the source knows only one. */
export interface TaskRef {
  taskId: string;
  runId: string | null;
}

/** A task end that some prompt reports to the agent. */
export interface TaskEnd extends TaskRef {
  startedInRun: string | null;
  /** Opens no turn: the next turn reports it. */
  quiet: boolean;
}

interface Waiting extends TaskEnd {
  /** Its own result was empty: the next turn answers it. */
  swallowed: boolean;
  /** The open turn received it. */
  received: boolean;
  /** Reported to have opened the current turn, not guessed. */
  wakes: boolean;
}

interface ResultCause {
  kind: 'user' | 'between-run';
  /** `origin.runId` of the result. */
  runId: string | null;
  /** Ends the turn seemed to answer when it opened. */
  guess: readonly TaskEnd[];
  /** The model was never reached: the notification is sent again with the next turn. */
  unanswered: boolean;
}

/**
 * Task ends that no turn has answered. The CLI queues a notification for each and delivers it unannounced in one of
 * these ways:
 * - in its own turn, whose result names the task's run (`origin.runId`);
 * - together with later ones: each but the last gets an init and an EMPTY result just before that turn;
 * - inside a running turn after a round of tools, named by no result;
 * - with the next user turn, if it opens none (a stopped shell) or its own turn failed at the API.
 *
 * A source that sees each prompt's notifications (a transcript) calls `delivered`, and nothing is guessed: a task that
 * ends while a turn opens waits for the next one.
 *
 * Measured with Agent SDK 0.3.329.
 */
export class PendingTaskEnds {
  readonly #knowsDeliveries: boolean;
  #waiting: Waiting[] = [];

  /** @param knowsDeliveries the source calls `delivered` */
  constructor(knowsDeliveries = false) {
    this.#knowsDeliveries = knowsDeliveries;
  }

  add(end: TaskEnd): void {
    this.#waiting = this.#waiting.filter((other) => !isSame(other, end));
    this.#waiting.push({ ...end, swallowed: false, received: false, wakes: false });
  }

  /**
   * Records that a prompt delivered these ends; null means all pending ones.
   * @param how `wakes`: the prompt opens a turn; `received`: it joins the open turn
   */
  delivered(ends: readonly TaskRef[] | null, how: 'wakes' | 'received'): void {
    // An earlier turn learned of the same end through a call; it still causes this one.
    const again =
      how === 'received' ? [] : (ends ?? []).filter((end) => !this.#waiting.some((one) => isSame(one, end)));
    for (const end of again) this.add({ ...end, startedInRun: null, quiet: false });
    for (const end of this.#waiting) if (ends === null || ends.some((ref) => isSame(ref, end))) end[how] = true;
  }

  /** Returns the ends that may have opened the turn. */
  waking(): TaskEnd[] {
    if (this.#knowsDeliveries) return this.#waiting.filter((end) => end.wakes);
    return this.#waiting.filter((end) => !end.quiet || end.swallowed);
  }

  /** An empty result arrived for this run; tasks of an earlier process have no run. */
  discard(runId: string | null): void {
    for (const end of this.#waiting) if (end.runId === runId) end.swallowed = true;
  }

  /** A turn opens: its prompt reports quiet ends and, in a user turn, swallowed ones. */
  opened(kind: 'user' | 'between-run'): void {
    for (const end of this.#waiting) if (end.quiet || (kind === 'user' && end.swallowed)) end.received = true;
  }

  /** A user prompt joins the turn these ends opened. */
  joined(): void {
    for (const end of this.#waiting) if (end.wakes) [end.wakes, end.received] = [false, true];
  }

  /** The open turn continues after a tool result, which delivers all pending ends. */
  boundary(): void {
    if (this.#knowsDeliveries) return;
    for (const end of this.#waiting) end.received = true;
  }

  /** Closes the open turn. @returns the ends that caused it and the others it received */
  settle(cause: ResultCause): { causes: TaskEnd[]; folded: TaskEnd[] } {
    const causes = cause.kind === 'user' ? [] : this.#waiting.filter((end) => isCause(end, cause));
    const folded = this.#waiting.filter((end) => (end.received || end.wakes) && !causes.includes(end));
    this.#waiting = this.#waiting.filter((end) => !causes.includes(end) && !folded.includes(end));
    if (cause.unanswered)
      for (const end of [...causes, ...folded])
        this.#waiting.push({ ...end, quiet: true, swallowed: false, received: false, wakes: false });
    return { causes, folded };
  }

  /** The queue is gone with the process. */
  clear(): void {
    this.#waiting = [];
  }
}

function isCause(end: Waiting, cause: ResultCause): boolean {
  if (end.swallowed || end.wakes) return true;
  if (cause.runId !== null) return end.runId === cause.runId;
  return cause.guess.some((guess) => isSame(guess, end));
}

function isSame(one: TaskRef, other: TaskRef): boolean {
  return one.taskId === other.taskId && one.runId === other.runId;
}

export function taskTrigger(ends: readonly TaskEnd[]): TurnTrigger {
  return { kind: 'task', taskIds: ends.map((end) => end.taskId), taskRunIds: ends.map((end) => end.runId) };
}
