import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { ToldEvent, WireAdapterOptions, WireEnd } from '../wire';
import { fittingText } from '../writer/long-text';
import { SessionWriter, type TurnCause } from '../writer/session-writer';
import { type AgUiFrame, newMessages, type RunInput, runInputOf, type StreamName } from './agui-frames';
import { Asks } from './asks';
import { BackgroundTasks } from './background-tasks';
import { Copies, digestOf, Replay } from './copies';
import { contentText, endOf, isAboutTask, runOf, threadOf, triggerIn, unheardNotice } from './event-words';
import { isTooDeep, passedOn, unreadable } from './passed-on';
import { PostedRuns } from './posted-runs';
import { isOfTurn, RunWords } from './run-words';

export interface AgUiAdapterOptions extends WireAdapterOptions {
  /** The agent runs on this machine: the output files that it names are this machine's. */
  isHere?: boolean;
  /** Runs and tasks that ended before this process: a server that replays them adds nothing. */
  ended?: EndedWork;
}

/** By their names on the wire, the newest last. */
export interface EndedWork {
  /** Of a run that came on the stream of events alone, the digest of its first event: servers reuse names. */
  runs: readonly (readonly [name: string, first: string | null])[];
  tasks: readonly string[];
  /** Runs whose turns were closed before the agent ended them. Their later events continue in a new turn. */
  cut?: readonly string[];
}

type StreamFrame = Extract<AgUiFrame, { stream: StreamName }>;

/** How long a run that was posted waits for the end of a turn that the agent has begun by itself. */
const FLOOR_MS = 2_000;
/** How long a turn waits for its broken stream of events to resume. */
const RESUME_MS = 25_000;
/** Most frames that wait for the floor; beyond it they are told where they are. */
const MAX_WAITING = 2_000;
/** Most runs that are remembered, and most of those that may arrive on both streams. */
const MAX_RUNS = 512;
const MAX_EARLY = 16;
/** Most ended runs, and tasks, that are handed to the next process. */
const MAX_STORED = 64;
const MAX_RESULT = 64 * 1024;

/**
 * One thread of an AG-UI server.
 *
 * Ordering: one turn at a time, whichever stream carries it. Events of another turn wait for its end.
 */
export class AgUiThread {
  readonly #writer: SessionWriter;
  readonly #options: AgUiAdapterOptions;
  readonly #tasks: BackgroundTasks;
  readonly #asks: Asks;
  readonly #words: RunWords;
  readonly #threads = new Map<string, true>();
  readonly #posted = new PostedRuns();
  /** Runs that are over, or were told by the stream of their own POST. */
  readonly #over = new Map<string, true>();
  /** Digests of the first events of runs that came on the stream of events alone. */
  readonly #firsts = new Map<string, string>();
  /** Turns that were ended before their agent had said so. */
  readonly #cut = new Map<string, true>();
  readonly #copies = new Copies();
  /** Digest of the first event in the stream of the last posted run. */
  #firstPosted: string | null = null;
  readonly #replay = new Replay();
  /** Posted runs that the stream of events announced before their POST was answered. */
  readonly #early = new Map<string, true>();
  readonly #waiting: Record<StreamName, StreamFrame[]> = { run: [], events: [] };
  /** Whose turn is open, and what its stream calls the run. */
  #floor: StreamName | null = null;
  #floorRun: string | null = null;
  /** By the events' own words: which run they are about. */
  #eventsRun: string | null = null;
  #isOwnStream = false;
  #isInterrupted = false;
  #floorDueAt: number | null = null;
  /** The stream of events broke in the middle of its turn and is being reopened. */
  #broken: { reason: string | null; dueAt: number } | null = null;
  /**
   * A RUN_STARTED that reuses the name of an ended run, or answers the message of the last one under another name: the next
   * event shows whether it is a replay. Task events wait until then.
   */
  #restarted: { started: Fields; aboutTasks: Fields[] } | null = null;
  #now = 0;
  #askedAbout: string[] = [];

