import type { Command, CommandFrameData } from '@interlude/protocol/commands';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { HEARTBEAT_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import type { Position } from '@interlude/protocol/position';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Logger } from '../logger/logger';
import { type OutboxClock, systemClock } from '../outbox/delivery';
import type { MessageDelivery } from './message-delivery';
import type { CommandOutcome, SeenCommands } from './seen-commands';
import { connectionMessage, type Endpoint, errorIn, requestServer, retryMs } from './server-request';
import { type CommandOf, HANDLER_NAMES, type Source } from './source';
import { failed } from './source-commands';

export interface CommandClientOptions {
  endpoint: Endpoint;
  agentId: string;
  /** Identifies this process. The server fences an agent's runner that started earlier. */
  runnerId: string;
  startedAt: number;
  seen: SeenCommands;
  /** @param again true if the command was started before, perhaps by an earlier process, with unknown outcome */
  act: (command: Command, again: boolean) => Promise<CommandOutcome>;
  onFenced: (message: string) => void;
  onLink?: (link: CommandLink) => void;
  onError?: (message: string) => void;
  clock?: OutboxClock;
}

export type CommandLink =
  | { state: 'connecting' | 'connected' | 'fenced' | 'stopped' }
  | { state: 'waiting'; cause: 'unavailable' | 'unauthorized'; message: string };

const SILENT_MS = 3 * HEARTBEAT_MS;
/** Bounded, because a recovered server must see its runners before it declares them missing. */
const LONGEST_WAIT_MS = (RUNNER_GRACE_MS * 2) / 3;
const ACK_TIMEOUT_MS = 15_000;
const ACK_RETRY_MS = 2_000;

type StreamEnd =
  | { kind: 'again' }
  | { kind: 'fenced'; message: string }
  | { kind: 'failed'; cause: 'unavailable' | 'unauthorized'; message: string };

/**
 * Reads the commands for an agent from one stream for the life of the runner, and acknowledges them.
 *
 * Ordering: commands start in the order of the stream. None waits for the outcome of another: a permission must be
 * decidable while a message waits for its turn.
 * Failure: a repeated command is acknowledged again, but not executed again. Retries an unreachable server without limit,
 * with backoff; a stream that is silent for three heartbeats counts as dead. Stops for good once fenced by a newer runner.
 */
export class CommandClient {
  readonly #options: CommandClientOptions;
  readonly #clock: OutboxClock;
  readonly #stopped = new AbortController();
  readonly #executing = new Set<string>();
  readonly #unacknowledged = new Map<string, CommandOutcome>();
  #intake: Promise<void> = Promise.resolve();
  #acknowledging: Promise<void> | null = null;
  #running: Promise<void> | null = null;
  #cancelRetry = () => {};
  #failures = 0;
  /** True if the last stream ended with bye (unauthorized). */
  #endedForToken = false;
  #link: CommandLink = { state: 'connecting' };

  constructor(options: CommandClientOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    for (const { id, outcome } of options.seen.unacknowledged()) this.#unacknowledged.set(id, outcome);
  }

