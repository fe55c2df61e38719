import { setTimeout as pause } from 'node:timers/promises';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import { CodexAdapter } from '../../adapters/codex/codex-adapter';
import type { EmittedEvent, WireEnd } from '../../adapters/wire';
import { AgentSupervisor, type SupervisedExit } from '../../host/agent-supervisor';
import type { AttachmentFile } from '../../host/attachment-store';
import { inFlightMessage } from '../../host/message-delivery';
import type { CommandOutcome } from '../../host/seen-commands';
import { retryMs } from '../../host/server-request';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { endSessionHandler, failed, messageText } from '../../host/source-commands';
import { WireFeed } from '../../host/wire-feed';
import type { Transport, TransportEnd, TransportListener } from './app-server';
import { CodexConnection, CodexRequests } from './codex-connection';
import type { CodexSession } from './codex-session';
import { CodexSessions } from './codex-session';
import { closeStaleWork, ThreadStore } from './thread-store';

export interface CodexSourceOptions {
  context: SourceContext;
  /** Connects to a running server, or starts one. */
  open: (listener: TransportListener) => Transport;
  /** Probes the server before the first attempt. Returns the reason why it can't be reached, or null. */
  reach?: () => Promise<string | null>;
  /** Thread of a server that the runner starts; null to follow the operator's server. */
  own: OwnThread | null;
  record?: ((frame: object) => void) | undefined;
  /** Redacts command output. */
  redact?: (text: string) => { text: string; redacted: number };
  answerWithinMs?: number;
  now?: () => number;
  random?: () => number;
}

export interface OwnThread {
  sessionId: string;
  cwd: string;
  /** Thread to continue if the session has none yet. */
  resume?: string | undefined;
  /** Sent with the first message of a new thread. */
  workspaceNote?: string | null;
  /** `model`, `approvalPolicy` and `sandbox` as parameters of `thread/start`. */
  params: object;
}

const CLOSE_WITHIN_MS = 5_000;
const IN_TERMINAL = 'this session runs in your own Codex; quit it there (/quit)';
const MAY_RUN_ON = 'Background commands may still be running; how they end won’t be reported.';

/**
 * Runs Codex through an app-server: the operator's own, shared with their terminals, or a child process.
 *
 * Ordering: all traffic goes through one feed for the life of the runner, whatever the connection.
 * Failure: a connection to the operator's server is retried forever, and missed events come from the thread histories.
 * A dead child is restarted and resumes its thread; one that keeps dying is given up.
 */
export class CodexSource implements Source {
  readonly #options: CodexSourceOptions;
  readonly #context: SourceContext;
  readonly #now: () => number;
  readonly #adapter: CodexAdapter;
  readonly #feed: WireFeed;
  readonly #requests = new CodexRequests();
  readonly #sessions: CodexSessions;
  readonly #receivedMessages = new Map<string, true>();
  readonly #supervisor: AgentSupervisor;
  readonly refusals: NonNullable<Source['refusals']> = {};
  /** Present only for a started server. */
  readonly end?: Source['end'];
  /** Present only for the operator's server. */
  readonly reach?: Source['reach'];
  #store: ThreadStore | null = null;
  #link: Transport | null = null;
  #provider: string | null = null;
  #trouble: string | null = null;
  #isStaleWorkClosed = false;
  /** Reason why the operator's server is disconnected; null while connected, undefined before the first attempt. */
  #outage: string | null | undefined;
  /** True once the open work of the outage is closed. */
  #isClosed = false;
  /** Reason why a restart is pointless. */
  #fatal: string | null = null;