  constructor(threadId: string, options: AgUiAdapterOptions) {
    this.#options = options;
    if (threadId !== '') this.#threads.set(threadId, true);
    const { sessionOf, newRunId, isReplay } = options;
    this.#writer = new SessionWriter({ sessionId: sessionOf(threadId), newRunId, isReplay });
    this.#tasks = new BackgroundTasks(this.#writer, options.isHere ?? false, options.ended?.tasks);
    this.#asks = new Asks(this.#writer);
    this.#words = new RunWords(this.#writer, this.#asks);
    const { runs = [], cut = [] } = options.ended ?? {};
    for (const run of [...runs.map(([name]) => name), ...cut]) this.#over.set(run, true);
    for (const run of cut) this.#cut.set(run, true);
    for (const [run, first] of runs) if (first !== null) this.#firsts.set(run, first);
  }

  get dueAt(): number | null {
    const resume = this.#broken?.dueAt ?? null;
    return this.#floorDueAt === null || resume === null
      ? (this.#floorDueAt ?? resume)
      : Math.min(this.#floorDueAt, resume);
  }

  get endedWork(): EndedWork {
    const goesOn = (run: string) => this.#cut.has(run) || (this.#floor !== null && run === this.#floorRun);
    const runs = [...this.#over.keys()].filter((run) => !goesOn(run));
    const named = runs.slice(-MAX_STORED).map((run) => [run, this.#firsts.get(run) ?? null] as const);
    return { runs: named, tasks: this.#tasks.ended.slice(-MAX_STORED) };
  }

  read(frame: AgUiFrame, now: number): ToldEvent[] {
    this.#at(now);
    switch (frame.kind) {
      case 'post':
        this.#posted.add(frame.input);
        remember(this.#threads, frame.input.threadId, true, MAX_RUNS);
        break;
      case 'interrupted':
        this.#isInterrupted = this.#writer.turn !== null;
        break;
      case 'tasks-asked':
        this.#askedAbout = [...frame.about, ...this.#writer.openTasks];
        break;
      case 'tasks':
        if (frame.isKnown) this.#tasks.readList(frame.body, this.#askedAbout);
        else if (frame.isDeaf) this.#tasks.lose(this.#askedAbout);
        break;
      case 'other':
        break;
      default:
        this.#heard(frame, now);
    }
    return this.#writer.take();
  }

  elapsed(now: number): ToldEvent[] {
    this.#at(now);
    if (this.#broken !== null && this.#broken.dueAt <= now) {
      this.#breakTurn();
      this.#drain();
      this.#clock(now);
    }
    if (this.#floorDueAt !== null && this.#floorDueAt <= now) {
      this.#cutShort();
      this.#drain();
      this.#clock(now);
    }
    return this.#writer.take();
  }

  ended(end: WireEnd, now: number): ToldEvent[] {
    this.#at(now);
    for (const frame of [...this.#waiting.run.splice(0), ...this.#waiting.events.splice(0)]) this.#take(frame);
    this.#decideRestart(null);
    this.#markCut();
    this.#asks.runBrokenOff();
    this.#writer.end(end, end.goesOn !== undefined);
    this.#release();
    this.#floorDueAt = null;
    return this.#writer.take();
  }

  #at(now: number): void {
    this.#now = now;
    this.#writer.at(now);
  }

  #heard(frame: StreamFrame, now: number): void {
    const waiting = this.#waiting[frame.stream];
    if (this.#mustWait(frame) && waiting.length < MAX_WAITING) waiting.push(frame);
    else {
      // What waited comes first, wherever that puts it: nothing is dropped and nothing overtakes.
      if (waiting.length >= MAX_WAITING) for (const one of waiting.splice(0)) this.#take(one);
      this.#take(frame);
      this.#drain();
    }
    this.#clock(now);
  }

  #mustWait(frame: StreamFrame): boolean {
    if (frame.stream === 'run') {
      if (frame.runId !== null && this.#early.has(frame.runId)) return false;
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

  /** A person's run does not wait for ever: a turn whose end got lost would hold it up. */
  #clock(now: number): void {
    const isHeldUp = this.#floor === 'events' && this.#waiting.run.length > 0;
    this.#floorDueAt = isHeldUp ? (this.#floorDueAt ?? now + FLOOR_MS) : null;
  }

  #cutShort(): void {
    if (this.#broken !== null) {
      this.#breakTurn();
      return;
    }
    this.#markCut();
    this.#asks.runBrokenOff();
    this.#writer.finish({ kind: 'success' }, { isInferred: true });
    this.#release();
  }

  #take(frame: StreamFrame): void {
    if (frame.kind === 'unreadable') this.#writer.pass(unreadable(frame.what));
    else if (frame.kind === 'opened') this.#listens(frame);
    else if (frame.kind === 'answered') this.#accepted(frame.runId, frame.isAccepted);
    else if (frame.kind === 'ended') this.#streamEnded(frame);
    else if (isTooDeep(frame.event)) for (const one of passedOn(frame.event)) this.#writer.pass(one);
    else if (frame.stream === 'run') this.#runEvent(frame.event, frame.runId);
    else this.#betweenEvent(frame.event);
  }

  #listens({ isOwn, threadId, unheardSince }: Extract<StreamFrame, { kind: 'opened' }>): void {
    this.#isOwnStream = isOwn;
    if (threadId !== null) remember(this.#threads, threadId, true, MAX_RUNS);
    if (unheardSince !== null) this.#writer.notice(unheardNotice(unheardSince, this.#now), 'warning');
  }

  /** The server has taken a run: from here on a turn answers what it was asked. */
  #accepted(runId: string, isAccepted: boolean): void {
    if (isAccepted && this.#early.has(runId) && this.#writer.turn?.runId === runId) {
      // Its own stream carries it from here on; `copies` drops what the other one has carried already.
      this.#floor = 'run';
      this.#broken = null;
    }
    const input = this.#posted.take(runId);
    if (input === undefined || !isAccepted) return;
    this.#copies.clear();
    this.#beginAsked(runId, input);
    this.#floor = 'run';
  }

  /** The stream of events announces a posted run before its POST is answered. @param name the name the server gives it */
  #beginEarly(runId: string, name: string | null): void {
    const input = this.#posted.take(runId);
    if (input === undefined) return;
    this.#breakTurn();
    this.#copies.clear();
    this.#beginAsked(runId, input);
    remember(this.#early, runId, true, MAX_EARLY);
    if (name !== null) this.#floorRun = name;
    if (name !== null) remember(this.#over, name, true, MAX_RUNS);
    this.#floor = 'events';
  }

  #beginAsked(runId: string, input: RunInput): void {
    this.#firstPosted = null;
    const asked = this.#posted.newlyAsked(input);
    for (const { id, content } of asked) this.#writer.dashboardMessage(id, fittingText(contentText(content)));
    this.#tasks.userTurnBegins();
    this.#begin({ kind: 'user', userMessageIds: asked.map(({ id }) => id) }, runId);
    this.#asks.answeredBy(input);
  }

  #begin(cause: TurnCause, runId: string): void {
    const id = truncateText(runId, MAX_ID_LENGTH);
    this.#isInterrupted = false;
    this.#floorRun = id;
    // The same name twice is two turns: the first was told to its end.
    if (this.#over.has(id)) this.#writer.begin(cause);
    else this.#writer.begin(cause, id);
    remember(this.#over, id, true, MAX_RUNS);
  }

  #runEvent(event: Fields, postedId: string | null): void {
    const thread = threadOf(event);
    if (thread !== null) remember(this.#threads, thread, true, MAX_RUNS);
    const isEarly = postedId !== null && this.#early.has(postedId) && this.#floor !== 'run';
    if (event.type === 'RUN_STARTED') {
      if (isEarly) return;
      if (this.#floor === 'run') {
        // Its own name for the run that is open already.
        const named = runOf(event);
        if (named !== null) remember(this.#over, named, true, MAX_RUNS);
      } else this.#beginByItself(event, 'run');
      return;
    }
    if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
      if (postedId !== null) for (const runs of [this.#early, this.#cut]) runs.delete(postedId);
      if (this.#floor === 'run') this.#finish(event);
      return;
    }
    this.#firstPosted ??= digestOf(event);
    if (this.#copies.isCopy('run', event)) return;
    if (postedId !== null && this.#cut.has(postedId) && isOfTurn(event) && this.#floor === null) {
      this.#continue(postedId, postedId, 'run');
    }
    this.#tell(event);
  }

  /** The rest of a turn that was taken for ended, or whose beginning was not heard. */
  #continue(runId: string, parentRunId: string | null, stream: StreamName): void {
    this.#begin({ kind: 'between-run', trigger: this.#tasks.wokeNow(), parentRunId }, runId);
    this.#floor = stream;
  }

  #betweenEvent(event: Fields): void {
    const thread = threadOf(event);
    if (thread !== null && this.#threads.size === 0) this.#threads.set(thread, true);
    // The stream of all threads: what is another's belongs to the runner of that one.
    if (thread !== null && !this.#isOwnStream && !this.#threads.has(thread)) return;
    if (isAboutTask(event)) {
      if (this.#restarted !== null && this.#restarted.aboutTasks.length >= MAX_WAITING) this.#decideRestart(null);
      if (this.#restarted === null) this.#tell(event);
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
    // Its RUN_STARTED was missed.
    if (about !== null && !isEnd && this.#floor !== 'run' && this.#posted.has(about)) this.#beginEarly(about, about);
    if (this.#floor === 'events' && (about === null || about === this.#floorRun)) {
      this.#broken = null;
      if (isEnd) this.#finish(event);
      else if (!this.#isTold(event)) this.#tell(event);
      return;
    }
    const isKnown = about !== null && this.#over.has(about);
    if (isEnd || (isKnown && !this.#cut.has(about)) || this.#copies.isCopy('events', event)) return;
    if (this.#replay.isOf(about) && this.#replay.repeats(event)) return;
    if (about !== null && isOfTurn(event) && this.#floor === null) {
      this.#continue(about, isKnown ? about : null, 'events');
    }
    this.#tell(event);
  }

  /** On the stream of events. */
  #runStarts(event: Fields, run: string | null): void {
    const posted = this.#posted.idIn(event);
    const goesOn = this.#floor === 'events' && run === this.#floorRun;
    if (this.#replay.isOf(run) && (goesOn || this.#cut.has(run ?? ''))) {
      this.#replay.restart();
      if (goesOn) this.#broken = null;
    } else if (this.#floor === 'run') return;
    else if (posted !== null) {
      this.#beginEarly(posted, run);
      this.#replay.begin(run);
    } else if (run !== null && (this.#firsts.has(run) || (!this.#over.has(run) && this.#posted.isLast(event)))) {
      this.#restarted = { started: event, aboutTasks: [] };
    } else if (run === null || !this.#over.has(run)) this.#beginOwn(event, run);
  }

  #beginOwn(event: Fields, run: string | null): void {
    this.#breakTurn();
    this.#beginByItself(event, 'events');
    this.#replay.begin(run);
  }

  /** @param event the first behind a RUN_STARTED that reuses a name; null: there is none */
  #decideRestart(event: Fields | null): void {
    const restarted = this.#restarted;
    if (restarted === null) return;
    this.#restarted = null;
    const run = runOf(restarted.started);
    const first = this.#posted.isLast(restarted.started) ? this.#firstPosted : null;
    const isReplay = event === null || run === null || [first, this.#firsts.get(run)].includes(digestOf(event));
    if (isReplay && run !== null) remember(this.#over, run, true, MAX_RUNS);
    if (!isReplay) this.#beginOwn(restarted.started, run);
    for (const one of restarted.aboutTasks) this.#tell(one);
  }

  /** Whether an event of the open turn is a duplicate: from a replay, or from the run's own stream. */
  #isTold(event: Fields): boolean {
    const isShared = this.#early.has(this.#writer.turn?.runId ?? '');
    return this.#replay.repeats(event) || (isShared && this.#copies.isCopy('events', event));
  }

  /** A turn that the agent begins, or that somebody else has asked for. */
  #beginByItself(event: Fields, stream: StreamName): void {
    const runId = runOf(event) ?? this.#options.newRunId();
    const input = runInputOf({ runId, threadId: threadOf(event) ?? '-', ...fieldsOf(event.input) });
    const asked = (input === null ? [] : newMessages(input.messages)).filter(({ role }) => role === 'user');
    if (asked.length > 0) {
      const ids = asked.flatMap(({ id, content }) => {
        const name = textOf(id);
        if (name === null) return [];
        this.#writer.userMessage(truncateText(name, MAX_ID_LENGTH), fittingText(contentText(content)));
        return [truncateText(name, MAX_ID_LENGTH)];
      });
      this.#tasks.userTurnBegins();
      this.#begin({ kind: 'user', userMessageIds: ids }, runId);
    } else {
      const told = triggerIn(event);
      const woke = this.#tasks.wokeNow();
      const parentRunId = textOf(event.parentRunId) ?? textOf(event.parent_run_id);
      const parent = parentRunId === null ? null : truncateText(parentRunId, MAX_ID_LENGTH);
      this.#begin({ kind: 'between-run', trigger: told ?? woke, parentRunId: parent }, runId);
    }
    this.#floor = stream;
  }

  #tell(event: Fields): void {
    const { type } = event;
    if (type === 'CUSTOM' && this.#tasks.readCustom(textOf(event.name), event.value)) return;
    if (typeof type !== 'string') {
      this.#writer.pass(unreadable(event));
      return;
    }
    if (type.startsWith('ACTIVITY_') && this.#tasks.readActivity(event)) return;
    if (type.startsWith('SUBAGENT_') && this.#tasks.readSubagent(event)) return;
    if (this.#words.read(event)) return;
    for (const one of passedOn(event)) this.#writer.pass(one);
  }

  #finish(event: Fields): void {
    const end = endOf(event, this.#isInterrupted);
    if (end.kind === 'success') this.#asks.runFinished(event);
    else this.#asks.runBrokenOff();
    const { first } = this.#replay;
    if (this.#floor === 'events' && this.#floorRun !== null && first !== null && this.#replay.isOf(this.#floorRun))
      remember(this.#firsts, this.#floorRun, first, MAX_RUNS);
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
      if (stream === 'run') this.#copies.clear();
    } else if (isReopened) this.#broken = { reason, dueAt: this.#now + RESUME_MS };
    else if (stream === 'run' && !isAsked && this.#isToldByEvents()) {
      // Both carried the run: the stream of events goes on with it, and `copies` drops the duplicates.
      remember(this.#early, runId ?? '', true, MAX_EARLY);
      this.#floor = 'events';
    } else if (stream === 'events') this.#failTurn(`${EVENTS_BROKE}: ${reason ?? CLOSED}.`, isAsked);
    else this.#failTurn(`The stream of this turn broke before its end: ${reason ?? CLOSED}.`, isAsked);
  }

  /** Whether the stream of events carries the open run, too: its events have waited for the floor. */
  #isToldByEvents(): boolean {
    const names = [this.#floorRun, this.#writer.turn?.runId];
    return this.#waiting.events.some(
      (frame) => frame.kind === 'event' && names.includes(runOf(frame.event) ?? undefined),
    );
  }

  /** Fails the open turn if its stream of events broke and did not resume. */
  #breakTurn(): void {
    const reason = this.#broken?.reason ?? CLOSED;
    if (this.#broken !== null) this.#failTurn(`${EVENTS_BROKE} and did not resume: ${reason}.`, false);
  }

  #failTurn(message: string, isAsked: boolean): void {
    this.#markCut();
    this.#asks.runBrokenOff();
    this.#writer.finish(isAsked ? { kind: 'cancelled' } : { kind: 'failed', message, code: 'stream_broken' });
    this.#release();
  }

  /** Later events of the open turn continue in a new one. */
  #markCut(): void {
    if (this.#writer.turn === null) return;
    for (const run of [this.#floorRun, this.#writer.turn?.runId ?? null])
      if (run !== null) remember(this.#cut, run, true, MAX_RUNS);
  }

  #release(): void {
    this.#floor = null;
    this.#broken = null;
    this.#isInterrupted = false;
  }
}

const EVENTS_BROKE = 'The stream of events broke in the middle of this turn';
const CLOSED = 'it was closed';