  get link(): CommandLink {
    return this.#link;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Corrects an acknowledged outcome, for example of a delivered message that the agent never read. */
  async report(id: string, outcome: CommandOutcome): Promise<void> {
    await this.#options.seen.settle(id, outcome, this.#clock.now());
    this.#acknowledge(id, outcome);
  }

  /** Stops reading commands. Outcomes are acknowledged until `stop`. */
  async pause(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await this.#intake;
  }

  /** Tries to acknowledge the remaining outcomes once; the next process acknowledges the rest. */
  async stop(): Promise<void> {
    await this.pause();
    this.#cancelRetry();
    await this.#acknowledging;
    if (this.#link.state !== 'fenced') {
      await this.#sendAcknowledgements();
      this.#setLink({ state: 'stopped' });
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const end = await this.#readStream();
      if (this.#stopped.signal.aborted) return;
      if (end.kind === 'fenced') return this.#fenced(end.message);
      if (end.kind === 'again') continue;
      this.#failures += 1;
      this.#endedForToken = false;
      this.#setLink({ state: 'waiting', cause: end.cause, message: end.message });
      await this.#pause(retryMs(end.cause, this.#failures, this.#clock.random(), LONGEST_WAIT_MS));
    }
  }

  async #readStream(): Promise<StreamEnd> {
    const silence = new AbortController();
    let cancel = () => {};
    const restartTimer = () => {
      cancel();
      cancel = this.#clock.after(SILENT_MS, () => silence.abort());
    };
    try {
      restartTimer();
      const { endpoint, runnerId, startedAt, seen } = this.#options;
      const query = new URLSearchParams({ runner: runnerId, startedAt: String(startedAt) });
      const response = await requestServer(endpoint, `${this.#path}?${query}`, {
        headers: {
          accept: 'text/event-stream',
          ...(seen.position === null ? {} : { 'last-event-id': seen.position }),
        },
        signal: AbortSignal.any([this.#stopped.signal, silence.signal]),
      });
      if (!response.ok || response.body === null) return this.#refusal(response, await response.text());
      let end: StreamEnd | null = null;
      const parser = createParser({
        onEvent: (frame) => {
          end ??= this.#frame(frame);
        },
      });
      const decoder = new TextDecoder();
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        restartTimer();
        parser.feed(decoder.decode(chunk, { stream: true }));
        if (end !== null) return end;
      }
      return { kind: 'failed', cause: 'unavailable', message: 'the server ended the stream of commands' };
    } catch (error) {
      const message = silence.signal.aborted ? 'the server sent no heartbeat' : connectionMessage(error);
      return { kind: 'failed', cause: 'unavailable', message };
    } finally {
      cancel();
    }
  }

  #refusal({ status, url }: Response, text: string): StreamEnd {
    const error = errorIn(text);
    const message = error?.message ?? `${url.split('?')[0]} answered ${status}`;
    if (error?.code === 'stale_epoch') return { kind: 'fenced', message };
    // The server has a stream for every agent id, so 404 means that the token does not cover it.
    if (status === 404 && error?.code === 'not_found') {
      const reason = `the token does not cover the agent ${JSON.stringify(this.#options.agentId)}`;
      return { kind: 'failed', cause: 'unauthorized', message: reason };
    }
    return { kind: 'failed', cause: status === 401 || status === 403 ? 'unauthorized' : 'unavailable', message };
  }

  /** @returns the end of the stream; null if it continues */
  #frame({ event, id, data }: EventSourceMessage): StreamEnd | null {
    switch (event) {
      case 'hello':
        this.#hello((JSON.parse(data) as CommandFrameData['hello']).resume === 'gap');
        return null;
      case 'command':
        this.#receive(JSON.parse(data) as Command, id ?? null);
        return null;
      case 'fenced':
        return { kind: 'fenced', message: (JSON.parse(data) as { message: string }).message };
      case 'bye':
        return this.#bye(fieldsOf(parseJson(data)).reason === 'unauthorized');
      default:
        return null;
    }
  }

  /**
   * Reconnects immediately the first time, because the token may have been renewed; without a new one the server
   * refuses the request with a reason. If the next stream ends the same way, it backs off.
   */
  #bye(isUnauthorized: boolean): StreamEnd {
    const isAgain = isUnauthorized && this.#endedForToken;
    this.#endedForToken = isUnauthorized && !isAgain;
    if (!isAgain) return { kind: 'again' };
    return { kind: 'failed', cause: 'unauthorized', message: 'the server ended the stream because of the token' };
  }

  /** @param isAnother true if the server does not know our position, because it has another database */
  #hello(isAnother: boolean): void {
    this.#failures = 0;
    this.#setLink({ state: 'connected' });
    this.#acknowledgeAll();
    if (isAnother) void this.#options.seen.forgetPosition().catch((error) => this.#reportError(error));
  }

  #receive(command: Command, position: Position | null): void {
    this.#intake = this.#intake.then(async () => {
      const { seen } = this.#options;
      const known = seen.get(command.id);
      if (known?.outcome) return this.#acknowledge(command.id, known.outcome);
      if (this.#executing.has(command.id) || this.#stopped.signal.aborted) return;
      this.#executing.add(command.id);
      try {
        await seen.begin(command.id, position, this.#clock.now());
      } catch (error) {
        // The server sends it again when its lease expires.
        this.#executing.delete(command.id);
        return this.#reportError(error);
      }
      void this.#execute(command, known !== undefined);
    });
  }

  async #execute(command: Command, again: boolean): Promise<void> {
    const { act, seen } = this.#options;
    try {
      const outcome = await act(command, again).catch(
        (error): CommandOutcome => ({
          state: 'failed',
          reason: error instanceof Error ? error.message : String(error),
        }),
      );
      await seen.settle(command.id, outcome, this.#clock.now());
      this.#acknowledge(command.id, outcome);
    } catch (error) {
      this.#reportError(error);
    } finally {
      this.#executing.delete(command.id);
    }
  }

  #acknowledge(id: string, outcome: CommandOutcome): void {
    this.#unacknowledged.set(id, outcome);
    this.#acknowledgeAll();
  }

  #acknowledgeAll(): void {
    if (this.#unacknowledged.size === 0 || this.#link.state === 'fenced') return;
    this.#acknowledging ??= this.#sendAcknowledgements();
  }

  /** Retries without waiting for the next hello. */
  #acknowledgeSoon(): void {
    this.#cancelRetry();
    this.#cancelRetry = this.#clock.after(ACK_RETRY_MS, () => this.#acknowledgeAll());
  }

  /** Sends outcomes in order. After a failure the next hello or a retry continues. */
  async #sendAcknowledgements(): Promise<void> {
    try {
      for (;;) {
        const next = this.#unacknowledged.entries().next();
        if (next.done || this.#link.state === 'fenced') return;
        const [id, outcome] = next.value;
        const end = await this.#sendAcknowledgement(id, outcome);
        if (end === 'retry') return;
        if (end === 'fenced') return this.#fenced('a newer runner of this agent has taken over');
        if (this.#unacknowledged.get(id) === outcome) this.#unacknowledged.delete(id);
        await this.#options.seen.acknowledged(id, outcome).catch((error) => this.#reportError(error));
      }
    } finally {
      // Cleared in the same tick as the last check, so that later outcomes start a new call.
      this.#acknowledging = null;
      if (this.#unacknowledged.size > 0 && this.#link.state === 'connected') this.#acknowledgeSoon();
    }
  }

  async #sendAcknowledgement(id: string, outcome: CommandOutcome): Promise<'known' | 'retry' | 'fenced'> {
    try {
      const { endpoint, runnerId, startedAt } = this.#options;
      const response = await requestServer(endpoint, `${this.#path}/${encodeURIComponent(id)}/ack`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...outcome, runner: runnerId, startedAt }),
        signal: AbortSignal.timeout(ACK_TIMEOUT_MS),
      });
      const text = await response.text();
      if (response.ok) return 'known';
      const error = errorIn(text);
      if (error?.code === 'stale_epoch') return 'fenced';
      // Only the server's own response about this command is final.
      const isFinal = error?.code !== undefined && [400, 404, 409, 410].includes(response.status);
      if (isFinal) this.#options.onError?.(`the outcome of command ${id} was refused: ${error?.message}`);
      return isFinal ? 'known' : 'retry';
    } catch {
      return 'retry';
    }
  }

  #fenced(message: string): void {
    if (this.#link.state === 'fenced') return;
    this.#setLink({ state: 'fenced' });
    this.#stopped.abort();
    this.#options.onFenced(message);
  }

  get #path(): string {
    return `/agents/${encodeURIComponent(this.#options.agentId)}/commands`;
  }

  #setLink(link: CommandLink): void {
    this.#link = link;
    this.#options.onLink?.(link);
  }

  #reportError(error: unknown): void {
    this.#options.onError?.(error instanceof Error ? error.message : String(error));
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#stopped.signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#clock.after(ms, done);
      this.#stopped.signal.addEventListener('abort', done);
    });
  }
}

