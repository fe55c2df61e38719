import type {
  AgUiEvent,
  PlanEntry,
  RequestOpenedValue,
  RequestResolvedValue,
  TaskEventValue,
  TurnTrigger,
} from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact } from '@interlude/protocol/fields';
import type { TurnInput, Verdict } from '@interlude/protocol/lifecycle/grammar';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import type { TaskEnd } from '@interlude/protocol/read-models';
import { custom } from '../emit';
import { remember } from '../remember';
import type { ToldEvent, WireEnd } from '../wire';
import { fittingEvent } from './fitting-event';
import { fittingText } from './long-text';
import { Speaker } from './speaker';
import { ofTask, type UserMessageAbout, userMessage } from './speech-events';
import { type TaskRun, TaskRuns } from './task-runs';

export type TurnCause =
  /** `trigger`: a timer that began the turn before a message joined it. */
  | { kind: 'user'; userMessageIds: readonly string[]; trigger?: TurnTrigger | undefined }
  | { kind: 'between-run'; trigger: TurnTrigger; parentRunId?: string | null };

export type TurnEnd = { kind: 'success' } | { kind: 'cancelled' } | { kind: 'failed'; message: string; code?: string };

export interface OpenTurn {
  readonly runId: string;
  readonly kind: TurnCause['kind'];
  /** The agent has said or done something in it. */
  readonly spoke: boolean;
  /** Ids of the user messages that it answers. */
  readonly answers: ReadonlySet<string>;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

/** What is known about a turn when it ends. */
export interface TurnAbout {
  /** The agent did not say that it ended. */
  isInferred?: boolean;
  /** Stored with the turn. */
  result?: object | undefined;
  /** The final cause, if it differs from the one at the start. */
  trigger?: TurnTrigger;
  /** Tasks whose ends it answered, though they did not wake it. */
  foldedTaskIds?: string[];
}

/** Open work of a process that was killed, whose agent has gone on. */
export interface OpenBefore {
  turn: { runId: string; cause: TurnCause } | null;
  tasks: readonly { id: string; runId: string | null }[];
  requests: readonly string[];
  /** By the agent's names. */
  texts: readonly string[];
  thoughts: readonly string[];
  calls: readonly string[];
}

export interface SessionWriterOptions {
  sessionId: string;
  newRunId: () => string;
  isReplay?: boolean | undefined;
  /** The agent gives a task's id to further runs, named or not, also while an earlier one goes on. */
  reusesTaskIds?: boolean;
  /** What a subagent is saying goes on past the end of a turn, until its task ends. By default it ends with the turn. */
  subagentsGoOn?: boolean;
  /** The end of a turn whose agent began the next one without saying how it ended. By default it has succeeded. */
  unfinished?: TurnEnd;
  /** Called before a turn ends, whatever ends it. @returns everything known about the turn by then */
  beforeTurnEnds?: (end: TurnEnd, about: TurnAbout) => TurnAbout;
}

interface RequestAbout {
  outlivesTurn: boolean;
  /** The turn that was open then. */
  askedIn: string | null;
  kind: RequestOpenedValue['kind'];
}

interface Turn {
  runId: string;
  cause: TurnCause;
  answers: Set<string>;
  spoke: boolean;
  startedAt: number;
}

/** Most speakers, and most open tasks and requests, that are known. */
const MAX_KNOWN = 1_000;
const MAX = { mostOpen: MAX_KNOWN, mostEnded: MAX_KNOWN };

/**
 * Writes one session as AG-UI events, for every kind of agent. The adapter decides what a native message means. The
 * writer opens and closes turns, leaves nothing open in a closed turn, writes nothing twice, and cuts every record to a
 * size that the server accepts.
 *
 * Ordering: `take` returns events in the order of the calls that wrote them, each with the time of its call.
 */
export class SessionWriter {
  readonly sessionId: string;
  readonly #options: SessionWriterOptions;
  readonly #speakers = new Map<string, Speaker>();
  readonly #turns = new Entities<'turn', Turn>('turn', { mostOpen: 1, mostEnded: 1 });
  readonly #tasks = new TaskRuns(MAX);
  readonly #requests = new Entities<'request', RequestAbout>('request', MAX);
  /** Tasks and requests for reading: only the writer's methods move them. */
  readonly tasks: Pick<TaskRuns, 'find' | 'newest' | 'running' | 'stateOf'> = this.#tasks;
  readonly requests: Pick<Entities<'request', RequestAbout>, 'open' | 'isOpen' | 'stateOf' | 'about'> = this.#requests;
  /** Ids of messages that are in the log. */
  readonly #told = new Map<string, true>();
  #now = 0;
  #out: ToldEvent[] = [];
  #isOver = false;

