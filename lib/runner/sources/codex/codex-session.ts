import { setTimeout as pause } from 'node:timers/promises';
import { isImageType } from '@interlude/protocol/attachments';
import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { CodexAdapter } from '../../adapters/codex/codex-adapter';
import { clientIdOfMessage, parseClientId } from '../../adapters/codex/turns';
import { withFileList } from '../../host/attachment-store';
import { type InFlightMessage, InFlightMessages } from '../../host/message-delivery';
import { readAttachment } from '../../host/read-attachment';
import type { CommandOutcome } from '../../host/seen-commands';
import type { SourceContext } from '../../host/source';
import { failed, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { NO_SUCH_METHOD, type RpcResult } from './app-server';
import type { CodexConnection } from './codex-connection';
import type { Wake } from './task-wakes';
import { TaskWakes } from './task-wakes';

export interface CodexSessionOptions {
  sessionId: string;
  context: SourceContext;
  adapter: CodexAdapter;
  /** Resolves once the thread is followed; rejects when the source ends. */
  ready: () => Promise<{ connection: CodexConnection; threadId: string }>;
}

/** Time for Codex to start a queued turn. */
const QUEUE_MS = 300;

/** Sends messages and commands to Codex in one session. */
export class CodexSession {
  readonly sessionId: string;
  readonly inFlight: InFlightMessages;
  cwd: string | null = null;
  model: string | null = null;
  /** Sent with the next message that starts a turn. */
  note: string | null = null;
  readonly #options: CodexSessionOptions;
  #wakes: TaskWakes | null = null;
  /** True if the queue of Codex may hold one of our messages, possibly from an earlier process. */
  #mayBeQueued = true;

  static async restore(options: CodexSessionOptions): Promise<CodexSession> {
    const { context, sessionId } = options;
    const session = new CodexSession(options, await InFlightMessages.restore(context, sessionId));
    session.#wakes = await TaskWakes.restore(context, sessionId, (wake) => session.#wake(wake));
    return session;
  }

  private constructor(options: CodexSessionOptions, inFlight: InFlightMessages) {
    this.#options = options;
    this.sessionId = options.sessionId;
    this.inFlight = inFlight;
  }

  get wakes(): TaskWakes | null {
    return this.#wakes;
  }

  /** @param isAgain true if Codex may already have the message */
  async deliver(message: InFlightMessage, isAgain: boolean): Promise<CommandOutcome> {
    if (this.inFlight.has(message.messageId)) return { state: 'delivered' };
    const { connection, threadId } = await this.#options.ready();
    const clientId = clientIdOfMessage(message.messageId);
    if (isAgain && (await connection.hasMessage(threadId, clientId))) return { state: 'delivered' };
    await this.inFlight.put(message);
    return await this.#send(message);
  }

  /** Resends messages that a previous server had and this one lacks. */
  async resume(connection: CodexConnection, threadId: string): Promise<void> {
    for (const message of this.inFlight.all) {
      if (await connection.hasMessage(threadId, clientIdOfMessage(message.messageId))) continue;
      const { state, reason } = await this.#send(message);
      if (state === 'failed') this.#options.context.report(message.messageId, { state, ...(reason ? { reason } : {}) });
    }
    this.#wakes?.resume();
    await this.turnEnded();
  }

  /** Starts the next queued message, because Codex does not after an interrupt or a failure. */
  async turnEnded(): Promise<void> {
    if (!this.#mayBeQueued) return;
    await pause(QUEUE_MS);
    const { connection, threadId } = await this.#options.ready();
    if (this.#options.adapter.thread(threadId)?.openTurn !== null) return;
    const response = await connection.server.call('thread/queue/list', { threadId });
    const queued = 'result' in response ? listOf(response.result.data).map(fieldsOf) : [];
    const ours = queued.find(({ clientUserMessageId: id }) => parseClientId(textOf(id)) !== null);
    const queuedSubmissionId = textOf(ours?.id);
    this.#mayBeQueued = queuedSubmissionId !== null;
    if (queuedSubmissionId === null) return;
    const started = await connection.server.call('thread/queue/start', { threadId, queuedSubmissionId });
    if ('error' in started) this.#options.context.log('warn', `could not start a queued message: ${started.error}`);
  }

  /** @param turnId the run to interrupt */
  async interrupt(turnId: string | undefined): Promise<CommandOutcome> {
    const running = this.#options.context.openWork(this.sessionId).turn?.runId ?? null;
    const stale = staleInterrupt(turnId, running, 'Codex');
    if (stale !== null) return stale;
    const { connection, threadId } = await this.#options.ready();
    const turn = this.#options.adapter.thread(threadId)?.openTurn ?? null;
    if (turn === null) return failed('nothing is running now');
    return rpcOutcome(await connection.server.call('turn/interrupt', { threadId, turnId: turn }));
  }

  /** Interrupts a subagent or terminates a command. */
  async stop(taskId: string): Promise<CommandOutcome> {
    const { connection } = await this.#options.ready();
    const threads = this.#options.adapter.threads.filter(({ writer }) => writer.sessionId === this.sessionId);
    const subagent = threads.find(({ parent, openTurn }) => parent !== null && openTurn === taskId);
    if (subagent !== undefined) {
      return rpcOutcome(await connection.server.call('turn/interrupt', { threadId: subagent.id, turnId: taskId }));
    }
    for (const { id: threadId } of threads) {
      const response = await connection.server.call('thread/backgroundTerminals/list', { threadId });
      if ('error' in response) continue;
      const terminal = listOf(response.result.data)
        .map(fieldsOf)
        .find(({ itemId }) => itemId === taskId);
      const processId = textOf(terminal?.processId);
      if (processId === null) continue;
      this.#wakes?.stopped(taskId);
      return rpcOutcome(await connection.server.call('thread/backgroundTerminals/terminate', { threadId, processId }));
    }
    return failed('this task is no longer running');
  }

  async #wake(wake: Wake): Promise<CommandOutcome> {
    const { connection, threadId } = await this.#options.ready();
    if (await connection.hasMessage(threadId, wake.clientId)) return { state: 'done' };
    const { clientId, text, context, taskIds } = wake;
    const isOpen = this.#options.adapter.thread(threadId)?.openTurn !== null;
    if (isOpen) {
      // Queued messages have no context, so the text includes everything.
      const outputs = Object.entries(context).filter(([name]) => name !== 'interlude');
      const whole = [text, ...outputs.map(([, { name, value }]) => `${name}:\n${value}`)].join('\n\n');
      return rpcOutcome(await this.#queue(connection, threadId, clientId, inputOf({ text: whole })));
    }
    const response = await connection.server.call('turn/start', {
      threadId,
      turnTrigger: taskIds.map((id) => `interlude:task:${id}`).join(','),
      clientUserMessageId: clientId,
      additionalContext: context,
      input: inputOf({ text }),
    });
    return rpcOutcome(response);
  }

  async #send(message: InFlightMessage): Promise<CommandOutcome> {
    const { messageId } = message;
    const input = inputOf(message);
    const { connection, threadId } = await this.#options.ready();
    const clientId = clientIdOfMessage(messageId);
    const isOpen = this.#options.adapter.thread(threadId)?.openTurn !== null;
    const response = isOpen
      ? await this.#queue(connection, threadId, clientId, input)
      : await this.#startTurn(connection, threadId, clientId, input);
    // After a disconnect, the next connection checks whether the message arrived.
    if ('result' in response || response.isGone) return { state: 'delivered' };
    this.inFlight.remove([messageId]);
    return failed(`Codex refused the message: ${response.error}`);
  }

  async #startTurn(
    connection: CodexConnection,
    threadId: string,
    clientId: string,
    input: object[],
  ): Promise<RpcResult> {
    const { note } = this;
    const additionalContext = { interlude: { value: note, kind: 'application' } };
    this.note = null;
    const response = await connection.server.call('turn/start', {
      ...{ threadId, clientUserMessageId: clientId, input },
      ...(note === null ? {} : { additionalContext }),
    });
    if ('error' in response && !response.isGone) this.note ??= note;
    return response;
  }

  /** Queues a message as another turn; servers without a queue get it in the running turn. */
  async #queue(connection: CodexConnection, threadId: string, clientId: string, input: object[]): Promise<RpcResult> {
    const message = { threadId, clientUserMessageId: clientId, input };
    this.#mayBeQueued = true;
    const queued = await connection.server.call('thread/queue/add', message);
    if (!('error' in queued) || queued.code !== NO_SUCH_METHOD) return queued;
    const expectedTurnId = this.#options.adapter.thread(threadId)?.openTurn ?? null;
    if (expectedTurnId === null) return await connection.server.call('turn/start', message);
    return await connection.server.call('turn/steer', { ...message, expectedTurnId });
  }
}

