import type { AgUiEvent, InterludeMetadata } from '@/lib/protocol/ag-ui';
import { compact, type Fields, fieldsOf, textOf } from '@/lib/protocol/fields';
import { GRAMMAR, type TurnInput, type TurnState, type Verdict } from '@/lib/protocol/lifecycle/grammar';
import type { Emit } from '../emit';
import { originRun, otherTrigger, userMessageIds } from './attribution';
import { type TaskEnd, type TaskEnds, taskTrigger } from './task-ends';
import { outcomeOf, resultSummary, type TurnOutcome } from './turn-outcome';

type Step = 'open' | 'join' | 'close' | 'abandon' | 'swallow' | 'exit';

/**
 * Steps for each input and the grammar's verdict on it. A turn goes from `init` to `result`
 * (Agent SDK 0.3.332). A result that is empty, or names a cause other than the open turn's, ends nothing.
 */
const STEPS: Partial<Record<TurnInput, Partial<Record<Verdict, readonly Step[]>>>> = {
  begin: { begins: ['open'], late: ['abandon', 'open'] },
  join: { begins: ['open'], continues: ['join'] },
  announce: { late: ['abandon'] },
  request: { begins: ['open'] },
  content: { begins: ['open'] },
  end: { begins: ['open', 'close'], ends: ['close'] },
  'foreign-end': { stray: ['swallow'] },
  gone: { ends: ['exit'] },
};

const ABANDONED: TurnOutcome = {
  kind: 'failed',
  message: 'The agent began its next turn without saying how this one ended.',
  code: 'result_missing',
  unanswered: false,
};
const EXITED: TurnOutcome = {
  kind: 'failed',
  message: 'The agent’s process ended in the middle of this turn.',
  code: 'agent_exited',
  unanswered: false,
};

interface OpenTurn {
  runId: string;
  kind: 'user' | 'between-run';
  userMessageIds: string[];
  guess: TaskEnd[];
  spoke: boolean;
  /** It has said a text, which its result only repeats. */
  saidText: boolean;
}

export interface TurnSurroundings {
  sessionId: string;
  newRunId: () => string;
  emit: Emit;
  ends: TaskEnds;
  /** A task's end by the run of the task, even if a turn has already been told of it. */
  endOfRun: (taskRunId: string) => TaskEnd | null;
  /** Ends what the turn left open, before its last event. */
  beforeClose: (outcome: TurnOutcome) => void;
}

/** Which turn is open, and which messages it answers. */
export class Turns {
  readonly #around: TurnSurroundings;
  #state: TurnState = 'none';
  #open: OpenTurn | null = null;
  /** User messages that no turn has answered, oldest first. */
  readonly #unanswered = new Set<string>();
  /** Older CLIs name no user messages; once one init has, an init that names none does not open a user turn. */
  #initsNameMessages = false;

  constructor(around: TurnSurroundings) {
    this.#around = around;
  }

  get runId(): string | null {
    return this.#open?.runId ?? null;
  }

  sent(messageId: string): void {
    this.#unanswered.add(messageId);
  }

  init(message: Fields): void {
    const ids = userMessageIds(message);
    if (ids.length > 0) this.#initsNameMessages = true;
    const repeated =
      this.#open !== null && ids.length > 0 && ids.every((id) => this.#open?.userMessageIds.includes(id));
    if (repeated) return;
    // A prompt that is drained together with a notification, or another prompt, is answered with it.
    const joins = message.joins === true && this.#open?.spoke === false;
    this.#take(ids.length === 0 ? 'announce' : joins ? 'join' : 'begin', message);
  }

