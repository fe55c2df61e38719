import type { AgUiEvent, TimedEvent } from '../ag-ui';
import { CUSTOM, contentText, customValue, pickText } from '../event-fields';
import { compact, textOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { type EventInput, endsSession, inputsOf } from './event-inputs';
import { Entities, GRAMMAR, type TurnState, type Verdict } from './grammar';

/** A running background task. */
export interface OpenTask {
  id: string;
  runId: string | null;
  description: string;
}

/** Open work that outlives a process: JSON. */
export interface OpenWork {
  turn: { runId: string; userMessageIds: string[] } | null;
  tasks: OpenTask[];
  requests: string[];
}

export const NOTHING_OPEN: OpenWork = { turn: null, tasks: [], requests: [] };

/** A tool call without a result. */
export interface OpenCall {
  id: string;
  /** In the agent's words: `mcp__interlude__reply`, `report_status (interlude MCP Server)`. */
  name: string;
  /** The JSON streamed so far; null beyond the bounds. */
  args: string | null;
  /** The task whose subagent calls; null: the agent itself. */
  by: string | null;
}

/** Bounds of the tracked calls. */
export interface CallBounds {
  most: number;
  /** Remembered ended calls, whose repeated start is late. */
  mostEnded: number;
  /** Longest arguments of one call, and of all calls together, in UTF-16 code units. */
  maxArgs: number;
  maxAllArgs: number;
  /** Calls to evict last. Of the others, the oldest is evicted first. */
  stays: (call: OpenCall) => boolean;
}

const FEW_CALLS: CallBounds = {
  most: 128,
  mostEnded: 0,
  maxArgs: Number.POSITIVE_INFINITY,
  maxAllArgs: Number.POSITIVE_INFINITY,
  stays: () => false,
};
/** Maximum number of tracked tasks and requests. */
const MOST = { tasks: 10_000, requests: 1_000 };

/** The step of an event for the open turn. @param openId null: none is open */
export function turnStep(openId: string | null, { id, input }: EventInput<'turn'>): readonly [TurnState, Verdict] {
  if (openId === null) return GRAMMAR.turn.none[input];
  if (input === 'end' && id !== null && id !== openId) return GRAMMAR.turn.open['foreign-end'];
  // The repeated start of the turn.
  if (input === 'begin' && id === openId) return GRAMMAR.turn.open.join;
  return GRAMMAR.turn.open[input];
}

/**
 * The open turn, calls, tasks and requests of one session, folded from its AG-UI events by the grammar. The end of a
 * turn cuts the calls of its agent, the end of a task cuts those of its subagent, and the end of the session cuts
 * everything.
 *
 * Ordering: pass events in session order.
 *
 * @example
 * const session = new OpenSession();
 * session.take({ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' });
 * session.work; // { turn: { runId: 'r1', userMessageIds: [] }, tasks: [], requests: [] }
 */
export class OpenSession {
  #work: OpenWork | null;
  #turn: OpenWork['turn'];
  readonly #bounds: CallBounds;
  readonly #calls: Entities<'call', OpenCall>;
  readonly #tasks = new Entities<'task', OpenTask>('task', { mostOpen: MOST.tasks, mostEnded: 0 });
  readonly #requests = new Entities('request', { mostOpen: MOST.requests, mostEnded: 0 });

  /** @param work open work before the first event @param calls open calls before it */
  constructor(work: OpenWork = NOTHING_OPEN, calls: readonly OpenCall[] = [], bounds = FEW_CALLS) {
    this.#work = work;
    this.#turn = work.turn;
    this.#bounds = bounds;
    this.#calls = new Entities('call', { mostOpen: bounds.most, mostEnded: bounds.mostEnded });
    for (const call of calls) this.#calls.take(call.id, 'start', call);
    for (const task of work.tasks) this.#tasks.take(keyOf(task), 'start', task);
    for (const id of work.requests) this.#requests.take(id, 'ask');
  }

  /** The same object until something in it changes. */
  get work(): OpenWork {
    this.#work ??= {
      turn: this.#turn,
      tasks: this.#tasks.entries().map(([, task]) => task),
      requests: this.#requests.open,
    };
    return this.#work;
  }

  /** Oldest first. */
  get calls(): OpenCall[] {
    return this.#calls.entries().map(([, call]) => call);
  }

  /** @param inputs the tracked inputs of the event */
  take(event: AgUiEvent, inputs: readonly EventInput[] = inputsOf(event)): void {
    if (endsSession(event)) this.#cutAll(event);
    for (const input of inputs) {
      if (input.kind === 'turn') this.#applyTurn(input, event);
      else if (input.kind === 'call') this.#applyCall(input, event);
      else if (input.kind === 'task') this.#applyTask(input, event);
      else if (input.kind === 'request') this.#applyRequest(input);
    }
  }

  get endedCallIds(): string[] {
    return this.#calls.ended;
  }

  /** Ends a call as if its result had arrived, even before its start. */
  endCall(id: string): void {
    if (this.#calls.stateOf(id) === 'new') this.#calls.take(id, 'start', { id, name: '', args: null, by: null });
    this.#calls.take(id, 'result');
  }

  /** Forgets an open call, so that its id can be reused. */
  forgetCall(id: string): void {
    if (this.#calls.isOpen(id)) this.#calls.forget(id);
  }

  #applyTurn(step: EventInput<'turn'>, event: AgUiEvent): void {
    const [next, verdict] = turnStep(this.#turn?.runId ?? null, step);
    if (verdict === 'stray') return;
    // The start of a turn cuts only the previous turn.
    if (step.input !== 'begin' || verdict === 'late') this.#cutCalls((by) => by === null);
    if (this.#turn === null && next === 'none') return;
    const { userMessageIds = [] } = readInterlude(event);
    this.#turn = next === 'none' ? null : { runId: step.id ?? '', userMessageIds };
    this.#work = null;
  }

  #applyCall({ id, input, by }: EventInput<'call'>, event: AgUiEvent): void {
    if (input === 'start') this.#startCall(id, event, by);
    else if (this.#calls.take(id, input) === 'continues' && input === 'args') this.#addArgs(id, event);
  }

  /** Starts a call. A chunk continues its call; a start while the call is open restarts its arguments. */
  #startCall(id: string, event: AgUiEvent, by: string | null): void {
    const name = textOf(event.toolCallName);
    const verdict = this.#calls.verdict(id, 'start');
    if (name === null || verdict === 'late' || (verdict === 'repeats' && event.type === 'TOOL_CALL_CHUNK')) return;
    const { crowded } = this.#calls;
    if (verdict === 'begins' && crowded !== null) {
      this.#calls.forget(this.calls.find((call) => !this.#bounds.stays(call))?.id ?? crowded);
    }
    this.#calls.take(id, 'start', { id, name, args: '', by });
  }

  #addArgs(id: string, event: AgUiEvent): void {
    const call = this.#calls.about(id);
    if (call === undefined) return;
    const delta = contentText(event.delta);
    const args = readInterlude(event).whole === true ? delta : call.args === null ? null : call.args + delta;
    const others = this.calls.reduce((sum, one) => (one.id === id ? sum : sum + (one.args?.length ?? 0)), 0);
    const { maxArgs, maxAllArgs } = this.#bounds;
    const isTooLong = args !== null && (args.length > maxArgs || args.length + others > maxAllArgs);
    this.#calls.take(id, 'args', { ...call, args: isTooLong ? null : args });
  }

  /**
   * Applies a task event. A starting run replaces one with the same name; an end without a run ends all runs of the
   * task.
   */
  #applyTask({ id, input, runId }: EventInput<'task'>, event: AgUiEvent): void {
    const runs = this.#tasks.entries().filter(([, one]) => isSame(one, { id, runId }));
    for (const [key] of runs) {
      if (input === 'start') this.#tasks.forget(key);
      else if (this.#tasks.take(key, input) === 'continues') continue;
      this.#work = null;
    }
    if (input === 'report') return;
    if (input !== 'start') this.#cutCalls((by) => by !== null && (by === id || by === runId));
    else if (this.#tasks.crowded === null) {
      const task = { id, runId, description: pickText(customValue(event), 'description') ?? id };
      this.#tasks.take(keyOf(task), 'start', task);
      this.#work = null;
    }
  }

  #applyRequest({ id, input }: EventInput<'request'>): void {
    if (input === 'ask' && this.#requests.crowded !== null) return;
    const verdict = this.#requests.take(id, input);
    if (verdict === 'begins' || verdict === 'ends') this.#work = null;
  }

  /** Forgets the calls: a later turn may reuse their ids. */
  #cutCalls(isCut: (by: string | null) => boolean): void {
    for (const { id, by } of this.calls) if (isCut(by)) this.#calls.forget(id);
  }

  #cutAll(event: AgUiEvent): void {
    this.#applyTurn({ kind: 'turn', id: null, input: 'gone', by: null, runId: null }, event);
    this.#cutCalls(() => true);
    for (const key of this.#tasks.open) this.#tasks.take(key, 'presume');
    for (const id of this.#requests.open) this.#requests.take(id, 'cut');
    this.#work = NOTHING_OPEN;
  }
}

/** Open work after further events. @returns the same object if nothing changed */
export function workAfter(work: OpenWork, events: readonly { event: AgUiEvent }[]): OpenWork {
  // Most events are text and are skipped: loading all open work for each text event would be slow.
  const moving = events.filter(({ event }) => endsSession(event) || inputsOf(event).some(isOfWork));
  if (moving.length === 0) return work;
  const session = new OpenSession(work);
  for (const { event } of moving) session.take(event);
  return session.work;
}

function isOfWork({ kind }: EventInput): boolean {
  return kind === 'turn' || kind === 'task' || kind === 'request';
}

export function isNothing({ turn, tasks, requests }: OpenWork): boolean {
  return turn === null && tasks.length === 0 && requests.length === 0;
}

/** Events that end open work after its runner is gone. @param occurredAt epoch milliseconds */
export function endsOf(work: OpenWork, sessionId: string, occurredAt: number): TimedEvent[] {
  const ends: AgUiEvent[] = [
    ...work.requests.map((id) => custom(CUSTOM.requestResolved, { request_id: id, outcome: 'cancelled' })),
    ...(work.turn === null ? [] : [{ ...EXITED, threadId: sessionId, runId: work.turn.runId }]),
    ...work.tasks.map(({ id, runId }) =>
      custom(CUSTOM.taskCompleted, compact({ task_id: id, run_id: runId, ...LOST })),
    ),
  ];
  return ends.map((event) => ({ occurredAt, event }));
}

const EXITED = { type: 'RUN_ERROR', message: 'The runner ended in the middle of this turn.', code: 'runner_exited' };
const LOST = { status: 'lost', error: 'The runner ended while this task was running; its outcome is unknown.' };

function custom(name: string, value: object): AgUiEvent {
  return { type: 'CUSTOM', name, value };
}

function keyOf({ id, runId }: Pick<OpenTask, 'id' | 'runId'>): string {
  return JSON.stringify([id, runId]);
}

function isSame(one: Pick<OpenTask, 'id' | 'runId'>, other: Pick<OpenTask, 'id' | 'runId'>): boolean {
  return one.id === other.id && (one.runId === null || other.runId === null || one.runId === other.runId);
}
