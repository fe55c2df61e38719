import {
  type AgUiEvent,
  CUSTOM,
  type PlanEntry,
  type RequestOpenedValue,
  type RequestResolvedValue,
  type TaskEventValue,
  type TurnTrigger,
} from '@/lib/protocol/ag-ui';
import { compact } from '@/lib/protocol/fields';
import { Entities } from '@/lib/protocol/lifecycle/entities';
import { custom } from '../emit';
import { remember } from '../remember';
import type { ToldEvent, WireEnd } from '../wire';
import { fittingEvent } from './fitting-event';
import { deltasOf, fittingText } from './long-text';
import { Speaker } from './speaker';

export type TurnCause =
  | { kind: 'user'; userMessageIds: readonly string[] }
  | { kind: 'between-run'; trigger: TurnTrigger; parentRunId?: string | null };

export type TurnEnd = { kind: 'success' } | { kind: 'cancelled' } | { kind: 'failed'; message: string; code?: string };

export interface OpenTurn {
  readonly runId: string;
  readonly kind: TurnCause['kind'];
  /** It has said or done something. */
  readonly spoke: boolean;
}

/** What was told, and not ended, by a process that was killed; its agent has gone on. */
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
}

interface TaskRun {
  id: string;
  runId: string | null;
  startedIn: string | null;
}

/** Most subagents whose words are told apart, and most open tasks and requests that are known. */
const MAX_KNOWN = 1_000;

/**
 * What happens in one session, as AG-UI events in their order: the part that is the same for every kind of agent. The
 * adapter decides what a native message means; that turns open and close, that nothing is left open inside of one, that
 * nothing is told twice and every record has a size that the server takes, is decided here.
 *
 * Ordering: what was told since the last `take` leaves in the order of the calls, with the time of its call.
 */
