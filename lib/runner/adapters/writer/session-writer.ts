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
import type { EmittedEvent, WireEnd } from '../wire';
import { setBounded } from '../wire';
import { PartAssembler } from './part-assembler';
import { custom, ofTask, type UserMessageOptions, userMessage } from './part-events';
import { boundEvent, truncateWithNote } from './size-limits';
import { type TaskRun, TaskRuns } from './task-runs';

export type TurnCause =
  /** `trigger`: the timer that started the turn before a message joined it. */
  | { kind: 'user'; userMessageIds: readonly string[]; trigger?: TurnTrigger | undefined }
  | { kind: 'between-run'; trigger: TurnTrigger; parentRunId?: string | null };

export type TurnEnd = { kind: 'success' } | { kind: 'cancelled' } | { kind: 'failed'; message: string; code?: string };

export interface OpenTurn {
  readonly runId: string;
  readonly kind: TurnCause['kind'];
  /** True if the agent has produced content in this turn. */
  readonly hasContent: boolean;
  /** User messages the turn answers. */
  readonly answers: ReadonlySet<string>;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

export interface TurnDetails {
  /** True if the agent did not report the end. */
  isInferred?: boolean;
  /** Stored with the turn. */
  result?: object | undefined;
  /** Final cause, if it differs from the initial one. */
  trigger?: TurnTrigger;
  /** Ended tasks the turn reported without being started by them. */
  foldedTaskIds?: string[];
}

/** Open work of a killed process whose agent continues. */
interface InterruptedWork {
  turn: { runId: string; cause: TurnCause } | null;
  tasks: readonly { id: string; runId: string | null }[];
  requests: readonly string[];
  /** The agent's ids. */
  texts: readonly string[];
  thoughts: readonly string[];
  calls: readonly string[];
}

export interface SessionWriterOptions {
  sessionId: string;
  newRunId: () => string;
  isReplay?: boolean | undefined;
  /** True if the agent reuses task ids for further runs, possibly while an earlier run is open. */
  reusesTaskIds?: boolean;
  /** True if subagent texts stay open past the end of a turn, until their task ends. */
  subagentTextsStayOpen?: boolean;
  /** Outcome of a turn that was open when the next one began. Defaults to success. */
  unfinished?: TurnEnd;
  /** Called before any turn ends. @returns the final details */
  beforeTurnEnds?: (end: TurnEnd, about: TurnDetails) => TurnDetails;
}

interface RequestDetails {
  outlivesTurn: boolean;
  /** Run id of the turn open at the time. */
  openedIn: string | null;
  kind: RequestOpenedValue['kind'];
}

interface Turn {
  runId: string;
  cause: TurnCause;
  answers: Set<string>;
  hasContent: boolean;
  startedAt: number;
}

/** Limit for assemblers, open tasks and open requests. */
const MAX_KNOWN = 1_000;
const MAX_PLAN_ENTRIES = 200;
const MAX = { mostOpen: MAX_KNOWN, mostEnded: MAX_KNOWN };

/**
 * Writes one session as AG-UI events, for every agent kind. The adapter decides what a native message means; the writer
 * opens and closes turns, closes everything inside a turn with it, drops duplicates, and bounds each record.
 *
 * Ordering: `take` returns events in call order, each with the time set by `at`.
 * Failure: never throws. Beyond a limit the oldest open item ends as lost or unknown.
 */
export class SessionWriter {
  readonly sessionId: string;
  readonly #options: SessionWriterOptions;
  readonly #assemblers = new Map<string, PartAssembler>();
  readonly #turns = new Entities<'turn', Turn>('turn', { mostOpen: 1, mostEnded: 1 });
  readonly #tasks = new TaskRuns(MAX);
  readonly #requests = new Entities<'request', RequestDetails>('request', MAX);
  /** Read access; only the writer's methods change state. */
  readonly tasks: Pick<TaskRuns, 'find' | 'newest' | 'running' | 'stateOf'> = this.#tasks;
  readonly requests: Pick<Entities<'request', RequestDetails>, 'open' | 'isOpen' | 'stateOf' | 'about'> =
    this.#requests;
  readonly #loggedMessages = new Map<string, true>();
  #now = 0;
  #out: EmittedEvent[] = [];
  #hasEnded = false;

  constructor(options: SessionWriterOptions) {
    this.sessionId = options.sessionId;
    this.#options = options;
  }

  /** Sets the time of the next events, epoch milliseconds. */
  at(now: number): void {
    this.#now = now;
  }

