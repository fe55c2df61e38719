import type { AgUiEvent, ServedRun } from '@interlude/protocol/ag-ui';
import { CUSTOM, customName, customValue, pickId, pickText } from '@interlude/protocol/event-fields';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { type EventInput, endsSession, inputsOf, kindOf } from '@interlude/protocol/lifecycle/event-inputs';
import { turnStep } from '@interlude/protocol/lifecycle/open-session';
import { comparePositions } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { type Answers, AwaitedAnswer, begunBy } from './awaited-answer';
import { isOfPart } from './client-parts';
import type { CourseOptions } from './course-options';
import { HeldBack } from './held-back';
import { Asks } from './interrupts';
import type { StrictStream } from './strict-stream';
import { TASK_ACTIVITY } from './task-activity';

/** An open turn of the log, and its part in the client's runs. */
interface Turn {
  id: string;
  answers: Answers;
  isShown: boolean;
  named: readonly string[];
  /** Count of its runs: an interrupt ends a run, not its turn. */
  runs: number;
  /** Its end in the log, held until the request that may follow it. */
  ending: EventEntry | null;
}

/**
 * Projects a session's log into the client's runs. Pure: the caller passes the log from a position on, and the time-outs.
 *
 * A turn under way when a message is sent is not its answer, and is not shown unless the client follows; if it turns out at
 * its end to have taken the message in, it has to be read again (`rereads`).
 *
 * Ordering: runs come in the order of their turns, one at a time.
 * Failure: what can't go on is ended by RUN_ERROR with words; nothing ends plainly in the middle of a run.
 */
export class Course {
  readonly #options: CourseOptions;
  readonly #stream: StrictStream;
  readonly #held: HeldBack;
  readonly #answer: AwaitedAnswer;
  readonly #asks: Asks;
  /** The turn that is open in the log. It moves by the grammar. */
  #turn: Turn | null;
  #isOwnRunTold = false;
  /** Interrupts with which the last run ended. */
  #interruptIds: readonly string[] = [];
  #isAway: boolean;
  #isBounded = false;
  #isCaughtUp = false;
  #isOver = false;
  #rereads: string | null = null;

