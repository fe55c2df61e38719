import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { CUSTOM } from '@interlude/protocol/ag-ui';
import { cutText } from '@interlude/protocol/cut-text';
import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import { AgUiAdapter } from '../../adapters/agui/agui-adapter';
import { remember } from '../../adapters/remember';
import type { ToldEvent, WireFrame } from '../../adapters/wire';
import type { CommandOutcome } from '../../commands/seen-commands';
import { InFlightMessages } from '../../host/message-delivery';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed, messageText, noticeEvent, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { retryMs } from '../../retry';
import { isLoopback } from '../../wire/loopback';
import { noAnswerAt, statusBehindGateway } from '../../wire/no-answer-at';
import { patientRequest } from '../../wire/patient-request';
import { shownUrl } from '../../wire/shown-url';
import { WireFeed } from '../../wire/wire-feed';
import { agUiEndpoints, BackgroundEvents, RunControls } from './agui-endpoints';
import { InterruptAnswers, type ResumeEntry } from './interrupt-answers';
import { type HistoryMessage, RunHistory } from './run-history';
import { QUOTED, RunRequest } from './run-request';

/**
 * One session of an AG-UI server: each message is a run that is posted, and what the agent does between runs is listened
 * to.
 *
 * Ordering: one run at a time; messages wait for theirs in the order in which they came, an answer goes before them.
 * Failure: what could not be sent is sent once the server is there; what was sent, and whose fate is not known, is not
 * sent again. A run whose stream breaks has failed.
 */
export interface AgUiSourceOptions {
  context: SourceContext;
  url: string;
  sessionId: string;
  eventsPath?: string | undefined;
  /** Whether each run is given the whole conversation, or only what is new. */
  history: 'all' | 'none';
  /** Sent with each request. */
  headers: Record<string, string>;
  record?: ((frame: WireFrame) => void) | undefined;
  /** Said to the agent before its first message. */
  workspaceNote?: string | null;
  now?: () => number;
  random?: () => number;
  /** Shorter in tests. */
  waits?: { longestMs?: number; missingMs?: number; beginMs?: number; trailMs?: number };
}

/** What waits for a run of its own. */
interface Waiting {
  /** Null for an answer. */
  messageId: string | null;
  text: string;
  resume: ResumeEntry[];
  results: HistoryMessage[];
  /** Once it is its turn: a message may have become an answer by then. */
  messages(): HistoryMessage[];
  settle(outcome: CommandOutcome): void;
}

/** How long a run's stream may stay open behind its end while another run waits. */
const TRAIL_MS = 2_000;
/** How long a server may take to interrupt a run before its stream is cut. */
const INTERRUPT_MS = 10_000;
const REQUEST_MS = 15_000;
/** Most messages that are known to have been given. */
const MAX_SAYING = 1_000;
const HISTORY = 'agui-history:';
const ENDED = 'agui-ended:';
const CHECK = 'Whether it has the message is not known: look what it does, and write again if nothing comes of it.';
const UNCERTAIN = `the runner was stopped before the agent had answered. ${CHECK}`;

export class AgUiSource implements Source {
  readonly refusals = {
    'session.end': 'AG-UI has no way to end a session: the agent’s server keeps it',
    'task.wake': 'AG-UI has no way to wake an agent with the result of a task; write to it instead',
    'wake-rule.set': 'AG-UI has no way to wake an agent with the result of a task',
  };
  readonly #options: AgUiSourceOptions;
  readonly #context: SourceContext;
  readonly #sessionId: string;
  readonly #adapter: AgUiAdapter;
  readonly #feed: WireFeed;
  readonly #answers: InterruptAnswers;
  readonly #beside: RunControls;
  readonly #between: BackgroundEvents;
  readonly #ending = new AbortController();
  readonly #line: Waiting[] = [];
  readonly #saying = new Map<string, Promise<CommandOutcome>>();
  /** Messages that the process before this one had begun to send. */
  readonly #uncertain = new Set<string>();
  /** Interrupts that a process before this one left: nobody can answer them any more. */
  #abandoned: ResumeEntry[] = [];
  #history = new RunHistory(undefined);
  #inHand: InFlightMessages | null = null;
  #run: RunRequest | null = null;
  #posting: Promise<void> | null = null;
  #listening: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #unreachable: string | null = null;
  /**
   * Its tasks may have ended with it: those that it does not list once it is back are lost. Null until it was asked for
   * the first time.
   */
  #wasLost: boolean | null = null;
  /** Whether an event has come since the address was last asked in vain; null: it answers. */
  #hasSpoken: boolean | null = null;
  #note: string | null;