  /** Returns and clears the pending events. */
  drain(): EmittedEvent[] {
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

  /** Continues open work of an earlier process: its starts are in the log, only its ends are written. */
  resume({ turn, tasks, requests, ...parts }: InterruptedWork): void {
    if (turn !== null) this.#turns.take(TURN, 'begin', this.#newTurn(turn.cause, turn.runId));
    for (const { id, runId } of tasks)
      this.#tasks.begin({ task_id: id, run_id: runId ?? undefined }, 'start', {
        startedIn: null,
        startedAt: this.#now,
      });
    for (const id of requests) this.#addRequest(id, 'permission', turn === null);
    this.parts().resume(parts);
  }

  /** Begins a turn, ending an open one as `unfinished`. */
  begin(cause: TurnCause, runId?: string): void {
    this.applyTurnInput('begin', () => cause, runId);
  }

  /**
   * Applies an input to the turn state machine, and begins a turn with `cause` if the grammar requires one. `end` only
   * begins a turn whose start was missed; `finish` ends it.
   */
  applyTurnInput(input: Exclude<TurnInput, 'gone'>, cause: () => TurnCause, runId?: string): Verdict {
    if (this.#turns.verdict(TURN, input) === 'late') {
      const { unfinished = { kind: 'success' } } = this.#options;
      this.finish(unfinished, unfinished.kind === 'success' ? { isInferred: true } : {});
    }
    const verdict = this.#turns.verdict(TURN, input);
    if (verdict === 'begins') this.#begin(cause(), runId ?? this.#options.newRunId());
    else if (input !== 'end') this.#turns.take(TURN, input);
    if (input === 'content' && this.#turn !== null) this.#turn.hasContent = true;
    return verdict;
  }

  /** Adds messages to the open turn and rewrites its start as a user turn. */
  joinTurn(userMessageIds: readonly string[]): void {
    const cause = { kind: 'user', userMessageIds } as const;
    const verdict = this.applyTurnInput('join', () => cause);
    const turn = this.#turn;
    if (turn === null || verdict !== 'continues') return;
    const { trigger } = turn.cause;
    turn.cause = trigger?.kind === 'timer' ? { ...cause, trigger } : cause;
    turn.startedAt = this.#now;
    this.addAnswered(userMessageIds);
    this.#writeTurnStart(turn);
  }

  #begin(cause: TurnCause, runId: string): void {
    const turn = this.#newTurn(cause, runId);
    this.#turns.take(TURN, 'begin', turn);
    this.#writeTurnStart(turn);
  }

  #newTurn(cause: TurnCause, runId: string): Turn {
    const answers = new Set(cause.kind === 'user' ? cause.userMessageIds : []);
    return { runId, cause, answers, hasContent: false, startedAt: this.#now };
  }

