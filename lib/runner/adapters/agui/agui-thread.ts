import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { type EmittedEvent, earliest, setBounded, type WireAdapterOptions, type WireEnd } from '../wire';
import { SessionWriter, type TurnCause, type TurnEnd } from '../writer/session-writer';
import { truncateWithNote } from '../writer/size-limits';
import {
  type AgUiFrame,
  contentText,
  endOf,
  isAboutTask,
  isTooDeep,
  newMessages,
  type RunInput,
  runInputOf,
  runOf,
  type StreamName,
  silenceNotice,
  threadOf,
  triggerOf,
} from './agui-frames';
import { BackgroundTasks } from './background-tasks';
import { RunRequests } from './requests';
import { forwardedEvents, isOfTurn, RunEvents, unreadable } from './run-events';
import { DuplicateEvents, digestOf, PostedRuns, Replay } from './run-matching';

export interface AgUiAdapterOptions extends WireAdapterOptions {
  /** True if the agent runs on this machine, so that its output files are local. */
  isLocal?: boolean;
  /** Runs and tasks of earlier processes: a server's replay of them adds nothing. */
  ended?: EndedWork;
}

/** Ended runs and tasks by wire id, newest last. */
export interface EndedWork {
  /** `first`: digest of the first event of a run that came only on the event stream, since servers reuse run ids. */
  runs: readonly (readonly [name: string, first: string | null])[];
  tasks: readonly string[];
  /** Runs closed before the agent ended them; later events continue in a new turn. */
  cut?: readonly string[];
}

type StreamFrame = Extract<AgUiFrame, { stream: StreamName }>;

/** Longest time that a posted run waits for an open between-run turn. */
const FLOOR_MS = 2_000;
/** Time a broken event stream has to resume its turn. */
const RESUME_MS = 25_000;
/** Frames waiting for the floor. Beyond this, they are written in their current place. */
const MAX_WAITING = 2_000;
/** Runs remembered, and runs that may arrive on both streams. */
const MAX_RUNS = 512;
const MAX_EARLY = 16;
/** Ended runs and tasks stored for the next process. */
const MAX_STORED = 64;
const MAX_RESULT = 64 * 1024;

/**
 * One thread of an AG-UI server.
 *
 * Ordering: one turn at a time, on either stream. Events of another turn wait for its end.
 */
export class AgUiThread {
  readonly #writer: SessionWriter;
  readonly #options: AgUiAdapterOptions;
  readonly #tasks: BackgroundTasks;
  readonly #requests: RunRequests;
  readonly #events: RunEvents;
  readonly #threads = new Map<string, true>();
  readonly #posted = new PostedRuns();
  /** Runs that ended or were written from their own POST's stream. */
  readonly #ended = new Map<string, true>();
  /** Digest of the first event of runs that came only on the event stream. */
  readonly #firstEvents = new Map<string, string>();
  /** Turns closed before the agent ended them. */
  readonly #cutRuns = new Map<string, true>();
  readonly #duplicates = new DuplicateEvents();
  /** Digest of the first event of the last posted run. */
  #firstPosted: string | null = null;
  readonly #replay = new Replay();
  /** Posted runs that the event stream announced before the response to the POST. */
  readonly #announced = new Map<string, true>();
  readonly #waiting: Record<StreamName, StreamFrame[]> = { run: [], events: [] };
  /** Stream of the open turn, and its id for the run. */
  #floor: StreamName | null = null;
  #floorRun: string | null = null;
  /** Run that the event stream is about. */
  #eventsRun: string | null = null;
  #isOwnStream = false;
  #isInterrupted = false;
  #floorDueAt: number | null = null;
  /** The event stream broke during its turn and is being reopened. */
  #broken: { reason: string | null; dueAt: number } | null = null;
  /**
   * A RUN_STARTED that reuses an ended run's id, or repeats the last run's message under another id. The next event
   * shows whether it is a replay; task events wait until then.
   */
  #restarted: { started: Fields; aboutTasks: Fields[] } | null = null;
  #now = 0;
  #queriedTasks: string[] = [];