/** Converts a message to input. Codex reads images from disk; other files are passed by path in the text. */
function inputOf({ text, files = [] }: Pick<InFlightMessage, 'text' | 'files'>): object[] {
  const lost = files.filter((file) => readAttachment(file) === null);
  const available = files.filter((file) => !lost.includes(file));
  const [images, others] = [true, false].map((isImage) =>
    available.filter(({ mediaType }) => isImageType(mediaType) === isImage),
  );
  return [
    { type: 'text', text: withFileList(text, others ?? [], lost), text_elements: [] },
    ...(images ?? []).map(({ path }) => ({ type: 'localImage', path })),
  ];
}

function rpcOutcome(response: RpcResult): CommandOutcome {
  return outcomeOf('result' in response ? null : response.error);
}

/** The sessions of one source and their current connections. */
export class CodexSessions {
  readonly #context: SourceContext;
  readonly #adapter: CodexAdapter;
  readonly #sessions = new Map<string, CodexSession>();
  readonly #waiting = new Set<() => void>();
  #ready: { connection: CodexConnection; threads: Map<string, string> } | null = null;
  #hasEnded = false;

  constructor(context: SourceContext, adapter: CodexAdapter) {
    this.#context = context;
    this.#adapter = adapter;
  }

  get all(): readonly CodexSession[] {
    return [...this.#sessions.values()];
  }

  get(sessionId: string): CodexSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /** Returns a session, restored from its stored state if needed. */
  async restore(sessionId: string): Promise<CodexSession> {
    const known = this.#sessions.get(sessionId);
    if (known !== undefined) return known;
    const ready = () => this.#whenReady(sessionId);
    const session = await CodexSession.restore({ sessionId, context: this.#context, adapter: this.#adapter, ready });
    const meanwhile = this.#sessions.get(sessionId);
    if (meanwhile !== undefined) return meanwhile;
    this.#sessions.set(sessionId, session);
    return session;
  }

  get isConnected(): boolean {
    return this.#ready !== null;
  }

  /** Lets the session accept commands once the history of its thread is emitted. */
  markReady(connection: CodexConnection, sessionId: string, threadId: string): void {
    if (this.#ready?.connection !== connection) this.#ready = { connection, threads: new Map() };
    this.#ready.threads.set(sessionId, threadId);
    this.#wakeWaiting();
  }

  disconnected(): void {
    this.#ready = null;
  }

  end(): void {
    this.#hasEnded = true;
    this.#wakeWaiting();
    for (const { wakes } of this.#sessions.values()) wakes?.close();
  }

  /** True if no session has open work or unanswered messages. */
  get isIdle(): boolean {
    return this.all.every(({ sessionId, inFlight }) => {
      const { turn, tasks } = this.#context.openWork(sessionId);
      return turn === null && tasks.length === 0 && inFlight.all.length === 0;
    });
  }

  async #whenReady(sessionId: string): Promise<{ connection: CodexConnection; threadId: string }> {
    for (;;) {
      if (this.#hasEnded) throw new Error('the runner has ended');
      const { connection, threads } = this.#ready ?? {};
      const threadId = threads?.get(sessionId);
      if (connection !== undefined && threadId !== undefined) return { connection, threadId };
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #wakeWaiting(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
