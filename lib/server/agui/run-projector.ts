import type { AgUiEvent, ServedRun } from '@interlude/protocol/ag-ui';
import { CUSTOM, customName, customValue, pickId, pickText } from '@interlude/protocol/event-fields';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { type EventInput, endsSession, inputsOf, kindOf } from '@interlude/protocol/lifecycle/event-inputs';
import { turnStep } from '@interlude/protocol/lifecycle/open-session';
import { comparePositions, type Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';

import { type Answers, type Awaited, AwaitedAnswer, turnStartOf } from './awaited-answer';
import { type ClientParts, isOfPart } from './client-parts';
import { DeferredEvents } from './deferred-events';
import { type PendingRequest, PendingRequests } from './interrupts';
import { TASK_ACTIVITY, type TaskActivities } from './task-activity';
import type { WellFormedStream } from './well-formed-stream';

export interface RunProjectorOptions extends Awaited {
  stream: WellFormedStream;
  parts: ClientParts;
  tasks: TaskActivities;
  /** The client's id for its run, which the answering run takes over. */
  runId: string;
  /** Other runs to show: `while-tasks-run` until nothing is in progress, `always` until `stopFollowing`. */
  follows: 'no' | 'while-tasks-run' | 'always';
  /** The turn that is open at the position where the read starts; null if the log is read from the turn's start. */
  openTurnId: string | null;
  /** Requests open at `asOf`, with those that this client has answered. */
  pending: readonly PendingRequest[];
  answered: readonly string[];
  /** Position of the snapshot in `tasks` and `pending`: earlier entries change neither. */
  asOf: Position;
  /** Up to this position, only messages, thoughts and calls are written, and only the parts that the client lacks. */
  knownUpTo: Position;
  /** The agent reports no turns, so any message is the answer. */
  isTurnless: boolean;
  /** No runner is connected. */
  isAway: boolean;
  /** CUSTOM events at the start of the client's run. */
  notices: readonly { name: string; value: unknown }[];
}

/** An open turn of the log, with its runs at the client. */
interface Turn {
  id: string;
  answers: Answers;
  isShown: boolean;
  named: readonly string[];
  /** An interrupt ends a run but not its turn, so a turn may have several. */
  runs: number;
  /** The turn's end in the log, deferred until the next event, because a request of the turn may follow. */
  ending: EventEntry | null;
}

/**
 * Projects a session's log into the runs of an AG-UI client. Pure: the caller passes the log and the timeouts.
 *
 * A turn that was open when the client sent its message does not count as the answer, and is written only if the client
 * follows. If the turn's end shows that it answered the message, the caller reads the turn again (`rereads`).
 *
 * Ordering: one run at a time, in the order of the turns.
 * Failure: a run that can't continue ends with RUN_ERROR and a message, never with a plain end.
 */
export class RunProjector {
  readonly #options: RunProjectorOptions;
  readonly #stream: WellFormedStream;
  readonly #deferred: DeferredEvents;
  readonly #answer: AwaitedAnswer;
  readonly #requests: PendingRequests;
  /** The open turn of the log. */
  #turn: Turn | null;
  #hasOwnRun = false;
  /** Interrupts with which the last run ended. */
  #interruptIds: readonly string[] = [];
  #isAway: boolean;
  #hasStoppedFollowing = false;
  #isCaughtUp = false;
  #isOver = false;
  #rereads: string | null = null;

  constructor(options: RunProjectorOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#deferred = new DeferredEvents(options.parts);
    this.#answer = new AwaitedAnswer(options);
    this.#isAway = options.isAway;
    this.#requests = new PendingRequests(options.pending, options.answered);
    const { openTurnId: open } = options;
    this.#turn = open === null ? null : this.#turnOf(open, this.#answer.isIn(open) ? 'yes' : 'no');
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The turn that the caller must read again from its start. */
  get rereads(): string | null {
    return this.#rereads;
  }

  /** The timeout that applies now. */
  get waitsFor(): 'nothing' | 'runner' | 'next-turn' {
    if (this.#isOver || this.#options.follows === 'always') return 'nothing';
    if (this.#isAway && (this.#answer.isPending || this.#turn !== null)) return 'runner';
    const isIdle = this.#isCaughtUp && !this.#answer.isPending && this.#turn === null;
    return isIdle && !this.#options.tasks.isAnyRunning() ? 'next-turn' : 'nothing';
  }

  /** Writes the history as the client's own run. Call it before `project`. */
  projectHistory(history: readonly object[]): void {
    this.#beginOwn(undefined, { turn: 'none' });
    this.#stream.messages(history);
    for (const { messageId, content } of this.#options.tasks.running()) {
      this.#stream.activity(messageId, TASK_ACTIVITY, content);
    }
    this.#endRun();
  }

  project(entry: EventEntry): void {
    if (this.#isOver) return;
    const { event, position } = entry;
    const [input] = inputsOf(event);
    const isNew = comparePositions(position, this.#options.asOf) > 0;
    const opensRequest = isNew && this.#requests.apply(entry);
    if (this.#endTurnBefore(event, opensRequest) || this.#isOver) return;
    if (input?.kind === 'turn') this.#moveTurn(input, entry);
    else if (endsSession(event)) this.#endSession(entry);
    else this.#projectOne(entry, isNew);
    if (opensRequest && !this.#isOver) this.#interrupt(entry.occurredAt);
  }

  /** Call when the log has been read to its end. */
  caughtUp(): void {
    if (this.#isOver) return;
    this.settle();
    this.#isCaughtUp = true;
    if (this.#answer.isPending || this.#turn !== null) this.#interrupt();
    if (this.#options.follows === 'no') this.#concludeIfIdle();
  }

  /** Call when no further entry is available at the moment. */
  settle(): void {
    this.#endTurn();
    this.#stream.settle();
  }

  /** Makes the client stop following after the open run. */
  stopFollowing(): void {
    this.#hasStoppedFollowing = true;
    this.#concludeIfIdle();
  }

  /** Call when the timeout of `waitsFor` has passed. */
  timeOut(): void {
    if (this.waitsFor === 'next-turn') this.#conclude();
    if (this.waitsFor !== 'runner') return;
    const waits = this.#answer.hasMessages ? ' Your message stays queued until it reconnects.' : '';
    this.fail(`The agent’s runner is offline.${waits} Connect again to see new events.`, 'agent_away');
  }

  fail(message: string, code: string): void {
    if (this.#isOver) return;
    this.#stream.fail(message, code);
    this.#isOver = true;
  }

  /** Call before the log is read again from the start of the turn in `rereads`, which is the answer. */
  reread(): void {
    this.#answer.expect(this.#rereads);
    this.#rereads = null;
    this.#turn = null;
    this.#isCaughtUp = false;
  }

  get #follows(): boolean {
    return this.#options.follows !== 'no' && !this.#hasStoppedFollowing;
  }

  #turnOf(id: string, answers: Answers, named: readonly string[] = []): Turn {
    return { id, answers, named, isShown: answers !== 'no' || this.#follows, runs: 0, ending: null };
  }

  #moveTurn(input: EventInput<'turn'>, entry: EventEntry): void {
    const turn = this.#turn;
    const [, verdict] = turnStep(turn?.id ?? null, input);
    // The agent repeated the start.
    if (verdict === 'continues') return;
    if (verdict === 'late' && turn !== null) this.#breakOff(turn, entry.occurredAt);
    if (input.input === 'begin') this.#beginTurn(entry);
    // A request of the turn may follow its end.
    else if (verdict === 'ends' && turn?.isShown) turn.ending = entry;
    else this.#endHidden(input.id ?? turn?.id ?? null, entry.event);
  }

  #beginTurn({ event, position, occurredAt: at }: EventEntry): void {
    const start = turnStartOf(event, position);
    const { id, kind, named, parentRunId } = start;
    if (this.#isOver) return;
    this.#isAway = false;
    const turn = this.#turnOf(id, this.#answer.classify(start), named ?? []);
    this.#turn = turn;
    if (!turn.isShown) return;
    const { trigger } = readInterlude(event);
    this.#beginRun(turn, at, { turn: kind, trigger, userMessageIds: named ?? undefined }, parentRunId);
    this.#release(named);
  }

  /** Begins the client's own run, or a further one. */
  #beginRun(turn: Turn, at: number, more: ServedRun, parentRunId: string | null = null): void {
    turn.runs += 1;
    const interlude = { turnId: turn.id, ...more };
    const runId = turn.runs === 1 ? turn.id : `${turn.id}/${turn.runs}`;
    if (turn.answers !== 'no' && !this.#hasOwnRun) this.#beginOwn(at, interlude, parentRunId);
    else this.#stream.begin({ runId, parentRunId, at, interlude });
  }

  #beginOwn(at: number | undefined, interlude: ServedRun, parentRunId: string | null = null): void {
    this.#hasOwnRun = true;
    this.#stream.begin({ runId: this.#options.runId, parentRunId, at, interlude });
    for (const { name, value } of this.#options.notices) this.#stream.custom(name, value, at);
  }

  /** Ends a hidden turn. The turn is read again if it was the answer after all. */
  #endHidden(turnId: string | null, event: AgUiEvent): void {
    if (turnId === null) return;
    if (this.#turn?.id === turnId) this.#turn = null;
    const named = this.#answer.pendingOf(readInterlude(event).userMessageIds);
    if (named.length === 0) return;
    if (!this.#answer.isIn(turnId)) {
      this.#rereads = turnId;
      return;
    }
    // The turn was read again, but its start is no longer in the log.
    this.#answer.ended(turnId, 'yes', named);
    this.#concludeIfIdle();
  }

  /**
   * Writes the deferred end of a turn, after the request that the turn ended with.
   * @returns true if the event was that request
   */
  #endTurnBefore(event: AgUiEvent, opensRequest: boolean): boolean {
    const turn = this.#turn;
    if (!turn?.ending) return false;
    const isRequestOfTurn = opensRequest && readInterlude(event).derived?.turnId === turn.id;
    if (isRequestOfTurn && this.#stream.runId !== null) this.#stream.custom(CUSTOM.requestOpened, event.value);
    this.#endTurn();
    return isRequestOfTurn;
  }

  #endTurn(): void {
    const turn = this.#turn;
    if (!turn?.ending) return;
    const { event, occurredAt: at } = turn.ending;
    this.#turn = null;
    const { userMessageIds = [] } = readInterlude(event);
    this.#answer.ended(turn.id, turn.answers, [...turn.named, ...userMessageIds]);
    // The turn may have ended before its first new event.
    if (!this.#isInRun) this.#beginRun(turn, at, {});
    this.#release(userMessageIds);
    const isCancelled = fieldsOf(event.outcome).type === 'cancelled';
    if (event.type === 'RUN_ERROR' || isCancelled) this.#requests.close();
    if (event.type === 'RUN_ERROR')
      this.#stream.fail(textOf(event.message) ?? 'The run failed.', textOf(event.code), at);
    else if (isCancelled) this.#stream.finish({ type: 'cancelled' }, at);
    else this.#endRun(at, event.result);
    if (this.#requests.interrupts().length > 0 && this.#options.follows !== 'always') this.#isOver = true;
    else this.#concludeIfIdle();
  }

  /** Another turn began before this one ended. */
  #breakOff(turn: Turn, at: number): void {
    this.#turn = null;
    this.#requests.close();
    if (!turn.isShown) return;
    // A turn that names no message has not answered any yet.
    this.#answer.ended(turn.id, turn.answers === 'maybe' ? 'no' : turn.answers, turn.named);
    this.#stream.finish({ type: 'cancelled' }, at);
    this.#concludeIfIdle();
  }

  /** The agent's process has ended, which ends everything open. */
  #endSession(entry: EventEntry): void {
    const { event, occurredAt: at } = entry;
    this.#options.tasks.apply(entry);
    if (readInterlude(event).again === true) return;
    const isMissed = this.#answer.isPending || this.#turn?.isShown === true;
    this.#turn = null;
    this.#requests.close();
    this.#answer.clear();
    const reason = pickText(customValue(event), 'reason');
    if (isMissed) {
      this.#stream.fail(`The agent’s process has ended${reason === null ? '' : ` (${reason})`}.`, 'session_ended', at);
      this.#hasOwnRun = true;
    }
    if (this.#options.follows !== 'always') this.#conclude();
  }

  #projectOne(entry: EventEntry, isNew: boolean): void {
    const { event } = entry;
    const name = customName(event);
    const turn = this.#turn;
    const activity = this.#options.tasks.apply(entry);
    if (this.#deferred.deferMessage(entry, turn?.isShown === true)) return;
    if (name === CUSTOM.runnerAway) this.#isAway = true;
    // The server's own events are no sign that the agent is alive.
    else if (isNew && !/^(message|command|obligation):/.test(name ?? '')) this.#isAway = false;
    if (name === CUSTOM.messageDelivery) this.#failDelivery(event);
    if (this.#isOver) return;
    // Decided by type, because a chunk may omit the id of its part.
    const isPart = isOfPart({ kind: kindOf(event.type) });
    if (!isPart && comparePositions(entry.position, this.#options.knownUpTo) <= 0) return;
    if (turn === null) this.#projectOutside(entry, isPart, activity !== null);
    else if (turn.isShown) {
      // The turn continues after an interrupt, or from where the client joined.
      if (!this.#isInRun) {
        this.#beginRun(turn, entry.occurredAt, { continues: true });
        this.#release([]);
      }
      this.#stream.write(entry);
    }
    if (activity !== null && this.#stream.runId !== null && name !== CUSTOM.taskOutput) {
      this.#stream.activity(activity.messageId, TASK_ACTIVITY, activity.content, entry.occurredAt);
    }
  }

  #projectOutside(entry: EventEntry, isPart: boolean, isOfTask: boolean): void {
    const { event, occurredAt: at } = entry;
    const answers = this.#answer.pendingOf(readInterlude(event).replyTo);
    const isAnswer = answers.length > 0 || (this.#options.isTurnless && this.#answer.hasMessages);
    if (isPart && isAnswer && typeof event.subagentRunId !== 'string') {
      if (!this.#hasOwnRun) {
        this.#beginOwn(at, { turn: 'none' });
        this.#release(answers);
      }
      this.#stream.write(entry);
      if (event.type !== 'TEXT_MESSAGE_END') return;
      if (this.#options.isTurnless) this.#answer.clear();
      else this.#answer.answered(answers);
      this.#endRun(at);
      this.#concludeIfIdle();
      return;
    }
    const startsRun = isPart || (isOfTask && customName(event) !== CUSTOM.taskProgress);
    if (this.#stream.runId !== null || (this.#follows && startsRun)) this.#stream.write(entry);
    else if (this.#follows) this.#deferred.defer(entry);
  }

  #release(ids: readonly string[] | null): void {
    const { entries, dropped } = this.#deferred.release(ids);
    for (const entry of entries) this.#stream.write(entry);
    if (dropped > 0) this.#stream.custom('interlude:left-out', { count: dropped });
  }

  #failDelivery(event: AgUiEvent): void {
    const value = customValue(event);
    const failed = this.#answer.pendingOf([pickId(value, 'message_id', 'messageId') ?? '']);
    if (value.delivery !== 'failed' || failed.length === 0) return;
    this.#answer.answered(failed);
    this.#hasOwnRun = true;
    // The open run already shows the failure.
    if (this.#isInRun) return;
    const reason = pickText(value, 'reason') ?? 'no reason given';
    this.#stream.fail(`The message did not reach the agent: ${reason}.`, 'message_failed');
    this.#concludeIfIdle();
  }

  /** True while the run of a turn is open. */
  get #isInRun(): boolean {
    return this.#stream.runId !== null && !this.#stream.isOutside;
  }

  /** Ends the client's run while the agent waits for a person. The turn continues. */
  #interrupt(at?: number): void {
    const ids = this.#requests.interrupts().map(({ id }) => id);
    if (ids.length === 0) return;
    const isRun = this.#stream.runId !== null;
    if (!isRun && !this.#answer.isPending && this.#options.follows === 'no') return;
    const isKnown = ids.every((id) => this.#interruptIds.includes(id));
    if (!isRun && !this.#hasOwnRun) this.#beginOwn(at, { turn: 'none' });
    else if (!isRun && !isKnown) this.#stream.begin({ runId: `asks-${ids.at(-1)}`, at, interlude: { turn: 'none' } });
    this.#endRun(at);
    if (this.#options.follows !== 'always') this.#isOver = true;
  }

  /** The outcome is an interrupt while the agent waits for a person. */
  #endRun(at?: number, result?: unknown): void {
    if (this.#stream.runId === null) return;
    const interrupts = this.#requests.interrupts();
    this.#interruptIds = interrupts.map(({ id }) => id);
    this.#stream.finish(interrupts.length === 0 ? { type: 'success' } : { type: 'interrupt', interrupts }, at, result);
  }

  #concludeIfIdle(): void {
    if (this.#isOver || this.#turn?.isShown || this.#answer.isPending || this.#stream.runId !== null) return;
    if (!this.#follows) this.#conclude();
  }

  /** Ends the stream between runs. A client without a run so far receives an empty one. */
  #conclude(): void {
    if (this.#isOver) return;
    if (!this.#hasOwnRun) this.#beginOwn(undefined, { turn: 'none' });
    if (this.#options.follows !== 'no' && !this.#deferred.isEmpty) this.#release(null);
    this.#endRun();
    this.#isOver = true;
  }
}
