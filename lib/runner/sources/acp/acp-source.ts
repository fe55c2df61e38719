import { randomUUID } from 'node:crypto';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import { AcpAdapter, PROCESS_ENDED } from '../../adapters/acp/acp-adapter';
import { STOP_TASK } from '../../adapters/acp/claude-extras';
import type { WireEnd, WireFrame } from '../../adapters/wire';
import { agentEnvironment, exitText } from '../../host/agent-process';
import { AgentSupervisor, type SupervisedExit } from '../../host/agent-supervisor';
import type { AttachmentFile } from '../../host/attachment-store';
import { type InFlightMessage, type InFlightMessages, inFlightMessage } from '../../host/message-delivery';
import { MARK, ProcessExitWatcher, terminateOrphan } from '../../host/process-lookup';
import type { CommandOutcome } from '../../host/seen-commands';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import {
  endSessionHandler,
  failed,
  interruptNotice,
  messageText,
  noticeEvent,
  outcomeOf,
  staleInterrupt,
} from '../../host/source-commands';
import { WireFeed } from '../../host/wire-feed';
import { AcpConnection, GONE, PermissionRequests, type RpcResponse } from './acp-connection';
import { PromptQueue, SessionRecovery } from './prompt-queue';
import { type PromptCapabilities, promptBlocks, promptText, type ReplayedMessage, ReplayRecorder } from './prompts';
import { type AcpSession, type OpenedSession, openSession, SetupError, sessionCursor } from './session-setup';

export interface AcpSourceOptions {
  context: SourceContext;
  memory: AcpSession;
  inFlight: InFlightMessages;
  command: readonly [string, ...string[]];
  env: Record<string, string | undefined>;
  /** Control file for processes that the agent starts. */
  controlFile?: string;
  mode?: string | undefined;
  model?: string | undefined;
  auth?: string | undefined;
  answerWithinMs: number;
  /** Time after which a slow session setup is reported. */
  patienceMs?: number;
  /** True if the operator named a session of the agent, so that a new one is not acceptable. */
  mustLoad?: boolean;
  /** Prepended to the first message of a new session. */
  workspaceNote?: string | null;
  record?: ((frame: WireFrame) => void) | undefined;
}

const PATIENCE_MS = 30_000;
const FILES_ONLY = ['file'] as const;
const TEXT_ONLY: PromptCapabilities = { image: false, embeddedContext: false };

/**
 * Runs one session of an ACP agent across processes.
 *
 * Ordering: one reader per process, which also reads between prompts. Messages are prompted in order.
 * Failure: a dead agent is restarted and loads its session if it can. Unanswered messages are prompted again unless the
 * replay has them. An agent that is alive but lost its session loads it again, or else is restarted. An agent that
 * keeps dying, loses its session again, or can't be set up is given up, with a note in the session.
 */
export class AcpSource implements Source {
  readonly #options: AcpSourceOptions;
  readonly #context: SourceContext;
  readonly #adapter: AcpAdapter;
  readonly #feed: WireFeed;
  readonly #permissions: PermissionRequests;
  readonly #queue: PromptQueue;
  readonly #replay = new ReplayRecorder();
  readonly #supervisor: AgentSupervisor;
  readonly #processes: ProcessExitWatcher;
  readonly unknownSessionRefusal: string;
  readonly refusals = {
    'task.stop': 'this agent can’t stop a single task',
    'task.wake': 'send a message instead: ACP has no other way to start a turn',
    'wake-rule.set': 'send a message instead: ACP has no other way to start a turn',
    'question.answer': 'ACP agents ask for permissions only, not questions',
  };
  readonly end: NonNullable<Source['end']>;
  /** Supported by claude-agent-acp and codex-acp only. */
  stop?: Source['stop'];
  #session: AcpSession;
  #connection: AcpConnection | null = null;
  /** Null until the agent announces them. */
  #promptCapabilities: PromptCapabilities | null = null;
  #trouble: string | null = null;
  /** Prepended to the next message. */
  #note: string | null = null;
  readonly #lost: SessionRecovery;
  #reload: OpenedSession['reload'] | null = null;
  /** True once the adapter has emitted the end of the session, which it can't do before the agent has a session. */
  #emittedEnd = false;
  /** Messages that the last process received but did not process. */
  #unprocessed: readonly InFlightMessage[] = [];