  constructor(options: SessionWriterOptions) {
    this.sessionId = options.sessionId;
    this.#options = options;
  }

  /** Sets the time of the next events, epoch milliseconds. */
  at(now: number): void {
    this.#now = now;
  }

  /** Returns the events since the last call. */
  take(): ToldEvent[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  get turn(): OpenTurn | null {
    const turn = this.#turn;
    return turn === null ? null : { ...turn, kind: turn.cause.kind };
  }

  get #turn(): Turn | null {
    return this.#turns.stateOf(TURN) === 'open' ? (this.#turns.about(TURN) ?? null) : null;
  }

  /** Continues the open work of the process before this one: writes its ends, but not its starts again. */
  takeUp({ turn, tasks, requests, ...said }: OpenBefore): void {
    if (turn !== null) this.#turns.take(TURN, 'begin', this.#newTurn(turn.cause, turn.runId));
    for (const { id, runId } of tasks)
      this.#tasks.begin({ task_id: id, run_id: runId ?? undefined }, 'start', {
        startedIn: null,
        startedAt: this.#now,
      });
    for (const id of requests) this.#asked(id, 'permission', turn === null);
    this.speaker().takeUp(said);
  }

  /** Begins a turn, and ends an open one first, as `unfinished`. */
  begin(cause: TurnCause, runId?: string): void {
    this.sign('begin', () => cause, runId);
  }

  /**
   * Moves the turn by an input, and begins it with its cause where the grammar says so. An `end` begins a turn whose
   * start was missed; `finish` ends it.
   */
  sign(input: Exclude<TurnInput, 'gone'>, cause: () => TurnCause, runId?: string): Verdict {
    if (this.#turns.verdict(TURN, input) === 'late') {
      const { unfinished = { kind: 'success' } } = this.#options;
      this.finish(unfinished, unfinished.kind === 'success' ? { isInferred: true } : {});
    }
    const verdict = this.#turns.verdict(TURN, input);
    if (verdict === 'begins') this.#begin(cause(), runId ?? this.#options.newRunId());
    else if (input !== 'end') this.#turns.take(TURN, input);
    if (input === 'content' && this.#turn !== null) this.#turn.spoke = true;
    return verdict;
  }

  /** Adds messages to those that the open turn answers, and writes its start again, as a user turn. */
  join(userMessageIds: readonly string[]): void {
    const cause = { kind: 'user', userMessageIds } as const;
    const verdict = this.sign('join', () => cause);
    const turn = this.#turn;
    if (turn === null || verdict !== 'continues') return;
    const { trigger } = turn.cause;
    turn.cause = trigger?.kind === 'timer' ? { ...cause, trigger } : cause;
    turn.startedAt = this.#now;
    this.answers(userMessageIds);
    this.#tellTurn(turn);
  }

  #begin(cause: TurnCause, runId: string): void {
    const turn = this.#newTurn(cause, runId);
    this.#turns.take(TURN, 'begin', turn);
    this.#tellTurn(turn);
  }

  #newTurn(cause: TurnCause, runId: string): Turn {
    const answers = new Set(cause.kind === 'user' ? cause.userMessageIds : []);
    return { runId, cause, answers, spoke: false, startedAt: this.#now };
  }

  #tellTurn({ runId, cause, answers }: Turn): void {
    const { trigger } = cause;
    const parentRunId = cause.kind === 'user' ? null : cause.parentRunId;
    const starter = (id: string) => (this.runs(id) ? this.#tasks.find({ task_id: id })?.startedIn : null);
    this.#emit({
      type: 'RUN_STARTED',
      threadId: this.sessionId,
      runId,
      ...compact({ parentRunId: parentRunId ?? trigger?.taskIds.map(starter).find(Boolean) ?? null }),
      metadata: {
        interlude: { turn: cause.kind, ...(trigger === undefined ? {} : { trigger }), userMessageIds: [...answers] },
      },
    });
  }

  /** Adds messages to those that the open turn answers. */
  answers(userMessageIds: readonly string[]): void {
    for (const id of userMessageIds) this.#turn?.answers.add(id);
  }

  /** Sets the cause of the open turn, where it is better known than at its start. */
  wokenBy(trigger: TurnTrigger): void {
    const turn = this.#turn;
    if (turn?.cause.kind === 'between-run') turn.cause = { ...turn.cause, trigger };
  }

  /** Ends the open turn and what is open in it. */
  finish(end: TurnEnd, about: TurnAbout = {}): void {
    const turn = this.#turn;
    if (turn === null) return;
    const known = this.#options.beforeTurnEnds?.(end, about) ?? about;
    const { isInferred = false, result, foldedTaskIds = [] } = known;
    for (const [name, speaker] of this.#speakers) {
      if (name === MAIN) speaker.close();
      else if (this.#options.subagentsGoOn !== true) speaker.endText();
    }
    const wentOn = end.kind === 'success' || end === this.#options.unfinished;
    for (const [id, { outlivesTurn }] of this.#requests.entries())
      if (!outlivesTurn) this.resolved(id, wentOn ? 'unknown' : 'cancelled');
    const { runId, cause, answers } = turn;
    const common = {
      threadId: this.sessionId,
      runId,
      ...(result === undefined ? {} : { result }),
      metadata: {
        interlude: {
          ...compact({ trigger: cause.kind === 'user' ? cause.trigger : (known.trigger ?? cause.trigger) }),
          userMessageIds: [...answers],
          ...(foldedTaskIds.length > 0 ? { foldedTaskIds } : {}),
          ...(isInferred ? { inferred: true as const } : {}),
        },
      },
    };
    if (end.kind === 'failed') {
      this.#emit({ ...common, type: 'RUN_ERROR', message: end.message, ...compact({ code: end.code }) });
    } else this.#emit({ ...common, type: 'RUN_FINISHED', outcome: { type: end.kind } });
    this.#turns.take(TURN, 'end');
  }

  /**
   * Returns the speaker for the agent, or for the subagent of a task.
   * @param taskId null: the agent itself
   * @param runId the run of the task, if the agent names it with what the subagent says
   */
  speaker(taskId: string | null = null, runId: string | null = null): Speaker {
    const name = runId === null ? (taskId ?? MAIN) : `${taskId}/${runId}`;
    const known = this.#speakers.get(name);
    if (known !== undefined) return known;
    const prefix = () => (taskId === null ? (this.#turn?.runId ?? this.sessionId) : name);
    const emit = (event: AgUiEvent) => {
      if (taskId === null && this.#turn !== null) this.#turn.spoke = true;
      this.#emit(event);
    };
    const speaker = new Speaker(emit, prefix, taskId, runId);
    if (this.#speakers.size >= MAX_KNOWN) {
      const [oldest] = [...this.#speakers].find(([one]) => one !== MAIN) ?? [];
      if (oldest !== undefined) this.#speakers.get(oldest)?.close();
      if (oldest !== undefined) this.#speakers.delete(oldest);
    }
    this.#speakers.set(name, speaker);
    return speaker;
  }

  /** Writes a message that was not sent through the dashboard, once. */
  userMessage(
    id: string,
    text: string,
    {
      taskId = null,
      runId = null,
      ...about
    }: UserMessageAbout & { taskId?: string | null; runId?: string | null } = {},
  ): void {
    if (this.#told.has(id) || text === '') return;
    remember(this.#told, id, true, MAX_KNOWN);
    for (const event of userMessage(id, text, about)) this.#emit(ofTask(event, taskId, runId));
  }

  /** A message of the dashboard, which the log has already. Only a replay, whose log is empty, writes it. */
  dashboardMessage(id: string, text: string, about: { taskId?: string } = {}): void {
    if (this.#options.isReplay === true) this.userMessage(id, text, about);
    remember(this.#told, id, true, MAX_KNOWN);
  }

  /**
   * Writes the start of a task, once: an agent that uses an id again names the run.
   *
   * @param input `hide`: its call shows it, until it starts
   * @returns whether the task is shown
   */
  taskStarted(value: TaskEventValue, input: 'start' | 'hide' = 'start'): boolean {
    const { reusesTaskIds = false } = this.#options;
    const known = this.#tasks.find(value);
    const isSame = known !== undefined && known.runId === (value.run_id ?? null);
    if (isSame && !(reusesTaskIds && known.runId === null && this.#tasks.hasEnded(known))) {
      // A start after a presumed end adds nothing: only a reported end corrects that.
      if (this.#tasks.verdict(known.key, input) !== 'begins') return this.#tasks.stateOf(known.key) !== 'hidden';
      this.#tasks.take(known.key, input);
    } else {
      const before = this.#tasks.find({ task_id: value.task_id });
      if (!reusesTaskIds && before !== undefined && this.#tasks.isOpen(before.key)) this.#lose(before, BEGUN_ANEW);
      const crowded = this.#tasks.about(this.#tasks.crowded ?? '');
      if (crowded !== undefined) this.#lose(crowded, TOO_MANY);
      this.#beginRun(value, input);
    }
    if (input === 'start') this.#emit(custom(CUSTOM.taskStarted, compact({ status: 'running', ...value })));
    return input === 'start';
  }

  #beginRun(value: TaskEventValue, input: 'start' | 'hide'): TaskRun {
    return this.#tasks.begin(value, input, { startedIn: this.#turn?.runId ?? null, startedAt: this.#now });
  }

  /** Whether a task was started here and has not ended. */
  runs(taskId: string): boolean {
    const run = this.#tasks.find({ task_id: taskId });
    return run !== undefined && this.#tasks.isOpen(run.key);
  }

  get openTasks(): string[] {
    return this.#tasks.running.map(({ id }) => id);
  }

  /** @returns false for a task that has ended or is hidden; one that is not known may have begun before this process */
  taskProgress(value: TaskEventValue): boolean {
    const run = this.#tasks.find(value);
    if (run !== undefined && this.#tasks.take(run.key, 'report') !== 'continues') return false;
    this.#emit(custom(CUSTOM.taskProgress, compact(value)));
    return true;
  }

  taskUpdated(value: TaskEventValue): void {
    this.#emit(custom(CUSTOM.taskUpdated, compact(value)));
  }

  /**
   * Writes the end of a task, once.
   * @param isGuess the agent did not report the end: a later report counts
   * @returns whether it is new
   */
  taskCompleted(value: TaskEventValue & { status: TaskEnd }, isGuess = value.status === 'lost'): boolean {
    // The start of an unknown task was lost.
    const run = this.#tasks.find(value) ?? this.#beginRun(value, 'start');
    if (!ENDS.has(this.#tasks.take(run.key, isGuess ? 'presume' : 'end'))) return false;
    for (const speaker of this.#speakers.values()) {
      if (speaker.taskId !== value.task_id) continue;
      if (isGuess) speaker.close();
      else speaker.retire();
    }
    this.#emit(custom(CUSTOM.taskCompleted, compact({ ...value, run_id: run.runId })));
    return true;
  }

  #lose({ id, runId }: TaskRun, error: string): void {
    this.taskCompleted({ task_id: id, run_id: runId, status: 'lost', error });
  }

  /** The agent waits for a person. @param outlivesTurn asked by a subagent, or between turns */
  requested(value: RequestOpenedValue, outlivesTurn = this.#turn === null): void {
    const crowded = this.#requests.isOpen(value.request_id) ? null : this.#requests.crowded;
    if (crowded !== null) this.resolved(crowded, 'unknown', TOO_MANY);
    this.#asked(value.request_id, value.kind, outlivesTurn);
    this.#emit(custom(CUSTOM.requestOpened, compact(value)));
  }

  #asked(id: string, kind: RequestAbout['kind'], outlivesTurn: boolean): void {
    this.#requests.take(id, 'ask', { outlivesTurn, kind, askedIn: this.#turn?.runId ?? null });
  }

  /** The agent went on before an answer was seen, which may still be reported. */
  passed(id: string): void {
    if (this.#requests.take(id, 'pass') === 'ends') this.#resolve(id, 'unknown', null);
  }

  /** Writes how a request ended, if it is open or passed. */
  resolved(id: string, outcome: RequestResolvedValue['outcome'], message: string | null = null): void {
    const isAnswer = outcome !== 'unknown' && outcome !== 'cancelled';
    if (ENDS.has(this.#requests.take(id, isAnswer ? 'answer' : 'cut'))) this.#resolve(id, outcome, message);
  }

  #resolve(id: string, outcome: RequestResolvedValue['outcome'], message: string | null): void {
    this.#emit(custom(CUSTOM.requestResolved, compact({ request_id: id, outcome, message })));
  }

  /** Writes the agent's current plan. */
  plan(id: string, entries: readonly PlanEntry[]): void {
    this.speaker().endText();
    this.#emit({ type: 'ACTIVITY_SNAPSHOT', messageId: id, activityType: 'plan', content: { entries }, replace: true });
  }

  notice(text: string, tone: 'info' | 'warning' | 'error' = 'info'): void {
    this.#emit(custom(CUSTOM.notice, { text: fittingText(text), tone }));
  }

  /** Writes an event about the agent's internals, which is stored but not shown. */
  custom(name: string, value: object): void {
    this.#emit(custom(name, value));
  }

  /** Passes on an AG-UI event that opens and ends nothing. */
  pass(event: AgUiEvent): void {
    this.#emit(event);
  }

  /** Writes a native message that the adapter does not understand. */
  raw(event: unknown, source: string): void {
    this.#emit({ type: 'RAW', event, source });
  }

  /** True from the end of the session to its next event. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * The process or connection is gone: closes the turn and all requests; tasks are lost.
   * @param keepsTasks background tasks are not children of the agent's process, and may go on
   */
  end(end: WireEnd, keepsTasks = false): void {
    if (this.#isOver) return;
    const message = `The agent ended in the middle of this turn: ${end.reason}.`;
    this.interrupt(end.isAsked === true ? { kind: 'cancelled' } : { kind: 'failed', message, code: 'agent_exited' });
    const lost = `The agent has gone (${end.reason}), and nothing told how this ended.`;
    if (!keepsTasks) for (const run of this.#tasks.running) this.#lose(run, lost);
    this.over(end, 'The agent has gone');
  }

  /** Ends all open requests, texts, calls and the turn with the agent's process. @param end how the open turn ends */
  interrupt(end: TurnEnd): void {
    for (const id of this.#requests.open) this.resolved(id, 'cancelled');
    this.finish(end);
    this.#turns.take(TURN, 'gone');
    for (const speaker of this.#speakers.values()) speaker.close();
  }

  /** Writes the end of a process whose open work has ended. @param what happened, if the session goes on */
  over({ reason, exitCode, signal, goesOn }: WireEnd, what: string): void {
    if (goesOn === undefined) this.#emit(custom(CUSTOM.sessionEnded, compact({ reason, exitCode, signal })));
    else this.notice(`${what} (${reason}). ${goesOn}`, 'warning');
    this.#isOver = true;
  }

  #emit(event: AgUiEvent): void {
    this.#isOver = false;
    this.#out.push({ sessionId: this.sessionId, occurredAt: this.#now, event: fittingEvent(event) });
  }
}

const MAIN = '';
/** The id of the one turn that is open at a time. */
const TURN = '';
const ENDS: ReadonlySet<Verdict> = new Set(['ends', 'corrects']);
const TOO_MANY = 'Too many are open at once: this one is not followed any more.';
const BEGUN_ANEW = 'The agent began it anew without saying how this ended.';