  constructor(options: CodexSourceOptions) {
    this.#options = options;
    this.#context = options.context;
    this.#now = options.now ?? Date.now;
    this.#adapter = new CodexAdapter({
      sessionOf: (threadId) => this.#sessionFor(threadId),
      newRunId: () => crypto.randomUUID(),
    });
    this.#sessions = new CodexSessions(options.context, this.#adapter);
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      context: { ...options.context, emit: (...emitted) => this.#emit(...emitted) },
      record: options.record,
      now: this.#now,
      onEmitted: (events) => this.#observe(events),
      onAnswered: (sessionId, ids) => this.#sessions.get(sessionId)?.inFlight.remove(ids),
    });
    this.#supervisor = new AgentSupervisor({
      name: 'Codex',
      context: options.context,
      run: () => this.#runChild(),
      exited: (end) => this.#exited(end),
      isIdle: () => this.#sessions.isIdle,
      stop: () => {
        this.#sessions.end();
        this.#link?.close();
      },
      kill: () => this.#link?.kill(),
      killAfterMs: options.own === null ? 0 : CLOSE_WITHIN_MS,
      now: this.#now,
    });
    if (options.own === null) {
      this.refusals = { 'session.end': IN_TERMINAL };
      this.reach = async () => (this.#outage === undefined ? ((await options.reach?.()) ?? null) : this.#outage);
    } else this.end = endSessionHandler(options.context);
  }

  get sessions(): SessionFacts[] {
    return this.#sessions.all.map(({ sessionId, cwd, model, inFlight }) => ({
      sessionId,
      ...(cwd === null ? {} : { cwd }),
      ...(model === null ? {} : { model }),
      ...(this.#options.own === null ? {} : { process: this.#supervisor.process }),
      ...(this.#trouble === null ? {} : { trouble: this.#trouble }),
      provider: this.#provider,
      pendingMessages: inFlight.all.length,
      attachments: ATTACHMENT_KINDS,
    }));
  }

  async start(): Promise<void> {
    this.#store = await ThreadStore.restore(this.#context);
    const { own } = this.#options;
    for (const sessionId of own === null ? this.#sessionsLeftOpen() : [own.sessionId])
      await this.#sessions.restore(sessionId);
    if (own !== null) {
      await this.#closeStaleWork(new Set());
      this.#supervisor.start();
    } else this.#supervisor.start(() => this.#runShared());
  }

  /** Sessions that the previous process left with open work. */
  #sessionsLeftOpen(): string[] {
    const known = [...this.#threads.all.values()].map(({ sessionId }) => sessionId);
    return [...new Set(known)].filter((id) => !isNothing(this.#context.openWork(id)));
  }

  async close(deadlineMs: number, reason: string): Promise<void> {
    await this.#supervisor.close(this.#options.own === null ? 0 : deadlineMs, reason);
    this.#feed.close();
  }

  async deliver(
    { sessionId, body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    const { messageId } = body;
    const text = messageText(body);
    const message = inFlightMessage(messageId, text, files);
    return await this.#inSession(sessionId, (session) => session.deliver(message, again));
  }

  async interrupt({ sessionId, body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    if (!this.#sessions.isConnected) return failed(this.#trouble ?? 'Codex is starting');
    return await this.#inSession(sessionId, (session) => session.interrupt(body.turnId));
  }

  async stop({ sessionId, body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    return await this.#inSession(sessionId, (session) => session.stop(body.taskId));
  }

  async wake({ id, sessionId, body }: CommandOf<'task.wake'>): Promise<CommandOutcome> {
    return await this.#inSession(
      sessionId,
      async (session) => (await session.wakes?.wake(id, body.taskId)) ?? UNKNOWN_SESSION,
    );
  }

  async setWakeRule({ sessionId, body }: CommandOf<'wake-rule.set'>): Promise<CommandOutcome> {
    return await this.#inSession(sessionId, async (session) => {
      await session.wakes?.setRule(body.when);
      return { state: 'done' };
    });
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return await this.#requests.answer(command);
  }

  async #inSession(
    sessionId: string | null,
    act: (session: CodexSession) => Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    const session = this.#sessions.get(sessionId ?? '');
    if (session === undefined) return UNKNOWN_SESSION;
    try {
      return await act(session);
    } catch (error) {
      return failed((error as Error).message);
    }
  }

  async #runChild(): Promise<SupervisedExit> {
    const own = this.#options.own as OwnThread;
    this.#supervisor.process = { state: 'starting', pid: null, exitCode: null };
    const end = await this.#runOnce((connection) => this.#openThread(connection, own));
    return { ...end, fatal: this.#fatal };
  }

  async #exited(end: WireEnd): Promise<void> {
    const { sessionId } = this.#options.own as OwnThread;
    if (end.goesOn !== undefined) return await this.#feed.ended({ ...end, goesOn: `${end.goesOn} ${MAY_RUN_ON}` });
    if (end.isAsked !== true) this.#sessions.end();
    const isKnown = this.#adapter.threads.some(({ writer }) => writer.sessionId === sessionId);
    if (isKnown) return await this.#feed.ended(this.#fatal === null ? end : { reason: this.#fatal, isAsked: true });
    const event = { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: { reason: end.reason } };
    await this.#context.emit(sessionId, [{ occurredAt: this.#now(), event }]);
  }

  async #runShared(): Promise<void> {
    const random = this.#options.random ?? Math.random;
    let failures = 0;
    for (;;) {
      const end = await this.#runOnce(async (connection) => {
        [failures, this.#outage, this.#isClosed] = [0, null, false];
        this.#trouble = null;
        this.#context.changed();
        await this.#followAll(connection);
        return null;
      });
      if (this.#supervisor.signal.aborted) return;
      failures += 1;
      this.#outage = end.reason;
      const waitMs = retryMs('unavailable', failures, random());
      if (end.isServerGone) await this.lost(end.reason);
      this.#trouble = `${capitalize(end.reason)}; start codex in a terminal. Retrying every few seconds.`;
      if (failures === 1) this.#context.log('warn', `${end.reason}; retrying`);
      this.#context.changed();
      await pause(waitMs, undefined, { signal: this.#supervisor.signal }).catch(() => undefined);
    }
  }

  async lost(reason: string): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#closeStaleWork(new Set());
    await this.#feed.ended({ reason, goesOn: `It continues here once Codex runs again. ${MAY_RUN_ON}` });
  }

  /** Runs one connection to its end. @param onConnected returns the problem, or null */
  async #runOnce(onConnected: (connection: CodexConnection) => Promise<string | null>): Promise<TransportEnd> {
    const connection = new CodexConnection({
      open: this.#options.open,
      adapter: this.#adapter,
      feed: this.#feed,
      memory: this.#threads,
      context: this.#context,
      isShared: this.#options.own === null,
      receivedMessages: this.#receivedMessages,
      onThread: (threadId, thread) => this.#onThread(threadId, thread),
      onFollowed: (threadId) => this.#onFollowed(connection, threadId),
      onRequest: (request, server) => {
        const sessionId = this.#adapter.sessionOf(request.threadId);
        if (sessionId !== null) this.#requests.hold(sessionId, request, server);
      },
      onResolved: (rpcId) => this.#requests.release(rpcId),
      now: this.#now,
      answerWithinMs: this.#options.answerWithinMs,
    });
    const { link } = connection.server;
    this.#link = link;
    if (this.#supervisor.signal.aborted) link.kill();
    const greeted = await connection.greet();
    if ('problem' in greeted) {
      if (!greeted.isGone) this.#context.log('warn', `Codex refused to initialize: ${greeted.problem}`);
      link.kill();
    } else {
      this.#provider = greeted.provider ?? this.#provider;
      if (link.pid !== null) this.#supervisor.process = { state: 'running', pid: link.pid, exitCode: null };
      const problem = await onConnected(connection);
      if (problem !== null) {
        this.#context.log('error', problem);
        link.kill();
      }
    }
    const end = await link.ended;
    this.#link = null;
    this.#sessions.disconnected();
    this.#requests.clear();
    this.#adapter.disconnected();
    return end;
  }

  async #openThread(connection: CodexConnection, own: OwnThread): Promise<string | null> {
    const { sessionId, cwd, resume, params, workspaceNote = null } = own;
    const session = await this.#sessions.restore(sessionId);
    session.note = null;
    const known = this.#threads.threadOf(sessionId) ?? resume ?? null;
    if (known !== null) {
      const isNew = !this.#threads.all.has(known);
      this.#threads.assign(known, sessionId, this.#now());
      const problem = await connection.follow(known, { cwd, ...params });
      if (problem === null) return null;
      if (isNew) {
        this.#fatal = `thread ${known} can't be resumed; check the id, or omit --resume: ${problem}`;
        return this.#fatal;
      }
      this.#context.log('warn', `could not resume thread ${known}; starting a new one: ${problem}`);
      // Threads without a turn can't be resumed.
      this.#threads.assign(known, known, this.#now());
    }
    session.note = workspaceNote;
    const started = await connection.begin({ cwd, ...params });
    return 'problem' in started ? `Codex can't start a thread: ${started.problem}` : null;
  }

  async #followAll(connection: CodexConnection): Promise<void> {
    const loaded = await connection.loaded();
    await this.#closeStaleWork(new Set(loaded));
    const open = this.#adapter.threads.filter(({ writer }) => !isNothing(this.#context.openWork(writer.sessionId)));
    await connection.followAll([...loaded, ...open.map(({ id }) => id)]);
  }

  async #onThread(threadId: string, thread: Fields): Promise<void> {
    const followed = this.#adapter.thread(threadId);
    if (followed === null || followed.parent !== null) return;
    const { sessionId } = followed.writer;
    const isNew = this.#sessions.get(sessionId) === undefined;
    const session = await this.#sessions.restore(sessionId);
    session.cwd = textOf(thread.cwd) ?? session.cwd;
    session.model = textOf(thread.model) ?? session.model;
    const cursor = this.#threads.assign(threadId, sessionId, this.#now());
    if (isNew) await this.#context.announceSession(sessionId, undefined, [cursor]);
    else await this.#context.emit(sessionId, [], [cursor]);
    this.#context.changed();
  }

  /** Lets a thread accept messages once its history is emitted. */
  #onFollowed(connection: CodexConnection, threadId: string): void {
    const followed = this.#adapter.thread(threadId);
    const session = followed === null ? undefined : this.#sessions.get(followed.writer.sessionId);
    if (session === undefined || followed?.parent !== null) return;
    this.#sessions.markReady(connection, session.sessionId, threadId);
    void session.resume(connection, threadId).catch((error: Error) => {
      this.#context.log('warn', `could not resend messages to Codex: ${error.message}`);
    });
  }

  async #closeStaleWork(loaded: ReadonlySet<string>): Promise<void> {
    if (this.#isStaleWorkClosed) return;
    this.#isStaleWorkClosed = true;
    await closeStaleWork(
      { context: this.#context, adapter: this.#adapter, threads: this.#threads },
      loaded,
      this.#now(),
    );
  }

  #observe(events: readonly EmittedEvent[]): void {
    for (const sessionId of new Set(events.map((one) => one.sessionId))) {
      const own = events.filter((one) => one.sessionId === sessionId);
      const session = this.#sessions.get(sessionId);
      session?.wakes?.observe(own, this.#context.openWork(sessionId).turn !== null);
      if (!own.some(({ event: { type } }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')) continue;
      void session?.turnEnded().catch((error: Error) => this.#context.log('debug', error.message));
    }
    this.#supervisor.checkIdle();
  }

  /** Redacts command output. */
  #emit(...[sessionId, events, cursors]: Parameters<SourceContext['emit']>): Promise<void> {
    const { redact } = this.#options;
    const clean = events.map((one) => {
      const { event } = one;
      if (redact === undefined || event.name !== CUSTOM.taskOutput) return one;
      const value = fieldsOf(event.value);
      const { text, redacted } = redact(textOf(value.text) ?? '');
      return { ...one, event: { ...event, value: { ...value, text, ...(redacted > 0 ? { redacted } : {}) } } };
    });
    return this.#context.emit(sessionId, clean, cursors);
  }

  /** Returns the runner's session for a thread that it started, else the id of the thread. */
  #sessionFor(threadId: string): string {
    const { own } = this.#options;
    const known = this.#threads.all.get(threadId)?.sessionId;
    if (known !== undefined || own === null) return known ?? threadId;
    return this.#threads.threadOf(own.sessionId) === null ? own.sessionId : threadId;
  }

  get #threads(): ThreadStore {
    if (this.#store === null) throw new Error('the source has not been started');
    return this.#store;
  }
}

const UNKNOWN_SESSION: CommandOutcome = { state: 'failed', reason: 'this runner has no such session' };

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
