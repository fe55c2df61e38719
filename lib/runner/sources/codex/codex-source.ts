import { setTimeout as pause } from 'node:timers/promises';
import { CUSTOM } from '@interlude/protocol/ag-ui';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import { CodexAdapter } from '../../adapters/codex/codex-adapter';
import type { ToldEvent } from '../../adapters/wire';
import type { CommandOutcome } from '../../commands/seen-commands';
import { DrainWait, RestartPolicy } from '../../host/agent-lifecycle';
import type { AttachmentFile } from '../../host/attachment-store';
import { inFlightMessage } from '../../host/message-delivery';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { endSessionHandler, failed, messageText } from '../../host/source-commands';
import { retryMs } from '../../retry';
import { WireFeed } from '../../wire/wire-feed';
import type { Transport, TransportEnd, TransportListener } from './app-server';
import { CodexConnection } from './codex-connection';
import { CodexRequests } from './codex-requests';
import type { CodexSession } from './codex-session';
import { CodexSessions } from './codex-session';
import { closeStaleWork, ThreadStore } from './thread-store';

/**
 * Codex, by its app-server: the operator's own, which their terminals use too, or a child of the runner.
 *
 * Ordering: all that passes goes through one feed, for as long as the runner lives, whatever the connection.
 * Failure: a connection to the operator's server is made again, for ever, and what was missed is told from the history
 * of each thread. A child that dies is started again and resumes its thread; one that keeps dying is given up.
 */
export interface CodexSourceOptions {
  context: SourceContext;
  /** Opens a connection: to a server that is there, or by starting one. */
  open: (listener: TransportListener) => Transport;
  /** Why no server can be connected to, before the first attempt; null if one can. By default one can. */
  reach?: () => Promise<string | null>;
  /** The thread it runs in a server of its own; null: it follows those of the operator's. */
  own: OwnThread | null;
  record?: ((frame: object) => void) | undefined;
  /** Takes secrets out of what a command has written. */
  redact?: (text: string) => { text: string; redacted: number };
  answerWithinMs?: number;
  now?: () => number;
  random?: () => number;
}

export interface OwnThread {
  sessionId: string;
  cwd: string;
  /** The thread to go on with, where the session has none yet. */
  resume?: string | undefined;
  /** Said with the first message of a thread that is new. */
  workspaceNote?: string | null;
  /** `model`, `approvalPolicy`, `sandbox` as `thread/start` takes them. */
  params: object;
}

const CLOSE_WITHIN_MS = 5_000;
const IN_TERMINAL = 'it runs in your own Codex: leave the thread there (/quit)';
const MAY_RUN_ON = 'Commands in its background may still run; nothing tells how they end.';