  #writeTurnStart({ runId, cause, answers }: Turn): void {
    const { trigger } = cause;
    const parentRunId = cause.kind === 'user' ? null : cause.parentRunId;
    const starter = (id: string) => (this.isRunning(id) ? this.#tasks.find({ task_id: id })?.startedIn : null);
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

  addAnswered(userMessageIds: readonly string[]): void {
    for (const id of userMessageIds) this.#turn?.answers.add(id);
  }

  /** Corrects the cause of the open between-run turn. */
  setTrigger(trigger: TurnTrigger): void {
    const turn = this.#turn;
    if (turn?.cause.kind === 'between-run') turn.cause = { ...turn.cause, trigger };
  }

  /** Ends the open turn and everything open in it. */
  finish(end: TurnEnd, about: TurnDetails = {}): void {
    const turn = this.#turn;
    if (turn === null) return;
    const known = this.#options.beforeTurnEnds?.(end, about) ?? about;
    const { isInferred = false, result, foldedTaskIds = [] } = known;
    for (const [name, parts] of this.#assemblers) {
      if (name === MAIN) parts.close();
      else if (this.#options.subagentTextsStayOpen !== true) parts.endText();
    }
    const isNormal = end.kind === 'success' || end === this.#options.unfinished;
    for (const [id, { outlivesTurn }] of this.#requests.entries())
      if (!outlivesTurn) this.resolved(id, isNormal ? 'unknown' : 'cancelled');
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
   * Returns the assembler of the agent, or of a task's subagent.
   * @param taskId null for the agent itself
   * @param runId run of the task, if the agent names it
   */
  parts(taskId: string | null = null, runId: string | null = null): PartAssembler {
    const name = runId === null ? (taskId ?? MAIN) : `${taskId}/${runId}`;
    const known = this.#assemblers.get(name);
    if (known !== undefined) return known;
    const prefix = () => (taskId === null ? (this.#turn?.runId ?? this.sessionId) : name);
    const emit = (event: AgUiEvent) => {
      if (taskId === null && this.#turn !== null) this.#turn.hasContent = true;
      this.#emit(event);
    };
    const parts = new PartAssembler(emit, prefix, taskId, runId);
    if (this.#assemblers.size >= MAX_KNOWN) {
      const [oldest] = [...this.#assemblers].find(([one]) => one !== MAIN) ?? [];
      if (oldest !== undefined) this.#assemblers.get(oldest)?.close();
      if (oldest !== undefined) this.#assemblers.delete(oldest);
    }
    this.#assemblers.set(name, parts);
    return parts;
  }

  /** Writes a message sent outside the dashboard, once. */
  userMessage(
    id: string,
    text: string,
    {
      taskId = null,
      runId = null,
      ...about
    }: UserMessageOptions & { taskId?: string | null; runId?: string | null } = {},
  ): void {
    if (this.#loggedMessages.has(id) || text === '') return;
    setBounded(this.#loggedMessages, id, true, MAX_KNOWN);
    for (const event of userMessage(id, text, about)) this.#emit(ofTask(event, taskId, runId));
  }

  /** Records a message sent through the dashboard. Writes it only in a replay, whose log is empty. */
  dashboardMessage(id: string, text: string, about: { taskId?: string } = {}): void {
    if (this.#options.isReplay === true) this.userMessage(id, text, about);
    setBounded(this.#loggedMessages, id, true, MAX_KNOWN);
  }

  /**
   * Writes the start of a task, once. An agent that reuses the id names the run.
   *
   * @param input `hide`: keep the task hidden until a later `start`
   * @returns true if the task is visible
   */
  taskStarted(value: TaskEventValue, input: 'start' | 'hide' = 'start'): boolean {
    const { reusesTaskIds = false } = this.#options;
    const known = this.#tasks.find(value);
    const isSame = known !== undefined && known.runId === (value.run_id ?? null);
    if (isSame && !(reusesTaskIds && known.runId === null && this.#tasks.hasEnded(known))) {
      // A start after a presumed end changes nothing: only a reported end corrects a presumed one.
      if (this.#tasks.verdict(known.key, input) !== 'begins') return this.#tasks.stateOf(known.key) !== 'hidden';
      this.#tasks.take(known.key, input);
    } else {
      const before = this.#tasks.find({ task_id: value.task_id });
      if (!reusesTaskIds && before !== undefined && this.#tasks.isOpen(before.key)) this.#loseTask(before, RESTARTED);
      const crowded = this.#tasks.about(this.#tasks.crowded ?? '');
      if (crowded !== undefined) this.#loseTask(crowded, TOO_MANY);
      this.#beginRun(value, input);
    }
    if (input === 'start') this.#emit(custom(CUSTOM.taskStarted, compact({ status: 'running', ...value })));
    return input === 'start';
  }

  #beginRun(value: TaskEventValue, input: 'start' | 'hide'): TaskRun {
    return this.#tasks.begin(value, input, { startedIn: this.#turn?.runId ?? null, startedAt: this.#now });
  }

  isRunning(taskId: string): boolean {
    const run = this.#tasks.find({ task_id: taskId });
    return run !== undefined && this.#tasks.isOpen(run.key);
  }

  get openTasks(): string[] {
    return this.#tasks.running.map(({ id }) => id);
  }

  /** @returns false for an ended or hidden task. An unknown task may have started before this process */
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
   * @param isGuess true if the agent did not report the end: a later report corrects it
   * @returns false for a duplicate
   */
  taskCompleted(value: TaskEventValue & { status: TaskEnd }, isGuess = value.status === 'lost'): boolean {
    const run = this.#tasks.find(value) ?? this.#beginRun(value, 'start');
    if (!ENDS.has(this.#tasks.take(run.key, isGuess ? 'presume' : 'end'))) return false;
    for (const parts of this.#assemblers.values()) {
      if (parts.taskId !== value.task_id) continue;
      if (isGuess) parts.close();
      else parts.releaseTexts();
    }
    this.#emit(custom(CUSTOM.taskCompleted, compact({ ...value, run_id: run.runId })));
    return true;
  }

  #loseTask({ id, runId }: TaskRun, error: string): void {
    this.taskCompleted({ task_id: id, run_id: runId, status: 'lost', error });
  }

  /** Opens a request. @param outlivesTurn true if a subagent asks, or no turn is open */
  requested(value: RequestOpenedValue, outlivesTurn = this.#turn === null): void {
    const crowded = this.#requests.isOpen(value.request_id) ? null : this.#requests.crowded;
    if (crowded !== null) this.resolved(crowded, 'unknown', TOO_MANY);
    this.#addRequest(value.request_id, value.kind, outlivesTurn);
    this.#emit(custom(CUSTOM.requestOpened, compact(value)));
  }

  #addRequest(id: string, kind: RequestDetails['kind'], outlivesTurn: boolean): void {
    this.#requests.take(id, 'ask', { outlivesTurn, kind, openedIn: this.#turn?.runId ?? null });
  }

  /** Closes a request that the agent moved past before an answer was seen. An answer may still be reported. */
  requestPassed(id: string): void {
    if (this.#requests.take(id, 'pass') === 'ends') this.#resolve(id, 'unknown', null);
  }

  /** Writes the outcome of an open or passed request. */
  resolved(id: string, outcome: RequestResolvedValue['outcome'], message: string | null = null): void {
    const isAnswer = outcome !== 'unknown' && outcome !== 'cancelled';
    if (ENDS.has(this.#requests.take(id, isAnswer ? 'answer' : 'cut'))) this.#resolve(id, outcome, message);
  }

  #resolve(id: string, outcome: RequestResolvedValue['outcome'], message: string | null): void {
    this.#emit(custom(CUSTOM.requestResolved, compact({ request_id: id, outcome, message })));
  }

  plan(id: string, entries: readonly PlanEntry[]): void {
    this.parts().endText();
    const content = { entries: entries.slice(0, MAX_PLAN_ENTRIES) };
    this.#emit({ type: 'ACTIVITY_SNAPSHOT', messageId: id, activityType: 'plan', content, replace: true });
  }

  notice(text: string, tone: 'info' | 'warning' | 'error' = 'info'): void {
    this.#emit(custom(CUSTOM.notice, { text: truncateWithNote(text), tone }));
  }

  /** Writes an internal event: stored, not shown. */
  custom(name: string, value: object): void {
    this.#emit(custom(name, value));
  }

  /** Forwards an AG-UI event that opens and closes nothing. */
  emit(event: AgUiEvent): void {
    this.#emit(event);
  }

  /** Writes a native message the adapter does not understand. */
  raw(event: unknown, source: string): void {
    this.#emit({ type: 'RAW', event, source });
  }

  /** True from the end of the process to the next event. */
  get isOver(): boolean {
    return this.#hasEnded;
  }

  /**
   * Closes everything with the process or connection: the turn fails, requests are cancelled, tasks are lost.
   * @param keepsTasks true if tasks outlive the agent's process
   */
  end(end: WireEnd, keepsTasks = false): void {
    if (this.#hasEnded) return;
    const message = `The agent exited during this turn: ${end.reason}.`;
    this.interrupt(end.isAsked === true ? { kind: 'cancelled' } : { kind: 'failed', message, code: 'agent_exited' });
    const lost = `The agent is gone (${end.reason}); the outcome is unknown.`;
    if (!keepsTasks) for (const run of this.#tasks.running) this.#loseTask(run, lost);
    this.processEnded(end, 'The agent is gone');
  }

  /** Closes requests, parts and the turn with the agent's process. */
  interrupt(end: TurnEnd): void {
    for (const id of this.#requests.open) this.resolved(id, 'cancelled');
    this.finish(end);
    this.#turns.take(TURN, 'gone');
    for (const parts of this.#assemblers.values()) parts.close();
  }

  /** Writes the end of the process. @param summary start of the notice if the session continues */
  processEnded({ reason, exitCode, signal, goesOn }: WireEnd, summary: string): void {
    if (goesOn === undefined) this.#emit(custom(CUSTOM.sessionEnded, compact({ reason, exitCode, signal })));
    else this.notice(`${summary} (${reason}). ${goesOn}`, 'warning');
    this.#hasEnded = true;
  }

  #emit(event: AgUiEvent): void {
    this.#hasEnded = false;
    this.#out.push({ sessionId: this.sessionId, occurredAt: this.#now, event: boundEvent(event) });
  }
}

const MAIN = '';
/** Key of the single open turn. */
const TURN = '';
const ENDS: ReadonlySet<Verdict> = new Set(['ends', 'corrects']);
const TOO_MANY = 'Too many open at once; this one is no longer tracked.';
const RESTARTED = 'Restarted by the agent; the outcome is unknown.';