  constructor(threadId: string, options: AgUiAdapterOptions) {
    this.#options = options;
    if (threadId !== '') this.#threads.set(threadId, true);
    const { sessionOf, newRunId, isReplay } = options;
    this.#writer = new SessionWriter({ sessionId: sessionOf(threadId), newRunId, isReplay });
    this.#tasks = new BackgroundTasks(this.#writer, options.isLocal ?? false, options.ended?.tasks);
    this.#requests = new RunRequests(this.#writer);
    this.#events = new RunEvents(this.#writer, this.#requests);
    const { runs = [], cut = [] } = options.ended ?? {};
    for (const run of [...runs.map(([name]) => name), ...cut]) this.#ended.set(run, true);
    for (const run of cut) this.#cutRuns.set(run, true);
    for (const [run, first] of runs) if (first !== null) this.#firstEvents.set(run, first);
  }

  get dueAt(): number | null {
    return earliest([this.#floorDueAt, this.#broken?.dueAt ?? null]);
  }

  get endedWork(): EndedWork {
    const isUnfinished = (run: string) => this.#cutRuns.has(run) || (this.#floor !== null && run === this.#floorRun);
    const runs = [...this.#ended.keys()].filter((run) => !isUnfinished(run));
    const named = runs.slice(-MAX_STORED).map((run) => [run, this.#firstEvents.get(run) ?? null] as const);
    return { runs: named, tasks: this.#tasks.ended.slice(-MAX_STORED) };
  }

  read(frame: AgUiFrame, now: number): EmittedEvent[] {
    this.#at(now);
    switch (frame.kind) {
      case 'post':
        this.#posted.add(frame.input);
        setBounded(this.#threads, frame.input.threadId, true, MAX_RUNS);
        break;
      case 'interrupted':
        this.#isInterrupted = this.#writer.turn !== null;
        break;
      case 'tasks-asked':
        this.#queriedTasks = [...frame.about, ...this.#writer.openTasks];
        break;
      case 'tasks':
        if (frame.isKnown) this.#tasks.readList(frame.body, this.#queriedTasks);
        else if (frame.isDeaf) this.#tasks.presumeLost(this.#queriedTasks);
        break;
      case 'other':
        break;
      default:
        this.#receive(frame, now);
    }
    return this.#writer.drain();
  }

  elapsed(now: number): EmittedEvent[] {
    this.#at(now);
    if (this.#broken !== null && this.#broken.dueAt <= now) {
      this.#breakTurn();
      this.#drain();
      this.#limitWait(now);
    }
    if (this.#floorDueAt !== null && this.#floorDueAt <= now) {
      if (this.#broken === null) this.#cutTurn({ kind: 'success' }, true);
      else this.#breakTurn();
      this.#drain();
      this.#limitWait(now);
    }
    return this.#writer.drain();
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#at(now);
    for (const frame of [...this.#waiting.run.splice(0), ...this.#waiting.events.splice(0)]) this.#take(frame);
    this.#decideRestart(null);
    this.#markCut();
    this.#requests.runAborted();
    this.#writer.end(end, end.goesOn !== undefined);
    this.#release();
    this.#floorDueAt = null;
    return this.#writer.drain();
  }

  #at(now: number): void {
    this.#now = now;
    this.#writer.at(now);
  }

  #receive(frame: StreamFrame, now: number): void {
    const waiting = this.#waiting[frame.stream];
    if (this.#mustWait(frame) && waiting.length < MAX_WAITING) waiting.push(frame);
    else {
      // Write waiting frames first: nothing is dropped or reordered within a stream.
      if (waiting.length >= MAX_WAITING) for (const one of waiting.splice(0)) this.#take(one);
      this.#take(frame);
      this.#drain();
    }
    this.#limitWait(now);
  }

  #mustWait(frame: StreamFrame): boolean {
    if (frame.stream === 'run') {
      if (frame.runId !== null && this.#announced.has(frame.runId)) return false;
      return this.#floor === 'events' || this.#waiting.run.length > 0;
    }
    if (frame.kind === 'event' && isAboutTask(frame.event)) return false;
    return this.#floor === 'run' || this.#waiting.run.length > 0 || this.#waiting.events.length > 0;
  }

  #drain(): void {
    for (;;) {
      const from = this.#floor !== 'events' && this.#waiting.run.length > 0 ? 'run' : 'events';
      if (this.#floor !== null && this.#floor !== from) return;
      const frame = this.#waiting[from].shift();
      if (frame === undefined) return;
      this.#take(frame);
    }
  }

  /** Limits the wait of a posted run, in case the end of the open turn was lost. */
  #limitWait(now: number): void {
    const isHeldUp = this.#floor === 'events' && this.#waiting.run.length > 0;
    this.#floorDueAt = isHeldUp ? (this.#floorDueAt ?? now + FLOOR_MS) : null;
  }

  #take(frame: StreamFrame): void {
    if (frame.kind === 'unreadable') this.#writer.emit(unreadable(frame.what));
    else if (frame.kind === 'opened') this.#opened(frame);
    else if (frame.kind === 'answered') this.#accepted(frame.runId, frame.isAccepted);
    else if (frame.kind === 'ended') this.#streamEnded(frame);
    else if (isTooDeep(frame.event)) for (const one of forwardedEvents(frame.event)) this.#writer.emit(one);
    else if (frame.stream === 'run') this.#runEvent(frame.event, frame.runId);
    else this.#betweenEvent(frame.event);
  }

  #opened({ isOwn, threadId, unheardSince }: Extract<StreamFrame, { kind: 'opened' }>): void {
    this.#isOwnStream = isOwn;
    if (threadId !== null) setBounded(this.#threads, threadId, true, MAX_RUNS);
    if (unheardSince !== null) this.#writer.notice(silenceNotice(unheardSince, this.#now), 'warning');
  }

  /** The server accepted a run: the turn answers its input. */
  #accepted(runId: string, isAccepted: boolean): void {
    if (isAccepted && this.#announced.has(runId) && this.#writer.turn?.runId === runId) {
      // The run's own stream continues the turn; duplicates are dropped.
      this.#floor = 'run';
      this.#broken = null;
    }
    const input = this.#posted.remove(runId);
    if (input === undefined || !isAccepted) return;
    this.#duplicates.clear();
    this.#beginPosted(runId, input);
    this.#floor = 'run';
  }

  /** The event stream announces a posted run first. @param name the server's id for it */
  #beginEarly(runId: string, name: string | null): void {
    const input = this.#posted.remove(runId);
    if (input === undefined) return;
    this.#breakTurn();
    this.#duplicates.clear();
    this.#beginPosted(runId, input);
    setBounded(this.#announced, runId, true, MAX_EARLY);
    if (name !== null) this.#floorRun = name;
    if (name !== null) setBounded(this.#ended, name, true, MAX_RUNS);
    this.#floor = 'events';
  }

  #beginPosted(runId: string, input: RunInput): void {
    this.#firstPosted = null;
    const messages = this.#posted.unansweredMessages(input);
    for (const { id, content } of messages) this.#writer.dashboardMessage(id, truncateWithNote(contentText(content)));
    this.#tasks.userTurnBegins();
    this.#begin({ kind: 'user', userMessageIds: messages.map(({ id }) => id) }, runId);
    this.#requests.answeredBy(input);
  }

  #begin(cause: TurnCause, runId: string): void {
    const id = truncateText(runId, MAX_ID_LENGTH);
    this.#isInterrupted = false;
    this.#floorRun = id;
    // A reused id starts a second turn, because the first was complete.
    if (this.#ended.has(id)) this.#writer.begin(cause);
    else this.#writer.begin(cause, id);
    setBounded(this.#ended, id, true, MAX_RUNS);
  }

  #runEvent(event: Fields, postedId: string | null): void {
    const thread = threadOf(event);
    if (thread !== null) setBounded(this.#threads, thread, true, MAX_RUNS);
    const isEarly = postedId !== null && this.#announced.has(postedId) && this.#floor !== 'run';
    if (event.type === 'RUN_STARTED') {
      if (isEarly) return;
      if (this.#floor === 'run') {
        // The server may give the open run an id of its own.
        const named = runOf(event);
        if (named !== null) setBounded(this.#ended, named, true, MAX_RUNS);
      } else this.#beginByItself(event, 'run');
      return;
    }
    if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
      if (postedId !== null) for (const runs of [this.#announced, this.#cutRuns]) runs.delete(postedId);
      if (this.#floor === 'run') this.#finish(event);
      return;
    }
    this.#firstPosted ??= digestOf(event);
    if (this.#duplicates.isCopy('run', event)) return;
    if (postedId !== null && this.#cutRuns.has(postedId) && isOfTurn(event) && this.#floor === null) {
      this.#continue(postedId, postedId, 'run');
    }
    this.#write(event);
  }

  /** Continues a turn that was closed early or whose start was missed. */
  #continue(runId: string, parentRunId: string | null, stream: StreamName): void {
    this.#begin({ kind: 'between-run', trigger: this.#tasks.takeTrigger(), parentRunId }, runId);
    this.#floor = stream;
  }

  #betweenEvent(event: Fields): void {
    const thread = threadOf(event);
    if (thread !== null && this.#threads.size === 0) this.#threads.set(thread, true);
    // On a shared stream other threads belong to other runners.
    if (thread !== null && !this.#isOwnStream && !this.#threads.has(thread)) return;
    if (isAboutTask(event)) {
      if (this.#restarted !== null && this.#restarted.aboutTasks.length >= MAX_WAITING) this.#decideRestart(null);
      if (this.#restarted === null) this.#write(event);
      else this.#restarted.aboutTasks.push(event);
      return;
    }
    const { type } = event;
    const run = runOf(event);
    if (type === 'RUN_STARTED') {
      this.#eventsRun = run;
      this.#decideRestart(null);
      this.#runStarts(event, run);
      return;
    }
    const about = run ?? this.#eventsRun;
    const isEnd = type === 'RUN_FINISHED' || type === 'RUN_ERROR';
    if (isEnd) this.#eventsRun = null;
    this.#decideRestart(isEnd ? null : event);
    // The RUN_STARTED of this run was missed.
    if (about !== null && !isEnd && this.#floor !== 'run' && this.#posted.has(about)) this.#beginEarly(about, about);
    if (this.#floor === 'events' && (about === null || about === this.#floorRun)) {
      this.#broken = null;
      if (isEnd) this.#finish(event);
      else if (!this.#isDuplicate(event)) this.#write(event);
      return;
    }
    const isKnown = about !== null && this.#ended.has(about);
    if (isEnd || (isKnown && !this.#cutRuns.has(about)) || this.#duplicates.isCopy('events', event)) return;
    if (this.#replay.isOf(about) && this.#replay.repeats(event)) return;
    if (about !== null && isOfTurn(event) && this.#floor === null) {
      this.#continue(about, isKnown ? about : null, 'events');
    }
    this.#write(event);
  }

  /** Handles RUN_STARTED on the event stream. */
  #runStarts(event: Fields, run: string | null): void {
    const posted = this.#posted.idIn(event);
    const isUnfinished = this.#floor === 'events' && run === this.#floorRun;
    if (this.#replay.isOf(run) && (isUnfinished || this.#cutRuns.has(run ?? ''))) {
      this.#replay.restart();
      if (isUnfinished) this.#broken = null;
    } else if (this.#floor === 'run') return;
    else if (posted !== null) {
      this.#beginEarly(posted, run);
      this.#replay.begin(run);
    } else if (run !== null && (this.#firstEvents.has(run) || (!this.#ended.has(run) && this.#posted.isLast(event)))) {
      this.#restarted = { started: event, aboutTasks: [] };
    } else if (run === null || !this.#ended.has(run)) this.#beginOwn(event, run);
  }

  #beginOwn(event: Fields, run: string | null): void {
    this.#breakTurn();
    this.#beginByItself(event, 'events');
    this.#replay.begin(run);
  }

  /** @param event first event after a RUN_STARTED with a reused id; null if none */
  #decideRestart(event: Fields | null): void {
    const restarted = this.#restarted;
    if (restarted === null) return;
    this.#restarted = null;
    const run = runOf(restarted.started);
    const first = this.#posted.isLast(restarted.started) ? this.#firstPosted : null;
    const isReplay = event === null || run === null || [first, this.#firstEvents.get(run)].includes(digestOf(event));
    if (isReplay && run !== null) setBounded(this.#ended, run, true, MAX_RUNS);
    if (!isReplay) this.#beginOwn(restarted.started, run);
    for (const one of restarted.aboutTasks) this.#write(one);
  }

  /** True for an event of the open turn that is a replay or came on the run's own stream. */
  #isDuplicate(event: Fields): boolean {
    const isShared = this.#announced.has(this.#writer.turn?.runId ?? '');
    return this.#replay.repeats(event) || (isShared && this.#duplicates.isCopy('events', event));
  }

  /** Begins a turn that the agent or another client started. */
  #beginByItself(event: Fields, stream: StreamName): void {
    const runId = runOf(event) ?? this.#options.newRunId();
    const input = runInputOf({ runId, threadId: threadOf(event) ?? '-', ...fieldsOf(event.input) });
    const messages = (input === null ? [] : newMessages(input.messages)).filter(({ role }) => role === 'user');
    if (messages.length > 0) {
      const ids = messages.flatMap(({ id, content }) => {
        const name = textOf(id);
        if (name === null) return [];
        this.#writer.userMessage(truncateText(name, MAX_ID_LENGTH), truncateWithNote(contentText(content)));
        return [truncateText(name, MAX_ID_LENGTH)];
      });
      this.#tasks.userTurnBegins();
      this.#begin({ kind: 'user', userMessageIds: ids }, runId);
    } else {
      const named = triggerOf(event);
      const woke = this.#tasks.takeTrigger();
      const parentRunId = textOf(event.parentRunId) ?? textOf(event.parent_run_id);
      const parent = parentRunId === null ? null : truncateText(parentRunId, MAX_ID_LENGTH);
      this.#begin({ kind: 'between-run', trigger: named ?? woke, parentRunId: parent }, runId);
    }
    this.#floor = stream;
  }

  #write(event: Fields): void {
    const { type } = event;
    if (type === 'CUSTOM' && this.#tasks.readCustom(textOf(event.name), event.value)) return;
    if (typeof type !== 'string') {
      this.#writer.emit(unreadable(event));
      return;
    }
    if (type.startsWith('ACTIVITY_') && this.#tasks.readActivity(event)) return;
    if (type.startsWith('SUBAGENT_') && this.#tasks.readSubagent(event)) return;
    if (this.#events.read(event)) return;
    for (const one of forwardedEvents(event)) this.#writer.emit(one);
  }

  #finish(event: Fields): void {
    const end = endOf(event, this.#isInterrupted);
    if (end.kind === 'success') this.#requests.runFinished(event);
    else this.#requests.runAborted();
    const { first } = this.#replay;
    if (this.#floor === 'events' && this.#floorRun !== null && first !== null && this.#replay.isOf(this.#floorRun))
      setBounded(this.#firstEvents, this.#floorRun, first, MAX_RUNS);
    const { result } = event;
    const isKept = typeof result === 'object' && result !== null && JSON.stringify(result).length <= MAX_RESULT;
    this.#writer.finish(end, isKept ? { result } : {});
    this.#release();
  }

  #streamEnded({ stream, runId, reason, isAsked, isReopened }: Extract<StreamFrame, { kind: 'ended' }>): void {
    if (stream === 'events') this.#decideRestart(null);
    if (stream === 'events' && !isReopened) this.#eventsRun = null;
    const isOpen = this.#floor === stream || (isAsked && runId !== null && this.#writer.turn?.runId === runId);
    if (!isOpen) {
      if (stream === 'run') this.#duplicates.clear();
    } else if (isReopened) this.#broken = { reason, dueAt: this.#now + RESUME_MS };
    else if (stream === 'run' && !isAsked && this.#isOnEventStream()) {
      // The event stream also carries the run and continues the turn; duplicates are dropped.
      setBounded(this.#announced, runId ?? '', true, MAX_EARLY);
      this.#floor = 'events';
    } else if (stream === 'events') this.#failTurn(`${EVENTS_BROKE}: ${reason ?? CLOSED}.`, isAsked);
    else this.#failTurn(`The stream of this turn broke before its end: ${reason ?? CLOSED}.`, isAsked);
  }

  /** True if the event stream also carries the open run: events of that run are waiting for the floor. */
  #isOnEventStream(): boolean {
    const names = [this.#floorRun, this.#writer.turn?.runId];
    return this.#waiting.events.some(
      (frame) => frame.kind === 'event' && names.includes(runOf(frame.event) ?? undefined),
    );
  }

  /** Fails the open turn if its event stream did not resume. */
  #breakTurn(): void {
    const reason = this.#broken?.reason ?? CLOSED;
    if (this.#broken !== null) this.#failTurn(`${EVENTS_BROKE} and did not resume: ${reason}.`, false);
  }

  #failTurn(message: string, isAsked: boolean): void {
    this.#cutTurn(isAsked ? { kind: 'cancelled' } : { kind: 'failed', message, code: 'stream_broken' });
  }

  /** Ends the open turn before its run has ended. */
  #cutTurn(end: TurnEnd, isInferred = false): void {
    this.#markCut();
    this.#requests.runAborted();
    this.#writer.finish(end, { isInferred });
    this.#release();
  }

  /** Later events of the open turn continue in a new one. */
  #markCut(): void {
    if (this.#writer.turn === null) return;
    for (const run of [this.#floorRun, this.#writer.turn?.runId ?? null])
      if (run !== null) setBounded(this.#cutRuns, run, true, MAX_RUNS);
  }

  #release(): void {
    this.#floor = null;
    this.#broken = null;
    this.#isInterrupted = false;
  }
}

const EVENTS_BROKE = 'The event stream broke during this turn';
const CLOSED = 'it was closed';