export class CodexSource implements Source {
  readonly #options: CodexSourceOptions;
  readonly #context: SourceContext;
  readonly #now: () => number;
  readonly #adapter: CodexAdapter;
  readonly #feed: WireFeed;
  readonly #held = new CodexRequests();
  readonly #sessions: CodexSessions;
  readonly #taken = new Map<string, true>();
  readonly #ending = new AbortController();
  readonly refusals: NonNullable<Source['refusals']> = {};
  /** Its own only: the operator's are theirs. */
  readonly end?: Source['end'];
  /** The operator's only: its own is its child. */
  readonly reach?: Source['reach'];
  #memory: ThreadStore | null = null;
  #link: Transport | null = null;
  #process: SessionFacts['process'];
  #provider: string | null = null;
  #trouble: string | null = null;
  #isPastSettled = false;
  /** Why the operator's server is not connected to; null while it is, undefined before the first attempt. */
  #down: string | null | undefined;
  /** What it was doing is closed. */
  #isToldGone = false;
  /** Why no other process would do better. */
  #fatal: string | null = null;
  #life: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  readonly #quiet = new DrainWait();

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
      around: { ...options.context, emit: (...told) => this.#emit(...told) },
      record: options.record,
      now: this.#now,
      onTold: (events) => this.#told(events),
      onAnswered: (sessionId, ids) => this.#sessions.get(sessionId)?.inHand.remove(ids),
    });
    if (options.own === null) {
      this.refusals = { 'session.end': IN_TERMINAL };
      this.reach = async () => (this.#down === undefined ? ((await options.reach?.()) ?? null) : this.#down);
    } else {
      this.#process = { state: 'starting', pid: null, exitCode: null };
      this.end = endSessionHandler(options.context);
    }
  }

  get sessions(): SessionFacts[] {
    return this.#sessions.all.map(({ sessionId, cwd, model, inHand }) => ({
      sessionId,
      ...(cwd === null ? {} : { cwd }),
      ...(model === null ? {} : { model }),
      ...(this.#process === undefined ? {} : { process: this.#process }),
      ...(this.#trouble === null ? {} : { trouble: this.#trouble }),
      provider: this.#provider,
      pendingMessages: inHand.all.length,
      attachments: ATTACHMENT_KINDS,
    }));
  }

  async start(): Promise<void> {
    this.#memory = await ThreadStore.recall(this.#context);
    const { own } = this.#options;
    for (const sessionId of own === null ? this.#leftOpen() : [own.sessionId]) await this.#sessions.recall(sessionId);
    if (own !== null) {
      await this.#settlePast(new Set());
      this.#life = this.#liveAsChild(own);
    } else this.#life = this.#liveShared();
  }

  /** Sessions with something open, by the account of the process before this one. */
  #leftOpen(): string[] {
    const known = [...this.#threads.all.values()].map(({ sessionId }) => sessionId);
    return [...new Set(known)].filter((id) => !isNothing(this.#context.openWork(id)));
  }

  close(deadlineMs: number, reason: string): Promise<void> {
    if (deadlineMs <= 0) this.#quiet.end();
    this.#closing ??= this.#end(deadlineMs, reason);
    return this.#closing;
  }

  async say(
    { sessionId, body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    const { messageId } = body;
    const text = messageText(body);
    return await this.#in(sessionId, (session) => session.say(inFlightMessage(messageId, text, files), again));
  }

  async interrupt({ sessionId, body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    if (!this.#sessions.isConnected) return failed(this.#trouble ?? 'Codex is being started');
    return await this.#in(sessionId, (session) => session.interrupt(body.turnId));
  }

  async stop({ sessionId, body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    return await this.#in(sessionId, (session) => session.stop(body.taskId));
  }

  async wake({ id, sessionId, body }: CommandOf<'task.wake'>): Promise<CommandOutcome> {
    return await this.#in(sessionId, async (session) => (await session.wakes?.wake(id, body.taskId)) ?? NOT_HERE);
  }

  async setWakeRule({ sessionId, body }: CommandOf<'wake-rule.set'>): Promise<CommandOutcome> {
    return await this.#in(sessionId, async (session) => {
      await session.wakes?.setRule(body.when);
      return { state: 'done' };
    });
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return await this.#held.answer(command);
  }

  async #in(
    sessionId: string | null,
    act: (session: CodexSession) => Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    const session = this.#sessions.get(sessionId ?? '');
    if (session === undefined) return NOT_HERE;
    try {
      return await act(session);
    } catch (error) {
      return failed((error as Error).message);
    }
  }

  async #liveAsChild(own: OwnThread): Promise<void> {
    const restarts = new RestartPolicy();
    for (;;) {
      const startedAt = this.#now();
      this.#observe({ state: 'starting', pid: null, exitCode: null });
      const end = await this.#runOnce((connection) => this.#bringUp(connection, own));
      const { exitCode, signal } = end;
      this.#observe({ state: 'exited', pid: null, exitCode, signal });
      if (this.#ending.signal.aborted) return;
      if (this.#fatal !== null) {
        await this.#sessionEnded(own.sessionId, this.#fatal);
        this.#giveUp(this.#fatal);
        return;
      }
      const { reason } = end;
      const next = restarts.exited(startedAt, this.#now());
      if (next.kind === 'give-up') {
        const why = `Codex ended ${next.exits} times within ${next.withinMs / 1_000} s, the last time it ${reason}`;
        await this.#feed.ended({ reason: why, exitCode, signal });
        this.#giveUp(why);
        return;
      }
      this.#observe({ state: 'restarting', pid: null, exitCode, signal });
      const again = `It is started again in ${next.waitMs / 1_000} s. ${MAY_RUN_ON}`;
      await this.#feed.ended({ reason, exitCode, signal, goesOn: again });
      await pause(next.waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  async #liveShared(): Promise<void> {
    const random = this.#options.random ?? Math.random;
    let failures = 0;
    for (;;) {
      const end = await this.#runOnce(async (connection) => {
        [failures, this.#down, this.#isToldGone] = [0, null, false];
        this.#trouble = null;
        this.#context.changed();
        await this.#followAll(connection);
        return null;
      });
      if (this.#ending.signal.aborted) return;
      failures += 1;
      this.#down = end.reason;
      const waitMs = retryMs('unavailable', failures, random());
      if (end.isServerGone) await this.lost(end.reason);
      this.#trouble = `${capital(end.reason)}; start codex in a terminal. It is tried again every few seconds.`;
      if (failures === 1) this.#context.log('warn', `${end.reason}; it is tried again until it works`);
      this.#context.changed();
      await pause(waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  async lost(reason: string): Promise<void> {
    if (this.#isToldGone) return;
    this.#isToldGone = true;
    await this.#settlePast(new Set());
    await this.#feed.ended({ reason, goesOn: `It goes on here once Codex runs again. ${MAY_RUN_ON}` });
  }

  /** One connection, from its beginning to its end. @param up once it answers; returns why it is of no use, or null */
  async #runOnce(up: (connection: CodexConnection) => Promise<string | null>): Promise<TransportEnd> {
    const connection = new CodexConnection({
      open: this.#options.open,
      adapter: this.#adapter,
      feed: this.#feed,
      memory: this.#threads,
      context: this.#context,
      isShared: this.#options.own === null,
      taken: this.#taken,
      onThread: (threadId, thread) => this.#onThread(threadId, thread),
      onFollowed: (threadId) => this.#onFollowed(connection, threadId),
      onAsked: (request, server) => {
        const sessionId = this.#adapter.sessionOf(request.threadId);
        if (sessionId !== null) this.#held.hold(sessionId, request, server);
      },
      onResolved: (rpcId) => this.#held.letGo(rpcId),
      now: this.#now,
      answerWithinMs: this.#options.answerWithinMs,
    });
    const { link } = connection.server;
    this.#link = link;
    if (this.#ending.signal.aborted) link.kill();
    const greeted = await connection.greet();
    if ('problem' in greeted) {
      if (!greeted.isGone) this.#context.log('warn', `Codex can't be talked to: ${greeted.problem}`);
      link.kill();
    } else {
      this.#provider = greeted.provider ?? this.#provider;
      if (link.pid !== null) this.#observe({ state: 'running', pid: link.pid, exitCode: null });
      const problem = await up(connection);
      if (problem !== null) {
        this.#context.log('error', problem);
        link.kill();
      }
    }
    const end = await link.ended;
    this.#link = null;
    this.#sessions.disconnected();
    this.#held.letGoAll();
    this.#adapter.disconnected();
    return end;
  }

  async #bringUp(connection: CodexConnection, own: OwnThread): Promise<string | null> {
    const { sessionId, cwd, resume, params, workspaceNote = null } = own;
    const session = await this.#sessions.recall(sessionId);
    session.note = null;
    const known = this.#threads.threadOf(sessionId) ?? resume ?? null;
    if (known !== null) {
      const isNew = !this.#threads.all.has(known);
      this.#threads.assign(known, sessionId, this.#now());
      const problem = await connection.follow(known, { cwd, ...params });
      if (problem === null) return null;
      if (isNew) {
        this.#fatal = `thread ${known} can't be resumed: ${problem}`;
        return this.#fatal;
      }
      this.#context.log('warn', `thread ${known} can't be resumed, so a new one begins: ${problem}`);
      // A thread without a turn has no history that could be resumed.
      this.#threads.assign(known, known, this.#now());
    }
    session.note = workspaceNote;
    const begun = await connection.begin({ cwd, ...params });
    return 'problem' in begun ? `Codex can't begin a thread: ${begun.problem}` : null;
  }

  async #followAll(connection: CodexConnection): Promise<void> {
    const loaded = await connection.loaded();
    await this.#settlePast(new Set(loaded));
    const open = this.#adapter.threads.filter(({ writer }) => !isNothing(this.#context.openWork(writer.sessionId)));
    await connection.followAll([...loaded, ...open.map(({ id }) => id)]);
  }

  async #onThread(threadId: string, thread: Fields): Promise<void> {
    const followed = this.#adapter.thread(threadId);
    if (followed === null || followed.parent !== null) return;
    const { sessionId } = followed.writer;
    const isNew = this.#sessions.get(sessionId) === undefined;
    const session = await this.#sessions.recall(sessionId);
    session.cwd = textOf(thread.cwd) ?? session.cwd;
    session.model = textOf(thread.model) ?? session.model;
    const cursor = this.#threads.assign(threadId, sessionId, this.#now());
    if (isNew) await this.#context.opened(sessionId, undefined, [cursor]);
    else await this.#context.emit(sessionId, [], [cursor]);
    this.#context.changed();
  }

  /** All of its history is told: it can be spoken to. */
  #onFollowed(connection: CodexConnection, threadId: string): void {
    const followed = this.#adapter.thread(threadId);
    const session = followed === null ? undefined : this.#sessions.get(followed.writer.sessionId);
    if (session === undefined || followed?.parent !== null) return;
    this.#sessions.isReady(connection, session.sessionId, threadId);
    void session.goOn(connection, threadId).catch((error: Error) => {
      this.#context.log('warn', `what Codex was to be told could not be told again: ${error.message}`);
    });
  }

  async #settlePast(loaded: ReadonlySet<string>): Promise<void> {
    if (this.#isPastSettled) return;
    this.#isPastSettled = true;
    await closeStaleWork(
      { context: this.#context, adapter: this.#adapter, threads: this.#threads },
      loaded,
      this.#now(),
    );
  }

  #told(events: readonly ToldEvent[]): void {
    for (const sessionId of new Set(events.map((one) => one.sessionId))) {
      const own = events.filter((one) => one.sessionId === sessionId);
      const session = this.#sessions.get(sessionId);
      session?.wakes?.told(own, this.#context.openWork(sessionId).turn !== null);
      if (!own.some(({ event: { type } }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')) continue;
      void session?.turnEnded().catch((error: Error) => this.#context.log('debug', error.message));
    }
    if (this.#sessions.isQuiet) this.#quiet.end();
  }

  /** A command's output goes out without secrets. */
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

  /** Of a thread that the runner has begun it is the runner's session; else it has the thread's own id. */
  #sessionFor(threadId: string): string {
    const { own } = this.#options;
    const known = this.#threads.all.get(threadId)?.sessionId;
    if (known !== undefined || own === null) return known ?? threadId;
    return this.#threads.threadOf(own.sessionId) === null ? own.sessionId : threadId;
  }

  get #threads(): ThreadStore {
    if (this.#memory === null) throw new Error('the source has not been started');
    return this.#memory;
  }

  async #end(deadlineMs: number, reason: string): Promise<void> {
    const { own } = this.#options;
    if (own !== null && deadlineMs > 0 && !this.#sessions.isQuiet) await this.#quiet.within(deadlineMs);
    this.#ending.abort();
    this.#sessions.end();
    this.#link?.close();
    const killing = setTimeout(() => this.#link?.kill(), own === null ? 0 : CLOSE_WITHIN_MS);
    await this.#life;
    clearTimeout(killing);
    if (own !== null) await this.#sessionEnded(own.sessionId, reason);
    this.#feed.close();
  }

  async #sessionEnded(sessionId: string, reason: string): Promise<void> {
    const isKnown = this.#adapter.threads.some(({ writer }) => writer.sessionId === sessionId);
    if (isKnown) return await this.#feed.ended({ reason, isAsked: true });
    const event = { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: { reason } };
    await this.#context.emit(sessionId, [{ occurredAt: this.#now(), event }]);
  }

  #giveUp(why: string): void {
    this.#ending.abort();
    this.#sessions.end();
    this.#context.gaveUp(why);
  }

  #observe(process: SessionFacts['process']): void {
    this.#process = process;
    this.#context.changed();
  }
}

const NOT_HERE: CommandOutcome = { state: 'failed', reason: 'this runner does not carry the session' };

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
