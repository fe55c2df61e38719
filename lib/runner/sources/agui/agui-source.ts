import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import { truncateText } from '@interlude/protocol/text';
import { AgUiAdapter } from '../../adapters/agui/agui-adapter';
import type { EmittedEvent, WireFrame } from '../../adapters/wire';
import { setBounded } from '../../adapters/wire';
import { displayUrl, statusBehindGateway, unreachableReason, untimedRequest } from '../../host/agent-http';
import { InFlightMessages } from '../../host/message-delivery';
import type { CommandOutcome } from '../../host/seen-commands';
import { isLoopback, retryMs } from '../../host/server-request';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed, messageText, noticeEvent, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { WireFeed } from '../../host/wire-feed';
import { agUiEndpoints, BackgroundEvents, RunControls } from './agui-endpoints';
import { InterruptAnswers, type ResumeEntry } from './interrupt-answers';
import { type HistoryMessage, RunHistory } from './run-history';
import { QUOTED, RunRequest } from './run-request';

export interface AgUiSourceOptions {
  context: SourceContext;
  url: string;
  sessionId: string;
  eventsPath?: string | undefined;
  /** `all`: a run gets the whole conversation. `none`: it gets only new messages. */
  history: 'all' | 'none';
  headers: Record<string, string>;
  record?: ((frame: WireFrame) => void) | undefined;
  /** Prepended to the first message. */
  workspaceNote?: string | null;
  now?: () => number;
  random?: () => number;
  waits?: { longestMs?: number; missingMs?: number; beginMs?: number; trailMs?: number };
}

/** A queued run. */
interface Waiting {
  messageId: string | null;
  text: string;
  resume: ResumeEntry[];
  results: HistoryMessage[];
  /** Called when the run is posted, because a message may have become an answer by then. */
  messages(): HistoryMessage[];
  settle(outcome: CommandOutcome): void;
}

/** Time for which a stream may stay open after its run while another run waits. */
const TRAIL_MS = 2_000;
/** Time for an interrupt to take effect before the stream is cut. */
const INTERRUPT_MS = 10_000;
const REQUEST_MS = 15_000;
const MAX_DELIVERIES = 1_000;
const HISTORY = 'agui-history:';
const ENDED = 'agui-ended:';
const CHECK = 'It may or may not have the message. Check what it does, and send the message again if nothing happens.';
const UNCERTAIN = `the runner stopped before the agent responded. ${CHECK}`;

/**
 * Runs one session of an AG-UI server: each message posts a run, and a stream is read between runs.
 *
 * Ordering: one run at a time. Messages wait in order; answers go first.
 * Failure: unsent runs are retried until the server responds. Runs with an unknown outcome are not repeated. A run
 * whose stream breaks has failed.
 */
export class AgUiSource implements Source {
  readonly refusals = {
    'session.end': 'AG-UI can’t end a session; the server of the agent keeps it',
    'task.wake': 'AG-UI can’t wake an agent with the result of a task; send a message instead',
    'wake-rule.set': 'AG-UI can’t wake an agent with the result of a task',
  };
  readonly #options: AgUiSourceOptions;
  readonly #context: SourceContext;
  readonly #sessionId: string;
  readonly #adapter: AgUiAdapter;
  readonly #feed: WireFeed;
  readonly #answers: InterruptAnswers;
  readonly #controls: RunControls;
  readonly #background: BackgroundEvents;
  readonly #ending = new AbortController();
  readonly #queue: Waiting[] = [];
  readonly #deliveries = new Map<string, Promise<CommandOutcome>>();
  /** Messages that the previous process was sending when it ended. */
  readonly #uncertain = new Set<string>();
  /** Interrupts of an earlier process that can no longer be answered. */
  #abandoned: ResumeEntry[] = [];
  #history = new RunHistory(undefined);
  #inFlight: InFlightMessages | null = null;
  #run: RunRequest | null = null;
  #posting: Promise<void> | null = null;
  #listening: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #troubleText: string | null = null;
  /** True after an outage: tasks missing from the server's list are then lost. Null before the first probe. */
  #wasLost: boolean | null = null;
  /** True if an event arrived since the last failed probe; null while probes succeed. */
  #hasSentEvent: boolean | null = null;
  #workspaceNote: string | null;