  constructor(options: AgUiSourceOptions) {
    const { context, url, sessionId, eventsPath, headers, record, waits = {}, now, random } = options;
    this.#options = options;
    this.#context = context;
    this.#sessionId = sessionId;
    this.#note = options.workspaceNote ?? null;
    const addresses = agUiEndpoints(url, sessionId, eventsPath);
    this.#adapter = new AgUiAdapter({ sessionOf: () => sessionId, newRunId: randomUUID, isHere: isLoopback(url) });
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      around: context,
      record,
      onTold: (told) => this.#told(told),
      onAnswered: (_, messageIds) => this.#inHand?.remove(messageIds),
      ...(now ? { now } : {}),
    });
    this.#answers = new InterruptAnswers(sessionId, ({ messages, ...answer }) =>
      this.#wait({
        ...answer,
        messageId: null,
        text: '',
        messages: () => messages,
        settle: (said) => this.#unheard(said),
      }),
    );
    this.#beside = new RunControls({
      ...{ addresses, headers, log: context.log, signal: this.#ending.signal },
      pass: (dir, msg) => this.#pass(dir, msg),
    });
    this.#between = new BackgroundEvents({
      ...{ addresses, headers, ...waits, ...(random ? { random } : {}), ...(now ? { now } : {}) },
      onOpened: (path, isOwn, unheardSince) => {
        const missed = unheardSince === null ? {} : { unheardSince };
        void this.#pass('in', { stream: 'events', opened: path, threadId: sessionId, isOwn, ...missed });
        void this.#askTasks();
      },
      onEvent: (event, data) => {
        const what = data === null ? { event } : { text: cutText(data, QUOTED) };
        void this.#pass('in', { stream: 'events', ...what });
      },
      onEnded: (reason, isReopened) =>
        void this.#pass('in', { stream: 'events', ended: reason, ...(isReopened ? { isReopened } : {}) }),
      onMissing: () => void this.#askTasks(),
      onChanged: () => context.changed(),
      log: context.log,
      signal: this.#ending.signal,
    });
  }

  get sessions(): SessionFacts[] {
    const troubles = [this.#unreachable, this.#between.deafness].filter((text) => text !== null);
    return [
      {
        sessionId: this.#sessionId,
        attachments: [],
        pendingMessages: (this.#inHand?.all.length ?? 0) + this.#line.length,
        ...(troubles.length === 0 ? {} : { trouble: troubles.join(' ') }),
        ...(this.#beside.hasTasks ? {} : { limits: ['This server lists no background tasks, and can stop none.'] }),
      },
    ];
  }

  async start(): Promise<void> {
    const open = this.#context.openWork(this.#sessionId);
    const inHand = await InFlightMessages.recall(this.#context, this.#sessionId);
    this.#inHand = inHand;
    const stored = await this.#context.cursors(HISTORY);
    this.#history = new RunHistory(stored.get(HISTORY + this.#sessionId));
    const ended = fieldsOf(parseJson((await this.#context.cursors(ENDED)).get(ENDED + this.#sessionId) ?? '{}'));
    const cut = open.turn === null ? [] : [open.turn.runId];
    const runs = listOf(ended.runs).flatMap((one): [string, string | null][] => {
      const [name, first] = listOf(one).map(textOf);
      return name ? [[name, first ?? null]] : [];
    });
    this.#adapter.recall({ runs, tasks: listOf(ended.tasks).flatMap((id) => textOf(id) ?? []), cut });
    if (!this.#history.isEmpty) this.#note = null;
    const left = open.requests.filter((id) => id !== this.#history.question);
    this.#abandoned = left.map((interruptId) => ({ interruptId, status: 'cancelled' }));
    // Tasks are the server's: they may run on, and their ends are asked for.
    const ends = endsOf({ ...open, tasks: [] }, this.#sessionId, this.#now());
    if (ends.length > 0) await this.#context.emit(this.#sessionId, ends);
    else await this.#context.opened(this.#sessionId);
    const answered = new Set(open.turn?.userMessageIds);
    for (const { messageId } of inHand.all) if (!answered.has(messageId)) this.#uncertain.add(messageId);
    inHand.remove(inHand.all.map(({ messageId }) => messageId));
    this.#listening = this.#between.listen(!this.#history.isEmpty || runs.length > 0);
  }

  async reach(): Promise<string | null> {
    const { url, headers } = this.#options;
    const status = await statusBehindGateway(this.#between.lastStatus, async (withinMs) => {
      const answer = await patientRequest(url, { headers, signal: AbortSignal.timeout(withinMs) });
      await answer.body?.cancel();
      return answer;
    });
    const refusal = await noAnswerAt(url, status);
    // A server that is being stopped takes no connections and finishes its runs.
    const why = this.#hasSpoken === true ? null : refusal;
    this.#hasSpoken = refusal === null ? null : false;
    if (why === null && this.#wasLost) await this.#askTasks();
    // Dead as the runner starts, it may be so since the one before: that had tasks, too.
    this.#wasLost ??= why !== null;
    return why;
  }

  async lost(reason: string): Promise<void> {
    this.#wasLost = true;
    await this.#feed.ended({ reason, goesOn: 'It is tried again by itself.' });
  }

  close(deadlineMs: number, reason: string): Promise<void> {
    if (deadlineMs <= 0) this.#run?.cut(reason);
    this.#closing ??= this.#end(deadlineMs, reason);
    return this.#closing;
  }

  async #end(deadlineMs: number, reason: string): Promise<void> {
    this.#line.length = 0;
    // What can't be sent would wait for a server that may never come.
    if (this.#run === null) this.#ending.abort();
    const early = new AbortController();
    const deadline = pause(deadlineMs, undefined, { signal: early.signal }).catch(() => undefined);
    await Promise.race([this.#posting, deadline]);
    early.abort();
    this.#ending.abort();
    this.#run?.cut(reason);
    await this.#posting;
    await this.#listening;
    this.#feed.close();
  }

  say({ body }: CommandOf<'message'>, again: boolean): Promise<CommandOutcome> {
    const { messageId } = body;
    const known = this.#saying.get(messageId);
    if (known !== undefined) return known;
    if (again && this.#uncertain.has(messageId)) return Promise.resolve(doubtful(UNCERTAIN));
    const text = messageText(body);
    const saying = new Promise<CommandOutcome>((settle) => {
      this.#wait({
        messageId,
        text,
        resume: [],
        results: [],
        messages: () => this.#messageOf(messageId, text),
        settle,
      });
    });
    remember(this.#saying, messageId, saying, MAX_SAYING);
    return saying;
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const running = this.#context.openWork(this.#sessionId).turn?.runId;
    if (running === undefined) return failed('nothing is running now');
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    const isTaken = await this.#beside.interrupt();
    const run = this.#run;
    if (run === null || run.isOver) {
      if (isTaken) return { state: 'done' };
      return failed('the agent has begun this turn by itself, and its server has no way to interrupt it');
    }
    if (!isTaken) run.cut('interrupted');
    else setTimeout(() => run.isOver || run.cut('interrupted'), INTERRUPT_MS).unref();
    return { state: 'done' };
  }

  async stop({ body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const isOpen = this.#context.openWork(this.#sessionId).tasks.some(({ id }) => id === body.taskId);
    if (!isOpen) return failed('this task does not run any more');
    const refusal = await this.#beside.stop(body.taskId);
    if (refusal !== null) return failed(refusal);
    void this.#askTasks();
    return { state: 'done' };
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return outcomeOf(await this.#answers.answer(command));
  }

  /** A message that finds a question open is its answer: the call must have a result before anything else is said. */
  #messageOf(messageId: string, text: string): HistoryMessage[] {
    const { question } = this.#history;
    const content = this.#note === null ? text : `${this.#note}\n\n${text}`;
    if (question === null) return [{ id: messageId, role: 'user', content }];
    return [{ id: messageId, role: 'tool', toolCallId: question, content }];
  }

  /** Answers go before messages. */
  #wait(one: Waiting): void {
    if (one.messageId === null) this.#line.unshift(one);
    else this.#line.push(one);
    this.#advance();
  }

  #advance(): void {
    if (this.#posting !== null || this.#closing !== null) return;
    const at = this.#line.findIndex(({ messageId }) => messageId === null || !this.#answers.isWaiting);
    const [next] = at < 0 ? [] : this.#line.splice(at, 1);
    if (next === undefined) return;
    this.#posting = this.#post(next).finally(() => {
      this.#posting = null;
      this.#run = null;
      this.#advance();
    });
  }

  async #post(waiting: Waiting): Promise<void> {
    for (let failures = 1; !this.#ending.signal.aborted; failures += 1) {
      const again = await this.#attempt(waiting);
      if (again === null) return;
      this.#trouble(`A message waits: ${again}. It is tried again.`);
      const { random = Math.random, waits } = this.#options;
      const waitMs = retryMs('unavailable', failures, random(), waits?.longestMs);
      await pause(waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  /** @returns why it is to be tried again, or null */
  async #attempt({ messageId, text, resume, results, messages, settle }: Waiting): Promise<string | null> {
    const { url, headers, history } = this.#options;
    const said = messages();
    const { log } = this.#context;
    let isTaken = false;
    const taken = () => {
      if (isTaken) return;
      isTaken = true;
      clearTimeout(slow);
      this.#trouble(null);
      this.#history.said([...said, ...results]);
      this.#abandoned = [];
      this.#note = null;
      settle({ state: 'delivered' });
    };
    const run = new RunRequest({
      ...{ url, headers, log, beginMs: this.#options.waits?.beginMs, onBegun: taken },
      pass: (dir, msg) => this.#pass(dir, msg),
      isHeard: () => this.#between.isOpen,
    });
    this.#run = run;
    if (messageId !== null) await this.#inHand?.put({ messageId, text });
    const resumed = [...this.#abandoned, ...resume];
    const answering = [
      ...resumed.map(({ interruptId }) => interruptId),
      ...results.flatMap(({ toolCallId }) => toolCallId ?? []),
    ];
    const slow = setTimeout(
      () => this.#trouble(`${shownUrl(url)} has not answered for ${REQUEST_MS / 1_000} s; a message waits.`),
      REQUEST_MS,
    );
    const verdict = await run.post({
      threadId: this.#sessionId,
      messages: history === 'all' ? this.#history.with(said, answering) : said,
      ...{ tools: [], context: [], state: {}, forwardedProps: {}, protocolVersion: '1.0' },
      ...(resumed.length === 0 ? {} : { resume: resumed }),
    });
    clearTimeout(slow);
    if (verdict.kind !== 'accepted') {
      this.#run = null;
      if (messageId !== null) this.#inHand?.remove([messageId]);
      if (verdict.kind === 'later') return verdict.reason;
      settle(verdict.kind === 'refused' ? failed(verdict.reason) : doubtful(`${verdict.reason}. ${CHECK}`));
      return null;
    }
    taken();
    await run.follow(() => this.#leaveTrail(run));
    return null;
  }

  /** A stream that stays open behind the end of its run is left once another run waits. */
  #leaveTrail(run: RunRequest): void {
    const look = setInterval(() => {
      if (!run.isOver || this.#run !== run) clearInterval(look);
      else if (this.#line.length > 0) run.cut('its run is over');
    }, this.#options.waits?.trailMs ?? TRAIL_MS);
    look.unref();
  }

  #told(told: readonly ToldEvent[]): void {
    this.#history.told(told);
    this.#answers.told(told);
    for (const { event } of told) {
      if (this.#run === null || event.runId !== this.#run.id) continue;
      if (event.type === 'RUN_STARTED') this.#run.told('begun');
      else if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
        this.#run.told('ended');
        this.#leaveTrail(this.#run);
      }
    }
    const isRunOver = told.some(({ event: { type } }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR');
    if (!isRunOver && !told.some(({ event: { name } }) => name === CUSTOM.taskCompleted)) return;
    const cursors = [{ name: ENDED + this.#sessionId, value: JSON.stringify(this.#adapter.endedWork) }];
    if (isRunOver) cursors.push({ name: HISTORY + this.#sessionId, value: this.#history.toString() });
    void this.#context.emit(this.#sessionId, [], cursors);
  }

  /** The command that gave an answer is done by then, so it is said here that it came to nothing. */
  #unheard({ state, reason }: CommandOutcome): void {
    if (state !== 'failed') return;
    this.#answers.forget();
    const text = `The answer did not reach the agent: ${reason}`;
    this.#context.log('error', text);
    void this.#context.emit(this.#sessionId, [noticeEvent(text, 'error', this.#now())]);
  }

  /** What the server knows of its tasks: after each connection, since ends may have been missed. */
  async #askTasks(): Promise<void> {
    const about = this.#context.openWork(this.#sessionId).tasks.map(({ id }) => id);
    const isDeaf = () => this.#between.isMissing || this.#wasLost === true;
    if ((await this.#beside.tasks(about, isDeaf)) && this.#wasLost) this.#wasLost = false;
    this.#context.changed();
  }

  #pass(dir: 'in' | 'out', msg: object): Promise<void> {
    if (this.#hasSpoken === false && 'event' in msg) this.#hasSpoken = true;
    return this.#feed.pass({ dir, msg });
  }

  #trouble(trouble: string | null): void {
    if (this.#unreachable === trouble) return;
    this.#unreachable = trouble;
    if (trouble !== null) this.#context.log('warn', trouble);
    this.#context.changed();
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Nobody but a person can tell whether the agent has it. */
function doubtful(reason: string): CommandOutcome {
  return { ...failed(reason), result: { mayHaveArrived: true } };
}