  constructor(options: AcpSourceOptions) {
    this.#options = options;
    const { context, memory, answerWithinMs, record, inFlight } = options;
    this.#context = context;
    this.#session = memory;
    this.end = endSessionHandler(context);
    const { sessionId } = memory;
    this.unknownSessionRefusal = `the agent is running session ${sessionId}; resume this one with --session`;
    this.#adapter = new AcpAdapter({ sessionOf: () => sessionId, newRunId: randomUUID, answerWithinMs });
    this.#permissions = new PermissionRequests(sessionId, answerWithinMs);
    this.#lost = new SessionRecovery({
      nativeId: () => this.#session.nativeId,
      send: (message) => this.#prompt(message),
      isUnprocessed: ({ messageId }) => inFlight.has(messageId),
      reload: () => this.#reloadSession(),
      restart: async () => await this.#connection?.end(),
      patienceMs: options.patienceMs ?? PATIENCE_MS,
    });
    this.#queue = new PromptQueue({
      inFlight,
      prompt: (message) => this.#lost.prompt(message),
      failedAfterDelivery: (messageId, reason) => context.report(messageId, { state: 'failed', reason }),
    });
    this.#processes = new ProcessExitWatcher((pid, wasSeen) => {
      const params = { sessionId: this.#session.nativeId, pid, wasSeen };
      void this.#feed.pass({ dir: 'out', msg: { jsonrpc: '2.0', method: PROCESS_ENDED, params } });
    });
    this.#supervisor = new AgentSupervisor({
      name: 'the agent',
      context,
      run: () => this.#runOnce(),
      exited: (end) => this.#exited(end),
      isIdle: () => this.#isIdle(),
      stop: async () => await this.#connection?.end(),
    });
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      context: context,
      record,
      onEmitted: (events) => {
        this.#emittedEnd ||= events.some(({ event }) => event.name === CUSTOM.sessionEnded);
        this.#processes.watch(this.#adapter.processes(this.#session.nativeId ?? ''));
        this.#context.changed();
        this.#supervisor.checkIdle();
      },
      onAnswered: (_, messageIds) => this.#queue.answered(messageIds),
    });
  }

  get sessions(): SessionFacts[] {
    const { sessionId, cwd, nativeId } = this.#session;
    const { provider, profile } = this.#adapter.about;
    const { mode, model, commands = [] } = (nativeId === null ? null : this.#adapter.settings(nativeId)) ?? {};
    return [
      {
        sessionId,
        cwd,
        provider,
        process: this.#supervisor.process,
        pendingMessages: this.#queue.pending,
        attachments:
          this.#promptCapabilities === null ? null : this.#promptCapabilities.image ? ATTACHMENT_KINDS : FILES_ONLY,
        ...(mode ? { mode: mode.name } : {}),
        ...(model ? { model: model.name } : {}),
        ...(commands.length > 0 ? { commands } : {}),
        ...(provider !== null && profile.limits.length > 0 ? { limits: [...profile.limits] } : {}),
        ...(this.#trouble === null ? {} : { trouble: this.#trouble }),
      },
    ];
  }

  async start(): Promise<void> {
    const { running, pid, sessionId } = this.#session;
    if (running) {
      if (pid !== null) await terminateOrphan(pid, sessionId);
      const ends = endsOf(this.#context.openWork(sessionId), sessionId, Date.now());
      if (ends.length > 0) await this.#context.emit(sessionId, ends);
      this.#notice('The runner was restarted; the session continues.');
    }
    await this.#remember({ running: true });
    this.#supervisor.start();
  }

  async close(deadlineMs: number, reason: string): Promise<void> {
    await this.#supervisor.close(deadlineMs, reason);
    this.#queue.close(reason);
    this.#feed.close();
    this.#processes.close();
    await this.#remember({ running: false, pid: null });
  }

  async deliver(
    { body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    if (this.#supervisor.failure !== null) return failed(this.#supervisor.failure);
    const { messageId } = body;
    const text = messageText(body);
    return await this.#queue.add(inFlightMessage(messageId, text, files), again);
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const { sessionId, nativeId } = this.#session;
    const { turn, tasks } = this.#context.openWork(sessionId);
    const running = turn?.runId ?? null;
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    const connection = this.#connection;
    if (connection === null || nativeId === null) {
      return failed('the agent is starting, so nothing is running');
    }
    connection.notify('session/cancel', { sessionId: nativeId });
    this.#permissions.cancelAll();
    this.#notice(
      interruptNotice(
        turn !== null,
        tasks.map(({ description }) => description),
        this.#queue.waiting,
      ),
    );
    return { state: 'done', result: { pendingMessages: this.#queue.pending } };
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return outcomeOf(await this.#permissions.answer(command));
  }

  async #exited(end: WireEnd): Promise<void> {
    if (end.goesOn !== undefined) {
      await this.#feed.ended(end);
      this.#queue.requeueFirst(this.#unprocessed);
      return;
    }
    await this.#sessionEnds(end);
    if (end.isAsked === true) return;
    this.#queue.close(end.reason);
    await this.#remember({ running: false, pid: null });
  }

  async #sessionEnds(end: WireEnd): Promise<void> {
    this.#emittedEnd = false;
    await this.#feed.ended(end);
    if (this.#emittedEnd) return;
    const { reason, exitCode, signal } = end;
    const event = { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: compact({ reason, exitCode, signal }) };
    await this.#context.emit(this.#session.sessionId, [{ occurredAt: Date.now(), event }]);
  }

  async #runOnce(): Promise<SupervisedExit> {
    const { command, env, controlFile = '/dev/null' } = this.#options;
    const { cwd, sessionId } = this.#session;
    const [program, ...args] = command;
    const connection: AcpConnection = new AcpConnection({
      // Otherwise hooks installed for terminals would report this session a second time.
      spawn: {
        command: program,
        args,
        cwd,
        env: { ...agentEnvironment(env), INTERLUDE_CONTROL: controlFile, [MARK]: sessionId },
      },
      onFrame: (frame) => {
        this.#replay.record(frame);
        void this.#feed.pass(frame);
      },
      onRequest: (id, method, params) => this.#onRequest(connection, id, method, params),
      log: (level, message) => this.#context.log(level, message),
    });
    this.#connection = connection;
    await this.#remember({ pid: connection.pid });
    const { pid } = connection;
    this.#supervisor.process = { state: pid === null ? 'starting' : 'running', pid, exitCode: null };
    let fatal: string | null = null;
    try {
      const opened = await this.#opened(connection);
      if (opened !== null) await this.#sessionReady(connection, opened);
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      fatal = error.message;
      this.#context.log('error', error.message);
      await connection.end();
    }
    const exit = await connection.exited;
    const lost = this.#lost.exited();
    fatal = lost?.fatal ?? fatal;
    if (pid === null) fatal = `${program} can’t be started: ${exit.lastOutput ?? 'not found'}`;
    this.#connection = null;
    this.#reload = null;
    this.stop = undefined;
    this.#queue.stopped();
    this.#permissions.clear();
    this.#unprocessed = lost?.unprocessed ?? [];
    const { exitCode, signal } = exit;
    // The agent's last output explains the exit, unless the agent was killed.
    const reason = lost?.reason ?? exitText(signal === null ? exit : { ...exit, lastOutput: null });
    if (!this.#supervisor.signal.aborted) this.#context.log('warn', `the agent exited: ${reason}`);
    return { reason, exitCode, signal, fatal };
  }

  async #opened(connection: AcpConnection): Promise<OpenedSession | null> {
    const { env, mode, model, auth, command, mustLoad = false, patienceMs = PATIENCE_MS } = this.#options;
    const { nativeId, cwd, sessionId } = this.#session;
    const toolServer = this.#context.toolServer(sessionId);
    const slow = setTimeout(() => {
      const problem = `${command[0]} has opened no session for ${patienceMs / 1000} s. Check that it speaks ACP on stdin and stdout and is not waiting for input`;
      this.#context.log('warn', problem);
      this.#setTrouble(problem);
    }, patienceMs);
    try {
      return await openSession(connection, this.#adapter, {
        ...{ nativeId, mustLoad, cwd, mode, model, auth, env, toolServer },
      });
    } finally {
      clearTimeout(slow);
      this.#setTrouble(null);
    }
  }

  async #sessionReady(
    connection: AcpConnection,
    { nativeId, how, notLoaded, promptCapabilities, acceptsParallelPrompts, reload }: OpenedSession,
  ): Promise<void> {
    this.#reload = reload;
    if (notLoaded !== null) {
      this.#context.log('warn', `could not load the earlier session: ${notLoaded}`);
      this.#notice(
        `The agent could not load the earlier conversation (${notLoaded}) and started a new one.`,
        'warning',
      );
    }
    this.#promptCapabilities = promptCapabilities;
    const recorded = this.#replay.finish();
    const replayed = how === 'loaded' ? recorded : [];
    const { workspaceNote = null } = this.#options;
    // A loaded session without messages never received the note.
    const isUnused = how === 'loaded' && replayed.length === 0;
    const { note } = how === 'new' ? { note: workspaceNote } : this.#session;
    this.#note = how === 'new' || isUnused ? note : null;
    await this.#remember({ nativeId, note });
    if (this.#adapter.about.profile.stopsTasks === true)
      this.stop = (task) => this.#stopTask(connection, nativeId, task);
    const withoutNote = ([first = '', ...others]: ReplayedMessage) =>
      note !== null && first.startsWith(note) ? [first.slice(note.length), ...others] : [first, ...others];
    this.#queue.ready(acceptsParallelPrompts, replayed.map(withoutNote));
    this.#context.changed();
  }

  async #reloadSession(): Promise<RpcResponse['error']> {
    this.#context.log('warn', 'the agent lost its session; loading it again');
    this.#permissions.cancelAll();
    const error = this.#reload === null ? GONE.error : await this.#reload();
    // The replay repeats recorded events.
    this.#replay.finish();
    if (error === null) this.#notice('The agent lost its session and loaded it again.', 'warning');
    return error;
  }

  async #prompt(message: InFlightMessage): Promise<RpcResponse> {
    const { nativeId: sessionId } = this.#session;
    // A slash command must come first.
    const note = message.text.startsWith('/') ? null : this.#note;
    if (note !== null) this.#note = null;
    const ownText = promptText(message);
    const text = note === null ? ownText : `${note}\n\n${ownText}`;
    const prompt = promptBlocks({ ...message, text }, this.#promptCapabilities ?? TEXT_ONLY);
    const prompted = this.#connection?.request('session/prompt', {
      sessionId,
      prompt,
      _meta: { interlude: { messageIds: [message.messageId] } },
    });
    const response = (await prompted) ?? GONE;
    if (response.error !== null && response.error.isGone !== true) this.#note ??= note;
    return response;
  }

  async #stopTask(
    connection: AcpConnection,
    sessionId: string,
    { body: { taskId } }: CommandOf<'task.stop'>,
  ): Promise<CommandOutcome> {
    const { tasks } = this.#context.openWork(this.#session.sessionId);
    if (!tasks.some(({ id }) => id === taskId)) return failed('this task is no longer running');
    const { result, error } = await connection.request(STOP_TASK, { sessionId, asyncTaskId: taskId });
    if (error !== null) return failed(error.message);
    if (result.stopped === true) return { state: 'done' };
    return {
      state: 'failed',
      reason: 'the agent did not stop this task: over ACP it can stop commands, but not subagents',
    };
  }

  /** Handles a request of the agent; its frame is already recorded. */
  #onRequest(connection: AcpConnection, id: unknown, method: string, params: Fields): void {
    if (method === '_qwencode/start_turn') {
      connection.respond(id, {});
      return;
    }
    if (method !== 'session/request_permission') {
      this.#context.log('debug', `the agent requested ${method}, which is not supported`);
      connection.refuse(id, method);
      return;
    }
    this.#permissions.hold(connection, id, this.#adapter.openRequest(String(params.sessionId), id));
  }

  #notice(text: string, tone: 'info' | 'warning' = 'info'): void {
    void this.#context.emit(this.#session.sessionId, [noticeEvent(text, tone)]);
  }

  #setTrouble(trouble: string | null): void {
    this.#trouble = trouble;
    this.#context.changed();
  }

  #remember(change: Partial<AcpSession>): Promise<void> {
    this.#session = { ...this.#session, ...change };
    return this.#context.emit(this.#session.sessionId, [], [sessionCursor(this.#session)]);
  }

  #isIdle(): boolean {
    const { turn, tasks } = this.#context.openWork(this.#session.sessionId);
    // Does not wait for tasks whose ends the agent never reports.
    const { taskNote } = this.#adapter.about.profile;
    const awaited =
      taskNote === undefined ? tasks.length : this.#adapter.processes(this.#session.nativeId ?? '').length;
    return turn === null && awaited === 0 && this.#queue.pending === 0;
  }
}