export class SessionWriter {
  readonly sessionId: string;
  readonly #newRunId: () => string;
  readonly #isReplay: boolean;
  readonly #speakers = new Map<string, Speaker>();
  /** Background tasks, by id and run. */
  readonly #tasks = new Entities<'task', TaskRun>('task', { mostOpen: MAX_KNOWN, mostEnded: MAX_KNOWN });
  /** The newest run of each task, by the task's id. */
  readonly #runs = new Map<string, string | null>();
  readonly #requests = new Entities<'request', { outlivesTurn: boolean }>('request', {
    mostOpen: MAX_KNOWN,
    mostEnded: MAX_KNOWN,
  });
  /** Messages that were given, each once. */
  readonly #told = new Map<string, true>();
  #turn: { runId: string; cause: TurnCause; answers: Set<string>; spoke: boolean } | null = null;
  #now = 0;
  #out: ToldEvent[] = [];
  #ended = false;

  constructor({ sessionId, newRunId, isReplay = false }: SessionWriterOptions) {
    this.sessionId = sessionId;
    this.#newRunId = newRunId;
    this.#isReplay = isReplay;
  }

  /** The time of what is told from here on, epoch milliseconds. */
  at(now: number): void {
    this.#now = now;
  }

  /** What was told since it was asked last. */
  take(): ToldEvent[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  get turn(): OpenTurn | null {
    if (this.#turn === null) return null;
    const { runId, cause, spoke } = this.#turn;
    return { runId, kind: cause.kind, spoke };
  }

  /** Goes on where the process before this one stood: nothing of that is told again, and its ends are told here. */
  takeUp({ turn, tasks, requests, ...said }: OpenBefore): void {
    if (turn !== null) {
      const { runId, cause } = turn;
      this.#turn = { runId, cause, answers: new Set(cause.kind === 'user' ? cause.userMessageIds : []), spoke: false };
    }
    for (const { id, runId } of tasks) this.#begins(id, runId, null);
    for (const id of requests) this.#requests.take(id, 'ask', { outlivesTurn: turn === null });
    this.speaker().takeUp(said);
  }

  /** Begins a turn. One that is open ends first: nobody said how. */
  begin(cause: TurnCause, runId = this.#newRunId()): void {
    if (this.#turn !== null) this.finish({ kind: 'success' }, { isInferred: true });
    const answers = new Set(cause.kind === 'user' ? cause.userMessageIds : []);
    this.#turn = { runId, cause, answers, spoke: false };
    const { trigger = undefined, parentRunId = null } = cause.kind === 'user' ? {} : cause;
    const parent =
      parentRunId ??
      trigger?.taskIds.map((id) => (this.runs(id) ? this.#latest(id)?.startedIn : null)).find(Boolean) ??
      null;
    this.#emit({
      type: 'RUN_STARTED',
      threadId: this.sessionId,
      runId,
      ...compact({ parentRunId: parent }),
      metadata: {
        interlude: { turn: cause.kind, ...(trigger === undefined ? {} : { trigger }), userMessageIds: [...answers] },
      },
    });
  }

  /** Further messages that the open turn answers. */
  answers(userMessageIds: readonly string[]): void {
    for (const id of userMessageIds) this.#turn?.answers.add(id);
  }

  /** What woke the open turn, as it is known by now. */
  wokenBy(trigger: TurnTrigger): void {
    if (this.#turn?.cause.kind === 'between-run') this.#turn.cause = { ...this.#turn.cause, trigger };
  }

  /**
   * Ends the open turn and what is open in it.
   * @param about `isInferred`: the agent did not say that it ended; `result`: what is kept of it with the turn
   */
  finish(end: TurnEnd, about: { isInferred?: boolean; result?: object } = {}): void {
    const turn = this.#turn;
    if (turn === null) return;
    for (const [name, speaker] of this.#speakers) {
      if (name === MAIN) speaker.close();
      else speaker.endText();
    }
    for (const [id, { outlivesTurn }] of this.#requests.entries())
      if (!outlivesTurn) this.resolved(id, end.kind === 'success' ? 'unknown' : 'cancelled');
    const { runId, cause, answers } = turn;
    const { isInferred = false, result } = about;
    const common = {
      threadId: this.sessionId,
      runId,
      ...(result === undefined ? {} : { result }),
      metadata: {
        interlude: {
          ...(cause.kind === 'user' ? {} : { trigger: cause.trigger }),
          userMessageIds: [...answers],
          ...(isInferred ? { inferred: true as const } : {}),
        },
      },
    };
    if (end.kind === 'failed') {
      this.#emit({ ...common, type: 'RUN_ERROR', message: end.message, ...compact({ code: end.code }) });
    } else this.#emit({ ...common, type: 'RUN_FINISHED', outcome: { type: end.kind } });
    this.#turn = null;
  }

  /**
   * Who speaks: the agent, or the subagent of a task.
   * @param taskId null: the agent itself
   */
  speaker(taskId: string | null = null): Speaker {
    const name = taskId ?? MAIN;
    const known = this.#speakers.get(name);
    if (known !== undefined) return known;
    const prefix = () => taskId ?? this.#turn?.runId ?? this.sessionId;
    const isMain = taskId === null;
    const emit = (event: AgUiEvent) => {
      if (isMain && this.#turn !== null) this.#turn.spoke = true;
      this.#emit(event);
    };
    const speaker = new Speaker(emit, prefix, taskId);
    if (this.#speakers.size >= MAX_KNOWN) {
      const [oldest] = [...this.#speakers].find(([one]) => one !== MAIN) ?? [];
      if (oldest !== undefined) this.#speakers.get(oldest)?.close();
      if (oldest !== undefined) this.#speakers.delete(oldest);
    }
    this.#speakers.set(name, speaker);
    return speaker;
  }

  /** A message that somebody sent, other than through the dashboard. Told once. */
  userMessage(id: string, text: string, about: { name?: string; taskId?: string } = {}): void {
    if (this.#told.has(id) || text === '') return;
    remember(this.#told, id, true, MAX_KNOWN);
    const { name, taskId } = about;
    const mark = taskId === undefined ? {} : { subagentRunId: taskId };
    this.#emit({ type: 'TEXT_MESSAGE_START', messageId: id, role: 'user', ...compact({ name }), ...mark });
    for (const delta of deltasOf(text)) {
      this.#emit({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta, ...mark });
    }
    this.#emit({ type: 'TEXT_MESSAGE_END', messageId: id, ...mark });
  }

  /** A message of the dashboard. The log has it already, so it is not told again; that of a replay has nothing yet. */
  dashboardMessage(id: string, text: string, about: { taskId?: string } = {}): void {
    if (this.#isReplay) this.userMessage(id, text, about);
    remember(this.#told, id, true, MAX_KNOWN);
  }

  /** The start of a task, told once: an agent that uses an id again names the run. */
  taskStarted(value: TaskEventValue): void {
    const { task_id: id, run_id: runId = null } = value;
    // A start after a presumed end adds nothing: only a reported end corrects that.
    if (this.#tasks.verdict(keyOf(id, runId), 'start') !== 'begins') return;
    const before = this.#latest(id);
    if (before !== undefined && this.#tasks.isOpen(keyOf(id, before.runId)))
      this.taskCompleted({ task_id: id, ...compact({ run_id: before.runId }), status: 'lost', error: BEGUN_ANEW });
    const crowded = this.#tasks.crowded;
    if (crowded !== null) this.#lose(this.#tasks.about(crowded) as TaskRun, TOO_MANY);
    this.#begins(id, runId, this.#turn?.runId ?? null);
    this.#emit(custom(CUSTOM.taskStarted, compact({ status: 'running', ...value })));
  }

  /** Whether a task was started here and has not ended. */
  runs(taskId: string): boolean {
    const runId = this.#runs.get(taskId);
    return runId !== undefined && this.#tasks.isOpen(keyOf(taskId, runId));
  }

  get openTasks(): string[] {
    return this.#tasks.entries().map(([, { id }]) => id);
  }

  taskProgress(value: TaskEventValue): void {
    this.#emit(custom(CUSTOM.taskProgress, compact(value)));
  }

  taskUpdated(value: TaskEventValue): void {
    this.#emit(custom(CUSTOM.taskUpdated, compact(value)));
  }

  /** The end of a task, told once. */
  taskCompleted(value: TaskEventValue & { status: 'completed' | 'failed' | 'stopped' | 'lost' }): void {
    const { task_id: id } = value;
    const runId = value.run_id ?? this.#runs.get(id) ?? null;
    const key = keyOf(id, runId);
    // A loss is a guess, also of a task whose start was not seen: what is reported later counts.
    const isGuess = value.status === 'lost';
    const run = this.#tasks.about(key) ?? { id, runId, startedIn: null };
    if (isGuess && this.#tasks.stateOf(key) === 'new') this.#tasks.take(key, 'start', run);
    if (this.#tasks.take(key, isGuess ? 'presume' : 'end', run) === 'repeats') return;
    this.#speakers.get(value.task_id)?.close();
    this.#emit(custom(CUSTOM.taskCompleted, compact({ ...value, run_id: runId })));
  }

  /** The agent waits for a person. @param outlivesTurn asked by a subagent, or between turns */
  requested(value: RequestOpenedValue, outlivesTurn = this.#turn === null): void {
    const crowded = this.#requests.isOpen(value.request_id) ? null : this.#requests.crowded;
    if (crowded !== null) this.resolved(crowded, 'unknown', TOO_MANY);
    this.#requests.take(value.request_id, 'ask', { outlivesTurn });
    this.#emit(custom(CUSTOM.requestOpened, compact(value)));
  }

  isRequested(id: string): boolean {
    return this.#requests.isOpen(id);
  }

  /** How a request ended; nothing for one that is not open. */
  resolved(id: string, outcome: RequestResolvedValue['outcome'], message: string | null = null): void {
    if (this.#requests.take(id, 'answer') !== 'ends') return;
    this.#emit(custom(CUSTOM.requestResolved, compact({ request_id: id, outcome, message })));
  }

  /** What the agent means to do, as it stands now. */
  plan(id: string, entries: readonly PlanEntry[]): void {
    this.speaker().endText();
    this.#emit({ type: 'ACTIVITY_SNAPSHOT', messageId: id, activityType: 'plan', content: { entries }, replace: true });
  }

  notice(text: string, tone: 'info' | 'warning' | 'error' = 'info'): void {
    this.#emit(custom(CUSTOM.notice, { text: fittingText(text), tone }));
  }

  /** About the agent's workings: kept, and not shown. */
  custom(name: string, value: object): void {
    this.#emit(custom(name, value));
  }

  /** An event that its agent tells as AG-UI, and that begins and ends nothing that is followed here. */
  pass(event: AgUiEvent): void {
    this.#emit(event);
  }

  /** What nobody here understands, whole. */
  raw(event: unknown, source: string): void {
    this.#emit({ type: 'RAW', event, source });
  }

  /**
   * The process or connection is gone: closes the turn and all requests; tasks are lost.
   * @param keepsTasks what ran in the background is not the agent's child, and may go on
   */
  end({ reason, exitCode, signal, isAsked = false, goesOn }: WireEnd, keepsTasks = false): void {
    if (this.#ended) return;
    for (const id of this.#requests.open) this.resolved(id, 'cancelled');
    this.finish(
      isAsked
        ? { kind: 'cancelled' }
        : { kind: 'failed', message: `The agent ended in the middle of this turn: ${reason}.`, code: 'agent_exited' },
    );
    for (const speaker of this.#speakers.values()) speaker.close();
    const error = `The agent has gone (${reason}), and nothing told how this ended.`;
    if (!keepsTasks) for (const [, run] of this.#tasks.entries()) this.#lose(run, error);
    if (goesOn === undefined) this.#emit(custom(CUSTOM.sessionEnded, compact({ reason, exitCode, signal })));
    else this.notice(`The agent has gone (${reason}). ${goesOn}`, 'warning');
    this.#ended = true;
  }

  #begins(id: string, runId: string | null, startedIn: string | null): void {
    this.#tasks.take(keyOf(id, runId), 'start', { id, runId, startedIn });
    remember(this.#runs, id, runId, 2 * MAX_KNOWN);
  }

  #latest(id: string): TaskRun | undefined {
    const runId = this.#runs.get(id);
    return runId === undefined ? undefined : this.#tasks.about(keyOf(id, runId));
  }

  #lose({ id, runId }: TaskRun, error: string): void {
    this.taskCompleted({ task_id: id, run_id: runId, status: 'lost', error });
  }

  #emit(event: AgUiEvent): void {
    this.#ended = false;
    this.#out.push({ sessionId: this.sessionId, occurredAt: this.#now, event: fittingEvent(event) });
  }
}

const MAIN = '';
const TOO_MANY = 'Too many are open at once: this one is not followed any more.';
const BEGUN_ANEW = 'The agent began it anew without saying how this ended.';

function keyOf(taskId: string, runId: string | null): string {
  return JSON.stringify([taskId, runId]);
}