  /** The main thread asks the model (`request`), or says or does something (`content`). */
  activity(input: 'request' | 'content', message: Fields): void {
    this.#take(input, message);
    if (this.#open === null) return;
    if (input === 'content') this.#open.spoke = true;
    this.#name(this.#open, userMessageIds(message));
  }

  saidText(): void {
    if (this.#open !== null) this.#open.saidText = true;
  }

  result(message: Fields): void {
    this.#take(this.#isForeign(message) ? 'foreign-end' : 'end', message);
  }

  exit(isAsked: boolean): void {
    this.#take('gone', { isAsked });
    this.#around.ends.clear();
  }

  #isForeign(result: Fields): boolean {
    const empty = result.num_turns === 0 && result.result === '' && result.is_error !== true;
    if (this.#open === null) return empty;
    const names = userMessageIds(result).length > 0;
    if (names || fieldsOf(result.origin).kind !== 'task-notification') return false;
    return this.#open.kind === 'user' || (empty && this.#open.spoke);
  }

  #take(input: TurnInput, message: Fields): void {
    const [next, verdict] = GRAMMAR.turn[this.#state][input];
    for (const step of STEPS[input]?.[verdict] ?? []) this.#steps[step](message);
    this.#state = next;
  }

  readonly #steps: Record<Step, (message: Fields) => void> = {
    open: (message) => this.#begin(message),
    swallow: (result) => {
      if (fieldsOf(result.origin).kind === 'task-notification') this.#around.ends.swallow(originRun(result));
    },
    join: (message) => this.#join(message),
    close: (result) => {
      const turn = this.#open;
      if (turn === null) return;
      this.#name(turn, userMessageIds(result));
      const text = textOf(result.result);
      const outcome = outcomeOf(result);
      // A local command answers only in its result.
      if (!turn.saidText && text !== null && outcome.kind === 'success') this.#sayResult(turn, text);
      this.#finish(outcome, result);
    },
    abandon: () => this.#finish(ABANDONED),
    exit: ({ isAsked }) => this.#finish(isAsked === true ? { kind: 'cancelled' } : EXITED),
  };

  /** The open turn answers people as well as what woke it: it becomes a user turn. */
  #join(message: Fields): void {
    const turn = this.#open;
    if (turn === null) return;
    const { ends, emit, sessionId } = this.#around;
    ends.joined();
    turn.kind = 'user';
    this.#name(turn, userMessageIds(message));
    const interlude = { turn: turn.kind, userMessageIds: [...turn.userMessageIds] };
    emit({ type: 'RUN_STARTED', threadId: sessionId, runId: turn.runId, metadata: { interlude } });
  }

  #begin(message: Fields): void {
    const { sessionId, newRunId, emit, ends } = this.#around;
    const named = userMessageIds(message);
    const guess = ends.waking();
    const waiting = this.#initsNameMessages || guess.length > 0 ? [] : [...this.#unanswered];
    const answers = named.length > 0 ? named : waiting;
    const kind = answers.length > 0 ? 'user' : 'between-run';
    ends.opened(kind);
    const turn: OpenTurn = { runId: newRunId(), kind, userMessageIds: [], guess, spoke: false, saidText: false };
    this.#open = turn;
    this.#name(turn, answers);
    const parent = kind === 'user' ? null : (guess.find((end) => end.startedInRun !== null)?.startedInRun ?? null);
    const trigger = guess.length > 0 ? taskTrigger(guess) : otherTrigger(message);
    emit({
      type: 'RUN_STARTED',
      threadId: sessionId,
      runId: turn.runId,
      ...compact({ parentRunId: parent }),
      metadata: {
        interlude: { turn: kind, ...(kind === 'user' ? {} : { trigger }), userMessageIds: [...turn.userMessageIds] },
      },
    });
  }

  #finish(outcome: TurnOutcome, result: Fields = {}): void {
    const turn = this.#open;
    if (turn === null) return;
    this.#around.beforeClose(outcome);
    const end: Partial<AgUiEvent> = {
      threadId: this.#around.sessionId,
      runId: turn.runId,
      ...(Object.keys(result).length > 0 ? { result: resultSummary(result) } : {}),
      metadata: { interlude: this.#attribution(turn, result, outcome) },
    };
    if (outcome.kind === 'failed')
      this.#around.emit({ ...end, type: 'RUN_ERROR', message: outcome.message, code: outcome.code });
    else this.#around.emit({ ...end, type: 'RUN_FINISHED', outcome: { type: outcome.kind } });
    this.#open = null;
  }

  /** What the turn answered, as finally known. */
  #attribution(turn: OpenTurn, result: Fields, outcome: TurnOutcome): InterludeMetadata {
    const { ends, endOfRun } = this.#around;
    const runId = originRun(result);
    const unanswered = outcome.kind === 'failed' && outcome.unanswered;
    const { causes, folded } = ends.settle({ kind: turn.kind, runId, guess: turn.guess, unanswered });
    if (turn.kind === 'between-run' && runId !== null && !causes.some((end) => end.runId === runId)) {
      // A notification that an earlier turn seemed to have been told of got a turn of its own after all.
      const late = endOfRun(runId);
      if (late !== null) causes.push(late);
    }
    return {
      ...(turn.kind === 'user' ? {} : { trigger: causes.length > 0 ? taskTrigger(causes) : otherTrigger(result) }),
      userMessageIds: turn.userMessageIds,
      ...(folded.length > 0 ? { foldedTaskIds: folded.map((end) => end.taskId) } : {}),
    };
  }

  #sayResult(turn: OpenTurn, text: string): void {
    const messageId = `${turn.runId}/result`;
    this.#around.emit({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' });
    this.#around.emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text });
    this.#around.emit({ type: 'TEXT_MESSAGE_END', messageId });
  }

  #name(turn: OpenTurn, ids: readonly string[]): void {
    for (const id of ids) {
      this.#unanswered.delete(id);
      if (!turn.userMessageIds.includes(id)) turn.userMessageIds.push(id);
    }
  }
}
