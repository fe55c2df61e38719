import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { CUSTOM } from '@interlude/protocol/ag-ui';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { compact, type Fields } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import { AcpAdapter, PROCESS_ENDED } from '../../adapters/acp/acp-adapter';
import { STOP_TASK } from '../../adapters/acp/claude-extras';
import type { WireEnd, WireFrame } from '../../adapters/wire';
import type { CommandOutcome } from '../../commands/seen-commands';
import { DrainWait, RestartPolicy } from '../../host/agent-lifecycle';
import { MARK, terminateOrphan } from '../../host/agent-processes';
import type { AttachmentFile } from '../../host/attachment-store';
import { type InFlightMessage, type InFlightMessages, inFlightMessage } from '../../host/message-delivery';
import { ProcessExitWatcher } from '../../host/process-lookup';
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
import { type AgentExit, agentEnvironment, exitText } from '../../wire/agent-process';
import { WireFeed } from '../../wire/wire-feed';
import { AcpConnection, GONE, type RpcAnswer } from './acp-connection';
import { PermissionRequests } from './permission-requests';
import { PromptQueue, SessionRecovery } from './prompt-queue';
import { type PromptCapabilities, promptBlocks, promptText, type ReplayedMessage, ReplayRecorder } from './prompts';
import { type AcpSession, type OpenedSession, openSession, SetupError, sessionCursor } from './session-setup';

/**
 * One session of a live ACP agent, process after process.
 *
 * Ordering: one reader for as long as a process lives, between prompts too. Messages are prompted in the order in which
 * they were said.
 * Failure: an agent that dies is started again and loads its session, where it can. A message that no turn had taken up
 * is given again, unless what is loaded has it. One that lives and has lost its session (the agent inside of it has died)
 * is asked to load it again, else it is restarted. An agent that keeps dying, loses its session after that too, or can't be
 * used as it was asked for, is given up, and that is said in the session.
 */
export interface AcpSourceOptions {
  context: SourceContext;
  memory: AcpSession;
  inHand: InFlightMessages;
  command: readonly [string, ...string[]];
  env: Record<string, string | undefined>;
  /** Where what the agent starts finds this runner. */
  controlFile?: string;
  mode?: string | undefined;
  model?: string | undefined;
  auth?: string | undefined;
  /** How long a permission waits for a person. */
  answerWithinMs: number;
  /** How long the agent may take to open a session before that is said to be wrong. */
  patienceMs?: number;
  /** A person named the session of the agent's: another one will not do. */
  mustLoad?: boolean;
  /** Said before the first message that a new session is given. */
  workspaceNote?: string | null;
  record?: ((frame: WireFrame) => void) | undefined;
}

const PATIENCE_MS = 30_000;
const FILES_ONLY = ['file'] as const;
const NOTHING_MORE: PromptCapabilities = { image: false, embeddedContext: false };

export class AcpSource implements Source {
  readonly #options: AcpSourceOptions;
  readonly #context: SourceContext;
  readonly #adapter: AcpAdapter;
  readonly #feed: WireFeed;
  readonly #permissions: PermissionRequests;
  readonly #queue: PromptQueue;
  readonly #past = new ReplayRecorder();
  readonly #restarts = new RestartPolicy();
  readonly #processes: ProcessExitWatcher;
  readonly #ending = new AbortController();
  readonly elsewhere: string;
  readonly refusals = {
    'task.stop': 'this agent has no way to end a single task',
    'task.wake': 'ask for what you want with a message: ACP has nothing else that begins a turn',
    'wake-rule.set': 'ask for what you want with a message: ACP has nothing else that begins a turn',
    'question.answer': 'agents ask no questions over ACP, only for permissions',
  };
  readonly end: NonNullable<Source['end']>;
  /** Only claude-agent-acp and codex-acp can. */
  stop?: Source['stop'];
  #memory: AcpSession;
  #process: NonNullable<SessionFacts['process']> = { state: 'starting', pid: null, exitCode: null };
  #connection: AcpConnection | null = null;
  /** Null until the agent has said it. */
  #takes: PromptCapabilities | null = null;
  #trouble: string | null = null;
  #life: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #over: string | null = null;
  #endsFor = '';
  /** Goes before the next message. */
  #note: string | null = null;
  readonly #lost: SessionRecovery;
  #reload: OpenedSession['reload'] | null = null;
  /** The adapter has told the end of the session; before there was one of the agent's, it can't. */
  #saysEnd = false;
  readonly #quiet = new DrainWait();