  constructor(options: CourseOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#held = new HeldBack(options.parts);
    this.#answer = new AwaitedAnswer(options);
    this.#isAway = options.isAway;
    this.#asks = new Asks(options.pending, options.answered);
    const { openTurnId: open } = options;
    this.#turn = open === null ? null : this.#turnOf(open, this.#answer.isIn(open) ? 'yes' : 'no');
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The turn that has to be read again from its beginning. */
  get rereads(): string | null {
    return this.#rereads;
  }

  /** What it waits for that only time can end. */
  get waitsFor(): 'nothing' | 'runner' | 'next-turn' {
    if (this.#isOver || this.#options.follows === 'always') return 'nothing';
    if (this.#isAway && (this.#answer.isPending || this.#turn !== null)) return 'runner';
    const isIdle = this.#isCaughtUp && !this.#answer.isPending && this.#turn === null;
    return isIdle && !this.#options.tasks.isAnyRunning() ? 'next-turn' : 'nothing';
  }

  /** Writes the history as the client's own run, before anything is read. */
  connected(history: readonly object[]): void {
    this.#beginOwn(undefined, { turn: 'none' });
    this.#stream.messages(history);
    for (const { messageId, content } of this.#options.tasks.running()) {
      this.#stream.activity(messageId, TASK_ACTIVITY, content);
    }
    this.#endRun();
  }

  take(entry: EventEntry): void {
    if (this.#isOver) return;
    const { event, position } = entry;
    const [said] = inputsOf(event);
    const isNews = comparePositions(position, this.#options.asOf) > 0;
    const asks = isNews && this.#asks.take(entry);
    if (this.#endTurnBefore(event, asks) || this.#isOver) return;
    if (said?.kind === 'turn') this.#moveTurn(said, entry);
    else if (endsSession(event)) this.#endSession(entry);
    else this.#tell(entry, isNews);
    if (asks && !this.#isOver) this.#interrupt(entry.occurredAt);
  }

  /** Everything that was there has been taken. */
  caughtUp(): void {
    if (this.#isOver) return;
    this.settle();
    this.#isCaughtUp = true;
    if (this.#answer.isPending || this.#turn !== null) this.#interrupt();
    if (this.#options.follows === 'no') this.#concludeIfIdle();
  }

  /** Nothing more is there at the moment. */
  settle(): void {
    this.#endShown();
    this.#stream.settle();
  }

  /** The time to follow is over: the open run is written to its end, and nothing after. */
  bound(): void {
    this.#isBounded = true;
    this.#concludeIfIdle();
  }

  /** What `waitsFor` named has not come. */
  giveUp(): void {
    if (this.waitsFor === 'next-turn') this.#conclude();
    if (this.waitsFor !== 'runner') return;
    const waits = this.#answer.hasMessages ? ' The message stays queued, and is taken once the runner is back.' : '';
    this.fail(`Nothing is heard of the agent: its runner is away.${waits} Connect to see what comes.`, 'agent_away');
  }

  /** The stream ends here, whatever is under way. */
  fail(message: string, code: string): void {
    if (this.#isOver) return;
    this.#stream.fail(message, code);
    this.#isOver = true;
  }

  /** It is read again from the beginning of the turn in `rereads`, which is the answer. */
  reread(): void {
    this.#answer.expectIn(this.#rereads);
    this.#rereads = null;
    this.#turn = null;
    this.#isCaughtUp = false;
  }

  get #follows(): boolean {
    return this.#options.follows !== 'no' && !this.#isBounded;
  }

  #turnOf(id: string, answers: Answers, named: readonly string[] = []): Turn {
    return { id, answers, named, isShown: answers !== 'no' || this.#follows, runs: 0, ending: null };
  }

  #moveTurn(said: EventInput<'turn'>, entry: EventEntry): void {
    const turn = this.#turn;
    const [, verdict] = turnStep(turn?.id ?? null, said);
    // Its start, repeated.
    if (verdict === 'continues') return;
    if (verdict === 'late' && turn !== null) this.#breakOff(turn, entry.occurredAt);
    if (said.input === 'begin') this.#beginTurn(entry);
    // A request that belongs to the turn may follow its end.
    else if (verdict === 'ends' && turn?.isShown) turn.ending = entry;
    else this.#endUnshown(said.id ?? turn?.id ?? null, entry.event);
  }

  #beginTurn({ event, position, occurredAt: at }: EventEntry): void {
    const begun = begunBy(event, position);
    const { id, kind, named, parentRunId } = begun;
    if (this.#isOver) return;
    this.#isAway = false;
    const turn = this.#turnOf(id, this.#answer.judge(begun), named ?? []);
    this.#turn = turn;
    if (!turn.isShown) return;
    const { trigger } = readInterlude(event);
    this.#beginShown(turn, at, { turn: kind, trigger, userMessageIds: named ?? undefined }, parentRunId);
    this.#release(named);
  }

  /** The client's own run, or one more. */
  #beginShown(turn: Turn, at: number, more: ServedRun, parentRunId: string | null = null): void {
    turn.runs += 1;
    const interlude = { turnId: turn.id, ...more };
    const runId = turn.runs === 1 ? turn.id : `${turn.id}/${turn.runs}`;
    if (turn.answers !== 'no' && !this.#isOwnRunTold) this.#beginOwn(at, interlude, parentRunId);
    else this.#stream.begin({ runId, parentRunId, at, interlude });
  }

  #beginOwn(at: number | undefined, interlude: ServedRun, parentRunId: string | null = null): void {
    this.#isOwnRunTold = true;
    this.#stream.begin({ runId: this.#options.runId, parentRunId, at, interlude });
    for (const { name, value } of this.#options.says) this.#stream.custom(name, value, at);
  }

  /** Ends a turn that was not shown, and reads it again if it was the answer after all. */
  #endUnshown(turnId: string | null, event: AgUiEvent): void {
    if (turnId === null) return;
    if (this.#turn?.id === turnId) this.#turn = null;
    const named = this.#answer.amongst(readInterlude(event).userMessageIds);
    if (named.length === 0) return;
    if (!this.#answer.isIn(turnId)) {
      this.#rereads = turnId;
      return;
    }
    // It was read again and its beginning is not there.
    this.#answer.ended(turnId, 'yes', named);
    this.#concludeIfIdle();
  }

  /**
   * The end of a turn waits for what follows it: only a request that it ended with belongs to it.
   * @returns whether the event was written with it
   */
  #endTurnBefore(event: AgUiEvent, asks: boolean): boolean {
    const turn = this.#turn;
    if (!turn?.ending) return false;
    const isItsRequest = asks && readInterlude(event).derived?.turnId === turn.id;
    if (isItsRequest && this.#stream.runId !== null) this.#stream.custom(CUSTOM.requestOpened, event.value);
    this.#endShown();
    return isItsRequest;
  }

  #endShown(): void {
    const turn = this.#turn;
    if (!turn?.ending) return;
    const { event, occurredAt: at } = turn.ending;
    this.#turn = null;
    const { userMessageIds = [] } = readInterlude(event);
    this.#answer.ended(turn.id, turn.answers, [...turn.named, ...userMessageIds]);
    // It may have ended before anything that is new to the client.
    if (!this.#isInRun) this.#beginShown(turn, at, {});
    this.#release(userMessageIds);
    const isCancelled = fieldsOf(event.outcome).type === 'cancelled';
    if (event.type === 'RUN_ERROR' || isCancelled) this.#asks.cut();
    if (event.type === 'RUN_ERROR')
      this.#stream.fail(textOf(event.message) ?? 'The run failed.', textOf(event.code), at);
    else if (isCancelled) this.#stream.finish({ type: 'cancelled' }, at);
    else this.#endRun(at, event.result);
    if (this.#asks.interrupts().length > 0 && this.#options.follows !== 'always') this.#isOver = true;
    else this.#concludeIfIdle();
  }

  /** A run broke in on the open turn. */
  #breakOff(turn: Turn, at: number): void {
    this.#turn = null;
    this.#asks.cut();
    if (!turn.isShown) return;
    // One that does not say whom it answers has not answered yet.
    this.#answer.ended(turn.id, turn.answers === 'maybe' ? 'no' : turn.answers, turn.named);
    this.#stream.finish({ type: 'cancelled' }, at);
    this.#concludeIfIdle();
  }

  /** The agent's process is gone, and with it everything that was open. */
  #endSession(entry: EventEntry): void {
    const { event, occurredAt: at } = entry;
    this.#options.tasks.take(entry);
    if (readInterlude(event).again === true) return;
    const isMissed = this.#answer.isPending || this.#turn?.isShown === true;
    this.#turn = null;
    this.#asks.cut();
    this.#answer.giveUp();
    const reason = pickText(customValue(event), 'reason');
    if (isMissed) {
      this.#stream.fail(`The agent’s process has ended${reason === null ? '' : ` (${reason})`}.`, 'session_ended', at);
      this.#isOwnRunTold = true;
    }
    if (this.#options.follows !== 'always') this.#conclude();
  }

  #tell(entry: EventEntry, isNews: boolean): void {
    const { event } = entry;
    const name = customName(event);
    const turn = this.#turn;
    const activity = this.#options.tasks.take(entry);
    if (this.#held.takeMessage(entry, turn?.isShown === true)) return;
    if (name === CUSTOM.runnerAway) this.#isAway = true;
    // What the server says of its own accord is no sign of life.
    else if (isNews && !/^(message|command|obligation):/.test(name ?? '')) this.#isAway = false;
    if (name === CUSTOM.messageDelivery) this.#failDelivery(event);
    if (this.#isOver) return;
    // By its type: a chunk need not name its part.
    const isPart = isOfPart({ kind: kindOf(event.type) });
    if (!isPart && comparePositions(entry.position, this.#options.quietUpTo) <= 0) return;
    if (turn === null) this.#tellOutside(entry, isPart, activity !== null);
    else if (turn.isShown) {
      // It goes on after an interrupt, or where the client has joined it.
      if (!this.#isInRun) {
        this.#beginShown(turn, entry.occurredAt, { continues: true });
        this.#release([]);
      }
      this.#stream.take(entry);
    }
    if (activity !== null && this.#stream.runId !== null && name !== CUSTOM.taskOutput) {
      this.#stream.activity(activity.messageId, TASK_ACTIVITY, activity.content, entry.occurredAt);
    }
  }

  #tellOutside(entry: EventEntry, isPart: boolean, isOfTask: boolean): void {
    const { event, occurredAt: at } = entry;
    const answers = this.#answer.amongst(readInterlude(event).replyTo);
    const isAnswer = answers.length > 0 || (this.#options.isTurnless && this.#answer.hasMessages);
    if (isPart && isAnswer && typeof event.subagentRunId !== 'string') {
      if (!this.#isOwnRunTold) {
        this.#beginOwn(at, { turn: 'none' });
        this.#release(answers);
      }
      this.#stream.take(entry);
      if (event.type !== 'TEXT_MESSAGE_END') return;
      if (this.#options.isTurnless) this.#answer.giveUp();
      else this.#answer.answered(answers);
      this.#endRun(at);
      this.#concludeIfIdle();
      return;
    }
    const isWorthARun = isPart || (isOfTask && customName(event) !== CUSTOM.taskProgress);
    if (this.#stream.runId !== null || (this.#follows && isWorthARun)) this.#stream.take(entry);
    else if (this.#follows) this.#held.hold(entry);
  }

  #release(ids: readonly string[] | null): void {
    const { entries, leftOut } = this.#held.release(ids);
    for (const entry of entries) this.#stream.take(entry);
    if (leftOut > 0) this.#stream.custom('interlude:left-out', { count: leftOut });
  }

  #failDelivery(event: AgUiEvent): void {
    const value = customValue(event);
    const failed = this.#answer.amongst([pickId(value, 'message_id', 'messageId') ?? '']);
    if (value.delivery !== 'failed' || failed.length === 0) return;
    this.#answer.answered(failed);
    this.#isOwnRunTold = true;
    // The failure shows in the run of another message.
    if (this.#isInRun) return;
    const reason = pickText(value, 'reason') ?? 'no reason was given';
    this.#stream.fail(`The message did not reach the agent: ${reason}.`, 'message_failed');
    this.#concludeIfIdle();
  }

  /** Whether the open run is that of a turn. */
  get #isInRun(): boolean {
    return this.#stream.runId !== null && !this.#stream.isOutside;
  }

  /** If the agent waits for a person, the client's run ends, though the turn goes on. */
  #interrupt(at?: number): void {
    const ids = this.#asks.interrupts().map(({ id }) => id);
    if (ids.length === 0) return;
    const isRun = this.#stream.runId !== null;
    if (!isRun && !this.#answer.isPending && this.#options.follows === 'no') return;
    const isTold = ids.every((id) => this.#interruptIds.includes(id));
    if (!isRun && !this.#isOwnRunTold) this.#beginOwn(at, { turn: 'none' });
    else if (!isRun && !isTold) this.#stream.begin({ runId: `asks-${ids.at(-1)}`, at, interlude: { turn: 'none' } });
    this.#endRun(at);
    if (this.#options.follows !== 'always') this.#isOver = true;
  }

  /** With an interrupt, while the agent waits for a person. */
  #endRun(at?: number, result?: unknown): void {
    if (this.#stream.runId === null) return;
    const interrupts = this.#asks.interrupts();
    this.#interruptIds = interrupts.map(({ id }) => id);
    this.#stream.finish(interrupts.length === 0 ? { type: 'success' } : { type: 'interrupt', interrupts }, at, result);
  }

  #concludeIfIdle(): void {
    if (this.#isOver || this.#turn?.isShown || this.#answer.isPending || this.#stream.runId !== null) return;
    if (!this.#follows) this.#conclude();
  }

  /** Plainly, behind the end of a run. A client that was shown no run of its own gets one that says so. */
  #conclude(): void {
    if (this.#isOver) return;
    if (!this.#isOwnRunTold) this.#beginOwn(undefined, { turn: 'none' });
    if (this.#options.follows !== 'no' && !this.#held.isEmpty) this.#release(null);
    this.#endRun();
    this.#isOver = true;
  }
}