interface CommandDispatchOptions {
  source: () => Source | null;
  /** The outcome of every command once the runner is ending; null while it runs. */
  ending: (command: Command) => CommandOutcome | null;
  setLogLevel: (body: CommandOf<'log-level.set'>['body']) => Promise<CommandOutcome> | undefined;
  delivery: MessageDelivery;
  /** Called for each message, which may change the pending replies. */
  onMessage: () => void;
  log: Logger;
}

const STARTING = failed('the runner is still starting');

/**
 * Routes commands to the handlers of the source.
 *
 * Failure: a command whose first attempt was interrupted by a restart is not repeated, except messages: their handler
 * finds out whether the agent already has them.
 */
export class CommandDispatch {
  readonly #options: CommandDispatchOptions;

  constructor(options: CommandDispatchOptions) {
    this.#options = options;
  }

  async run(command: Command, again: boolean): Promise<CommandOutcome> {
    const { ending, setLogLevel, log, onMessage } = this.#options;
    const { id, type, sessionId } = command;
    const source = this.#options.source();
    if (type === 'log-level.set') return (await setLogLevel(command.body)) ?? STARTING;
    if (source === null) return STARTING;
    const ended = ending(command);
    if (ended !== null) return ended;
    const isKnown = source.sessions.some((session) => session.sessionId === sessionId);
    if (source.unknownSessionRefusal !== undefined && sessionId !== null && !isKnown)
      return failed(source.unknownSessionRefusal);
    const handler = source[HANDLER_NAMES[type]]?.bind(source) as
      | ((command: CommandOf<typeof type>, again: boolean) => Promise<CommandOutcome>)
      | undefined;
    if (handler === undefined) return failed(source.refusals?.[type] ?? `this agent does not support "${type}"`);
    if (again && type !== 'message') {
      return failed('the runner stopped while working on this; check whether it took effect');
    }
    log.info(`${type} ${id}${again ? ', again' : ''}`);
    if (type === 'message') onMessage();
    const outcome = await (command.type === 'message'
      ? this.#deliver(command, source, again)
      : handler(command, again));
    if (outcome.state === 'failed') log.warn(`${type} ${id} failed: ${outcome.reason}`);
    if (type === 'message') onMessage();
    return outcome;
  }

  #deliver(command: CommandOf<'message'>, source: Source, again: boolean): Promise<CommandOutcome> {
    const facts = () => source.sessions.find((session) => session.sessionId === command.sessionId);
    return this.#options.delivery.pass(
      command,
      facts,
      (files) => source.deliver?.(command, again, files) ?? Promise.resolve(STARTING),
    );
  }
}