  constructor(options: AcpSourceOptions) {
    this.#options = options;
    const { context, memory, answerWithinMs, record, inHand } = options;
    this.#context = context;
    this.#memory = memory;
    this.end = endSessionHandler(context);
    const { sessionId } = memory;
    this.elsewhere = `the agent carries session ${sessionId} now; resume this one with --session`;
    this.#adapter = new AcpAdapter({ sessionOf: () => sessionId, newRunId: randomUUID, answerWithinMs });
    this.#permissions = new PermissionRequests(sessionId, answerWithinMs);
    this.#lost = new SessionRecovery({
      nativeId: () => this.#memory.nativeId,
      give: (message) => this.#give(message),
      isUntaken: ({ messageId }) => inHand.has(messageId),
      reload: () => this.#loadAgain(),
      restart: async () => await this.#connection?.end(),
      patienceMs: options.patienceMs ?? PATIENCE_MS,
    });
    this.#queue = new PromptQueue({
      inHand,
      prompt: (message) => this.#lost.prompt(message),
      gaveBack: (messageId, reason) => context.report(messageId, { state: 'failed', reason }),
    });
    this.#processes = new ProcessExitWatcher((pid, wasSeen) => {
      const params = { sessionId: this.#memory.nativeId, pid, wasSeen };
      void this.#feed.pass({ dir: 'out', msg: { jsonrpc: '2.0', method: PROCESS_ENDED, params } });
    });
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      around: context,
      record,
      onTold: (events) => {
        this.#saysEnd ||= events.some(({ event }) => event.name === CUSTOM.sessionEnded);
        this.#processes.watch(this.#adapter.processes(this.#memory.nativeId ?? ''));
        this.#context.changed();
        this.#checkQuiet();
      },
      onAnswered: (_, messageIds) => this.#queue.answered(messageIds),
    });
  }

  get sessions(): SessionFacts[] {
    const { sessionId, cwd, nativeId } = this.#memory;
    const { provider, profile } = this.#adapter.about;
    const { mode, model, commands = [] } = (nativeId === null ? null : this.#adapter.settings(nativeId)) ?? {};
    return [
      {
        sessionId,
        cwd,
        provider,
        process: this.#process,
        pendingMessages: this.#queue.pending,
        attachments: this.#takes === null ? null : this.#takes.image ? ATTACHMENT_KINDS : FILES_ONLY,
        ...(mode ? { mode: mode.name } : {}),
        ...(model ? { model: model.name } : {}),
        ...(commands.length > 0 ? { commands } : {}),
        ...(provider !== null && profile.limits.length > 0 ? { limits: [...profile.limits] } : {}),
        ...(this.#trouble === null ? {} : { trouble: this.#trouble }),
      },
    ];
  }

  async start(): Promise<void> {
    const { running, pid, sessionId } = this.#memory;
    if (running) {
      if (pid !== null) await terminateOrphan(pid, sessionId);
      const ends = endsOf(this.#context.openWork(sessionId), sessionId, Date.now());
      if (ends.length > 0) await this.#context.emit(sessionId, ends);
      this.#notice('The runner was started again; the session goes on.');
    }
    await this.#remember({ running: true });
    this.#life = this.#live();
  }

  close(deadlineMs: number, reason: string): Promise<void> {
    if (deadlineMs <= 0) this.#quiet.end();
    this.#closing ??= this.#end(deadlineMs, reason);
    return this.#closing;
  }

  async say(
    { body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    if (this.#over !== null) return failed(this.#over);
    const { messageId } = body;
    const text = messageText(body);
    return await this.#queue.say(inFlightMessage(messageId, text, files), again);
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const { sessionId, nativeId } = this.#memory;
    const { turn, tasks } = this.#context.openWork(sessionId);
    const running = turn?.runId ?? null;
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    const connection = this.#connection;
    if (connection === null || nativeId === null) {
      return failed('the agent is being started: nothing runs');
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

  async #end(deadlineMs: number, reason: string): Promise<void> {
    this.#endsFor = reason;
    if (deadlineMs > 0 && !this.#isQuiet()) await this.#quiet.within(deadlineMs);
    this.#ending.abort();
    await this.#connection?.end();
    await this.#life;
    this.#queue.close(reason);
    this.#feed.close();
    this.#processes.close();
    await this.#remember({ running: false, pid: null });
  }

  /** Process after process, until the runner ends or they keep dying. */
  async #live(): Promise<void> {
    for (;;) {
      const startedAt = Date.now();
      const { exit, lost, unusable } = await this.#runOnce();
      // What it wrote last says why it ended, unless somebody ended it.
      const reason = lost?.why ?? exitText(exit.signal === null ? exit : { ...exit, lastWords: null });
      const { exitCode, signal } = exit;
      this.#observe({ state: 'exited', pid: null, exitCode, signal });
      if (this.#ending.signal.aborted) {
        await this.#sessionEnds({ reason: this.#endsFor, isAsked: true });
        return;
      }
      this.#context.log('warn', `the agent has ended: ${reason}`);
      const next = this.#restarts.exited(startedAt, Date.now());
      if (unusable !== null || next.kind === 'give-up') {
        const often = next.kind === 'give-up' ? `${next.exits} times within ${next.withinMs / 1000} s` : '';
        await this.#giveUp(unusable ?? `the agent ended ${often}, the last time it was: ${reason}`, exit);
        return;
      }
      this.#observe({ state: 'restarting', pid: null, exitCode, signal });
      const goesOn = `It is started again in ${next.waitMs / 1000} s.`;
      await this.#feed.ended({ reason, exitCode, signal, goesOn });
      this.#queue.giveAgain(lost?.untaken ?? []);
      await pause(next.waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
      if (this.#ending.signal.aborted) {
        await this.#sessionEnds({ reason: this.#endsFor, isAsked: true });
        return;
      }
    }
  }

  async #sessionEnds(end: WireEnd): Promise<void> {
    this.#saysEnd = false;
    await this.#feed.ended(end);
    if (this.#saysEnd) return;
    const { reason, exitCode, signal } = end;
    const event = { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: compact({ reason, exitCode, signal }) };
    await this.#context.emit(this.#memory.sessionId, [{ occurredAt: Date.now(), event }]);
  }

  async #giveUp(why: string, { exitCode, signal }: AgentExit): Promise<void> {
    this.#over = why;
    await this.#sessionEnds({ reason: why, exitCode: exitCode ?? (signal === null ? 1 : null), signal });
    this.#queue.close(why);
    await this.#remember({ running: false, pid: null });
    this.#context.gaveUp(why);
  }

  async #runOnce(): Promise<{ exit: AgentExit; lost: ReturnType<SessionRecovery['exited']>; unusable: string | null }> {
    const { command, env, controlFile = '/dev/null' } = this.#options;
    const { cwd, sessionId } = this.#memory;
    const [program, ...args] = command;
    const connection: AcpConnection = new AcpConnection({
      // Else hooks installed for terminals would have their companion tell this session a second time.
      spawn: {
        command: program,
        args,
        cwd,
        env: { ...agentEnvironment(env), INTERLUDE_CONTROL: controlFile, [MARK]: sessionId },
      },
      onFrame: (frame) => {
        this.#past.heard(frame);
        void this.#feed.pass(frame);
      },
      onRequest: (id, method, params) => this.#asked(connection, id, method, params),
      log: (level, message) => this.#context.log(level, message),
    });
    this.#connection = connection;
    await this.#remember({ pid: connection.pid });
    this.#observe({ state: connection.pid === null ? 'starting' : 'running', pid: connection.pid, exitCode: null });
    let unusable: string | null = null;
    try {
      const opened = await this.#opened(connection);
      if (opened !== null) await this.#begun(connection, opened);
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      unusable = error.message;
      this.#context.log('error', error.message);
      await connection.end();
    }
    const exit = await connection.exited;
    const lost = this.#lost.exited();
    unusable = lost?.hopeless ?? unusable;
    if (connection.pid === null) unusable = `${program} can’t be started: ${exit.lastWords ?? 'it is not there'}`;
    this.#connection = null;
    this.#reload = null;
    this.stop = undefined;
    this.#queue.stopped();
    this.#permissions.letGoAll();
    return { exit, lost, unusable };
  }

  async #opened(connection: AcpConnection): Promise<OpenedSession | null> {
    const { env, mode, model, auth, command, mustLoad = false, patienceMs = PATIENCE_MS } = this.#options;
    const { nativeId, cwd, sessionId } = this.#memory;
    const toolServer = this.#context.toolServer(sessionId);
    const impatient = setTimeout(() => {
      const what = `${command[0]} has opened no session for ${patienceMs / 1000} s: see whether it speaks ACP on its stdin and stdout, and waits for nothing else`;
      this.#context.log('warn', what);
      this.#troubled(what);
    }, patienceMs);
    try {
      return await openSession(connection, this.#adapter, {
        ...{ nativeId, mustLoad, cwd, mode, model, auth, env, toolServer },
      });
    } finally {
      clearTimeout(impatient);
      this.#troubled(null);
    }
  }

  /** The session can be prompted. */
  async #begun(
    connection: AcpConnection,
    { nativeId, how, notLoaded, takes, takesPromptsAtOnce, reload }: OpenedSession,
  ): Promise<void> {
    this.#reload = reload;
    if (notLoaded !== null) {
      this.#context.log('warn', `the session of before was not loaded: ${notLoaded}`);
      this.#notice(
        `The agent does not know what was before (${notLoaded}). This is a new session of its own.`,
        'warning',
      );
    }
    this.#takes = takes;
    const past = this.#past.over();
    const replayed = how === 'loaded' ? past : [];
    const { workspaceNote = null } = this.#options;
    // One that was opened with a note and has no past was never given a message.
    const isUnsaid = how === 'loaded' && replayed.length === 0;
    const { note } = how === 'new' ? { note: workspaceNote } : this.#memory;
    this.#note = how === 'new' || isUnsaid ? note : null;
    await this.#remember({ nativeId, note });
    if (this.#adapter.about.profile.stopsTasks === true)
      this.stop = (task) => this.#stopTask(connection, nativeId, task);
    const said = ([first = '', ...others]: ReplayedMessage) =>
      note !== null && first.startsWith(note) ? [first.slice(note.length), ...others] : [first, ...others];
    this.#queue.ready(takesPromptsAtOnce, replayed.map(said));
    this.#context.changed();
  }

  async #loadAgain(): Promise<RpcAnswer['error']> {
    this.#context.log('warn', 'the agent has lost its session: it is loaded again');
    this.#permissions.cancelAll();
    const error = this.#reload === null ? GONE.error : await this.#reload();
    // The replay repeats recorded events.
    this.#past.over();
    if (error === null) this.#notice('The agent lost its session and loaded it again.', 'warning');
    return error;
  }

  async #give(message: InFlightMessage): Promise<RpcAnswer> {
    const { nativeId: sessionId } = this.#memory;
    // What begins with a slash is a command of the agent's, and only there.
    const note = message.text.startsWith('/') ? null : this.#note;
    if (note !== null) this.#note = null;
    const words = promptText(message);
    const text = note === null ? words : `${note}\n\n${words}`;
    const prompt = promptBlocks({ ...message, text }, this.#takes ?? NOTHING_MORE);
    const asked = this.#connection?.request('session/prompt', {
      sessionId,
      prompt,
      _meta: { interlude: { messageIds: [message.messageId] } },
    });
    const answer = (await asked) ?? GONE;
    if (answer.error !== null && answer.error.isGone !== true) this.#note ??= note;
    return answer;
  }

  async #stopTask(
    connection: AcpConnection,
    sessionId: string,
    { body: { taskId } }: CommandOf<'task.stop'>,
  ): Promise<CommandOutcome> {
    const { tasks } = this.#context.openWork(this.#memory.sessionId);
    if (!tasks.some(({ id }) => id === taskId)) return failed('this task does not run any more');
    const { result, error } = await connection.request(STOP_TASK, { sessionId, asyncTaskId: taskId });
    if (error !== null) return failed(error.message);
    if (result.stopped === true) return { state: 'done' };
    return {
      state: 'failed',
      reason: 'the agent does not end this task: over ACP it can end commands, and no subagents',
    };
  }

  /** The agent asks for something; its frame has been told. */
  #asked(connection: AcpConnection, id: unknown, method: string, params: Fields): void {
    if (method === '_qwencode/start_turn') {
      connection.respond(id, {});
      return;
    }
    if (method !== 'session/request_permission') {
      this.#context.log('debug', `the agent asked for ${method}, which is not offered`);
      connection.refuse(id, method);
      return;
    }
    this.#permissions.hold(connection, id, this.#adapter.asked(String(params.sessionId), id));
  }

  #notice(text: string, tone: 'info' | 'warning' = 'info'): void {
    void this.#context.emit(this.#memory.sessionId, [noticeEvent(text, tone)]);
  }

  #troubled(trouble: string | null): void {
    this.#trouble = trouble;
    this.#context.changed();
  }

  #remember(change: Partial<AcpSession>): Promise<void> {
    this.#memory = { ...this.#memory, ...change };
    return this.#context.emit(this.#memory.sessionId, [], [sessionCursor(this.#memory)]);
  }

  #observe(process: NonNullable<SessionFacts['process']>): void {
    this.#process = process;
    this.#context.changed();
    this.#checkQuiet();
  }

  #isQuiet(): boolean {
    const { turn, tasks } = this.#context.openWork(this.#memory.sessionId);
    // The end of a task that the agent never tells is not waited for.
    const { taskNote } = this.#adapter.about.profile;
    const awaited = taskNote === undefined ? tasks.length : this.#adapter.processes(this.#memory.nativeId ?? '').length;
    return this.#over !== null || (turn === null && awaited === 0 && this.#queue.pending === 0);
  }

  #checkQuiet(): void {
    if (this.#isQuiet()) this.#quiet.end();
  }
}