  constructor(options: AgUiSourceOptions) {
    const { context, url, sessionId, eventsPath, headers, record, waits = {}, now, random } = options;
    this.#options = options;
    this.#context = context;
    this.#sessionId = sessionId;
    this.#workspaceNote = options.workspaceNote ?? null;
    const addresses = agUiEndpoints(url, sessionId, eventsPath);
    this.#adapter = new AgUiAdapter({ sessionOf: () => sessionId, newRunId: randomUUID, isLocal: isLoopback(url) });
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      context: context,
      record,
      onEmitted: (events) => this.#observe(events),
      onAnswered: (_, messageIds) => this.#inFlight?.remove(messageIds),
      ...(now ? { now } : {}),
    });
    this.#answers = new InterruptAnswers(({ messages, ...answer }) =>
      this.#enqueue({
        ...answer,
        messageId: null,
        text: '',
        messages: () => messages,
        settle: (added) => this.#reportLostAnswer(added),
      }),
    );
    this.#controls = new RunControls({
      ...{ addresses, headers, log: context.log, signal: this.#ending.signal },
      pass: (dir, msg) => this.#pass(dir, msg),
    });
    this.#background = new BackgroundEvents({
      ...{ addresses, headers, ...waits, ...(random ? { random } : {}), ...(now ? { now } : {}) },
      onOpened: (path, isOwn, unheardSince) => {
        const missed = unheardSince === null ? {} : { unheardSince };
        void this.#pass('in', { stream: 'events', opened: path, threadId: sessionId, isOwn, ...missed });
        void this.#refreshTasks();
      },
      onEvent: (event, data) => {
        const content = data === null ? { event } : { text: truncateText(data, QUOTED) };
        void this.#pass('in', { stream: 'events', ...content });
      },
      onEnded: (reason, isReopened) =>
        void this.#pass('in', { stream: 'events', ended: reason, ...(isReopened ? { isReopened } : {}) }),
      onMissing: () => void this.#refreshTasks(),
      onChanged: () => context.changed(),
      log: context.log,
      signal: this.#ending.signal,
    });
  }

  get sessions(): SessionFacts[] {
    const troubles = [this.#troubleText, this.#background.trouble].filter((text) => text !== null);
    return [
      {
        sessionId: this.#sessionId,
        attachments: [],
        pendingMessages: (this.#inFlight?.all.length ?? 0) + this.#queue.length,
        ...(troubles.length === 0 ? {} : { trouble: troubles.join(' ') }),
        ...(this.#controls.hasTasks ? {} : { limits: ['This server can’t list or stop background tasks.'] }),
      },
    ];
  }

  async start(): Promise<void> {
    const open = this.#context.openWork(this.#sessionId);
    const inFlight = await InFlightMessages.restore(this.#context, this.#sessionId);
    this.#inFlight = inFlight;
    const stored = await this.#context.cursors(HISTORY);
    this.#history = new RunHistory(stored.get(HISTORY + this.#sessionId));
    const ended = fieldsOf(parseJson((await this.#context.cursors(ENDED)).get(ENDED + this.#sessionId) ?? '{}'));
    const cut = open.turn === null ? [] : [open.turn.runId];
    const runs = listOf(ended.runs).flatMap((one): [string, string | null][] => {
      const [name, first] = listOf(one).map(textOf);
      return name ? [[name, first ?? null]] : [];
    });
    this.#adapter.restore({ runs, tasks: listOf(ended.tasks).flatMap((id) => textOf(id) ?? []), cut });
    if (!this.#history.isEmpty) this.#workspaceNote = null;
    const abandoned = open.requests.filter((id) => id !== this.#history.question);
    this.#abandoned = abandoned.map((interruptId) => ({ interruptId, status: 'cancelled' }));
    // Tasks may continue on the server, so they stay open until its task list arrives.
    const ends = endsOf({ ...open, tasks: [] }, this.#sessionId, this.#now());
    if (ends.length > 0) await this.#context.emit(this.#sessionId, ends);
    else await this.#context.announceSession(this.#sessionId);
    const answered = new Set(open.turn?.userMessageIds);
    for (const { messageId } of inFlight.all) if (!answered.has(messageId)) this.#uncertain.add(messageId);
    inFlight.remove(inFlight.all.map(({ messageId }) => messageId));
    this.#listening = this.#background.listen(!this.#history.isEmpty || runs.length > 0);
  }

  async reach(): Promise<string | null> {
    const { url, headers } = this.#options;
    const status = await statusBehindGateway(this.#background.lastStatus, async (withinMs) => {
      const response = await untimedRequest(url, { headers, signal: AbortSignal.timeout(withinMs) });
      await response.body?.cancel();
      return response;
    });
    const refusal = await unreachableReason(url, status);
    // A stopping server refuses connections but finishes its runs.
    const reason = this.#hasSentEvent === true ? null : refusal;
    this.#hasSentEvent = refusal === null ? null : false;
    if (reason === null && this.#wasLost) await this.#refreshTasks();
    // A server that is unreachable at startup counts as an outage of the previous process.
    this.#wasLost ??= reason !== null;
    return reason;
  }

  async lost(reason: string): Promise<void> {
    this.#wasLost = true;
    await this.#feed.ended({ reason, goesOn: 'Retrying.' });
  }

  close(deadlineMs: number, reason: string): Promise<void> {
    if (deadlineMs <= 0) this.#run?.cut(reason);
    this.#closing ??= this.#end(deadlineMs, reason);
    return this.#closing;
  }

  async #end(deadlineMs: number, reason: string): Promise<void> {
    this.#queue.length = 0;
    // Unsent runs would wait for a server that may never return.
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

  deliver({ body }: CommandOf<'message'>, again: boolean): Promise<CommandOutcome> {
    const { messageId } = body;
    const known = this.#deliveries.get(messageId);
    if (known !== undefined) return known;
    if (again && this.#uncertain.has(messageId)) return Promise.resolve(uncertainOutcome(UNCERTAIN));
    const text = messageText(body);
    const delivery = new Promise<CommandOutcome>((settle) => {
      this.#enqueue({
        messageId,
        text,
        resume: [],
        results: [],
        messages: () => this.#messageOf(messageId, text),
        settle,
      });
    });
    setBounded(this.#deliveries, messageId, delivery, MAX_DELIVERIES);
    return delivery;
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const running = this.#context.openWork(this.#sessionId).turn?.runId;
    if (running === undefined) return failed('nothing is running now');
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    const isAccepted = await this.#controls.interrupt();
    const run = this.#run;
    if (run === null || run.hasEnded) {
      if (isAccepted) return { state: 'done' };
      return failed('the agent started this turn by itself, and its server can’t interrupt it');
    }
    if (!isAccepted) run.cut('interrupted');
    else setTimeout(() => run.hasEnded || run.cut('interrupted'), INTERRUPT_MS).unref();
    return { state: 'done' };
  }

  async stop({ body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const isOpen = this.#context.openWork(this.#sessionId).tasks.some(({ id }) => id === body.taskId);
    if (!isOpen) return failed('this task is no longer running');
    const refusal = await this.#controls.stop(body.taskId);
    if (refusal !== null) return failed(refusal);
    void this.#refreshTasks();
    return { state: 'done' };
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return outcomeOf(await this.#answers.answer(command));
  }

  /** Converts a message. It answers an open question, because the question's call needs a result first. */
  #messageOf(messageId: string, text: string): HistoryMessage[] {
    const { question } = this.#history;
    const content = this.#workspaceNote === null ? text : `${this.#workspaceNote}\n\n${text}`;
    if (question === null) return [{ id: messageId, role: 'user', content }];
    return [{ id: messageId, role: 'tool', toolCallId: question, content }];
  }

  #enqueue(one: Waiting): void {
    if (one.messageId === null) this.#queue.unshift(one);
    else this.#queue.push(one);
    this.#advance();
  }

  #advance(): void {
    if (this.#posting !== null || this.#closing !== null) return;
    const index = this.#queue.findIndex(({ messageId }) => messageId === null || !this.#answers.isWaiting);
    const [next] = index < 0 ? [] : this.#queue.splice(index, 1);
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
      this.#setTrouble(`A message is queued: ${again}. Retrying.`);
      const { random = Math.random, waits } = this.#options;
      const waitMs = retryMs('unavailable', failures, random(), waits?.longestMs);
      await pause(waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  /** @returns the reason for a retry, or null */
  async #attempt({ messageId, text, resume, results, messages, settle }: Waiting): Promise<string | null> {
    const { url, headers, history } = this.#options;
    const added = messages();
    const { log } = this.#context;
    let isAccepted = false;
    const onAccepted = () => {
      if (isAccepted) return;
      isAccepted = true;
      clearTimeout(slow);
      this.#setTrouble(null);
      this.#history.add([...added, ...results]);
      this.#abandoned = [];
      this.#workspaceNote = null;
      settle({ state: 'delivered' });
    };
    const run = new RunRequest({
      ...{ url, headers, log, beginMs: this.#options.waits?.beginMs, onStarted: onAccepted },
      pass: (dir, msg) => this.#pass(dir, msg),
      isStreamOpen: () => this.#background.isOpen,
    });
    this.#run = run;
    if (messageId !== null) await this.#inFlight?.put({ messageId, text });
    const resumed = [...this.#abandoned, ...resume];
    const answering = [
      ...resumed.map(({ interruptId }) => interruptId),
      ...results.flatMap(({ toolCallId }) => toolCallId ?? []),
    ];
    const slow = setTimeout(
      () => this.#setTrouble(`${displayUrl(url)} has not responded for ${REQUEST_MS / 1_000} s; a message is queued.`),
      REQUEST_MS,
    );
    const result = await run.post({
      threadId: this.#sessionId,
      messages: history === 'all' ? this.#history.with(added, answering) : added,
      ...{ tools: [], context: [], state: {}, forwardedProps: {}, protocolVersion: '1.0' },
      ...(resumed.length === 0 ? {} : { resume: resumed }),
    });
    clearTimeout(slow);
    if (result.kind !== 'accepted') {
      this.#run = null;
      if (messageId !== null) this.#inFlight?.remove([messageId]);
      if (result.kind === 'later') return result.reason;
      settle(result.kind === 'refused' ? failed(result.reason) : uncertainOutcome(`${result.reason}. ${CHECK}`));
      return null;
    }
    onAccepted();
    await run.follow(() => this.#cutTrailingStream(run));
    return null;
  }

  /** Cuts a stream that stays open after its run once another run waits. */
  #cutTrailingStream(run: RunRequest): void {
    const timer = setInterval(() => {
      if (!run.hasEnded || this.#run !== run) clearInterval(timer);
      else if (this.#queue.length > 0) run.cut('its run has ended');
    }, this.#options.waits?.trailMs ?? TRAIL_MS);
    timer.unref();
  }

  #observe(events: readonly EmittedEvent[]): void {
    this.#history.observe(events);
    this.#answers.observe(events);
    for (const { event } of events) {
      if (this.#run === null || event.runId !== this.#run.id) continue;
      if (event.type === 'RUN_STARTED') this.#run.observed('started');
      else if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
        this.#run.observed('ended');
        this.#cutTrailingStream(this.#run);
      }
    }
    const isRunOver = events.some(({ event: { type } }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR');
    if (!isRunOver && !events.some(({ event: { name } }) => name === CUSTOM.taskCompleted)) return;
    const cursors = [{ name: ENDED + this.#sessionId, value: JSON.stringify(this.#adapter.endedWork) }];
    if (isRunOver) cursors.push({ name: HISTORY + this.#sessionId, value: this.#history.toString() });
    void this.#context.emit(this.#sessionId, [], cursors);
  }

  /** Reports a lost answer with a notice, because the command that carried it has already succeeded. */
  #reportLostAnswer({ state, reason }: CommandOutcome): void {
    if (state !== 'failed') return;
    this.#answers.clear();
    const text = `The answer did not reach the agent: ${reason}`;
    this.#context.log('error', text);
    void this.#context.emit(this.#sessionId, [noticeEvent(text, 'error', this.#now())]);
  }

  /** Requests the task list after each connection, since ends may have been missed. */
  async #refreshTasks(): Promise<void> {
    const about = this.#context.openWork(this.#sessionId).tasks.map(({ id }) => id);
    const missesEvents = () => this.#background.isMissing || this.#wasLost === true;
    if ((await this.#controls.tasks(about, missesEvents)) && this.#wasLost) this.#wasLost = false;
    this.#context.changed();
  }

  #pass(dir: 'in' | 'out', msg: object): Promise<void> {
    if (this.#hasSentEvent === false && 'event' in msg) this.#hasSentEvent = true;
    return this.#feed.pass({ dir, msg });
  }

  #setTrouble(trouble: string | null): void {
    if (this.#troubleText === trouble) return;
    this.#troubleText = trouble;
    if (trouble !== null) this.#context.log('warn', trouble);
    this.#context.changed();
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Outcome of a message that may have arrived; only a person can check. */
function uncertainOutcome(reason: string): CommandOutcome {
  return { ...failed(reason), result: { mayHaveArrived: true } };
}
