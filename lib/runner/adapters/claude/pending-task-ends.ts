import type { TurnTrigger } from '@interlude/protocol/ag-ui';

/** A run of a task. `runId` is null if the source knows of only one run. */
export interface TaskRef {
  taskId: string;
  runId: string | null;
}

/** A task's end that a prompt has reported, or will report, to the agent. */
export interface TaskEnd extends TaskRef {
  /** The run that started the task. */
  startedInRun: string | null;
  /** It wakes no turn: the next one reports it, whatever opens that turn. */
  quiet: boolean;
}

interface Waiting extends TaskEnd {
  /** Its own result was empty: the next turn answers it. */
  swallowed: boolean;
  /** The open turn has received it. */
  received: boolean;
  /** It woke the turn that is open or about to open: the source says so, it is not a guess. */
  wakes: boolean;
}

/** What the result of a turn says about its cause. */
interface ResultCause {
  kind: 'user' | 'between-run';
  /** `origin.runId`, if the result names one. */
  runId: string | null;
  /** What the turn seemed to answer when it opened. */
  guess: readonly TaskEnd[];
  /** The model was never reached: the notification goes out again with the next turn. */
  unanswered: boolean;
}

/**
 * Task ends that no turn has answered yet. The CLI queues a notification for each and delivers it in one of these ways,
 * without announcing which:
 * - a turn of its own, whose result names the run of the task (`origin.runId`);
 * - together with later ones: each but the last gets an init and an EMPTY result of its own, just before that turn;
 * - in the middle of a running turn, after a round of tools: no result names it then;
 * - with the next user turn, when it wakes nobody (a shell that was stopped) or its own turn failed at the API.
 *
 * A source that shows the notifications of each prompt (a transcript does) calls `told`, and nothing is guessed: a task
 * that ends while a turn is being opened waits for the next one.
 *
 * Measured with Agent SDK 0.3.329.
 */
export class PendingTaskEnds {
  readonly #knowsDeliveries: boolean;
  #waiting: Waiting[] = [];

  /** @param isSaid the source calls `told` to say which turn receives which end */
  constructor(knowsDeliveries = false) {
    this.#knowsDeliveries = knowsDeliveries;
  }

  add(end: TaskEnd): void {
    this.#waiting = this.#waiting.filter((other) => !isSame(other, end));
    this.#waiting.push({ ...end, swallowed: false, received: false, wakes: false });
  }

  /**
   * A prompt reports these ends; null means all that wait.
   * @param how whether the prompt opens a turn, or goes to the one that is open
   */
  delivered(ends: readonly TaskRef[] | null, how: 'wakes' | 'received'): void {
    // An earlier turn has had the same end from a call. It is the cause of this one all the same.
    const again =
      how === 'received' ? [] : (ends ?? []).filter((end) => !this.#waiting.some((one) => isSame(one, end)));
    for (const end of again) this.add({ ...end, startedInRun: null, quiet: false });
    for (const end of this.#waiting) if (ends === null || ends.some((ref) => isSame(ref, end))) end[how] = true;
  }

  /** The ends that may wake the agent. */
  waking(): TaskEnd[] {
    if (this.#knowsDeliveries) return this.#waiting.filter((end) => end.wakes);
    return this.#waiting.filter((end) => !end.quiet || end.swallowed);
  }

  /** An empty result came for the task with this run. A task of an earlier process has no run. */
  swallow(runId: string | null): void {
    for (const end of this.#waiting) if (end.runId === runId) end.swallowed = true;
  }

  /** A turn opens: its prompt reports the quiet ends, and in a user turn the swallowed ones. */
  opened(kind: 'user' | 'between-run'): void {
    for (const end of this.#waiting) if (end.quiet || (kind === 'user' && end.swallowed)) end.received = true;
  }

  /** A prompt joins the turn that these ends have opened, which then answers people. */
  joined(): void {
    for (const end of this.#waiting) if (end.wakes) [end.wakes, end.received] = [false, true];
  }

  /** The open turn goes on after a tool result, with which it receives everything that waits. */
  boundary(): void {
    if (this.#knowsDeliveries) return;
    for (const end of this.#waiting) end.received = true;
  }

  /** The open turn closes. @returns the ends that woke it, and the others it received */
  settle(cause: ResultCause): { causes: TaskEnd[]; folded: TaskEnd[] } {
    const causes = cause.kind === 'user' ? [] : this.#waiting.filter((end) => isCause(end, cause));
    const folded = this.#waiting.filter((end) => (end.received || end.wakes) && !causes.includes(end));
    this.#waiting = this.#waiting.filter((end) => !causes.includes(end) && !folded.includes(end));
    if (cause.unanswered)
      for (const end of [...causes, ...folded])
        this.#waiting.push({ ...end, quiet: true, swallowed: false, received: false, wakes: false });
    return { causes, folded };
  }

  /** The process is gone, and with it its queue. */
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
