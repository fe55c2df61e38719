import type { Command, CommandFrameData } from '@interlude/protocol/commands';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { HEARTBEAT_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import type { Position } from '@interlude/protocol/position';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { type OutboxClock, systemClock } from '../outbox/delivery';
import { retryMs } from '../retry';
import { connectionMessage, type Endpoint, errorIn, requestServer } from '../server-request';
import type { CommandOutcome, SeenCommands } from './seen-commands';

/**
 * The runner's end of its agent's commands: one stream, read for as long as the runner lives, and the acknowledgements.
 *
 * Ordering: commands are begun in the order in which they come. None waits for the effect of another: a permission
 * must be decidable while a message waits for its turn.
 * Failure: a command that comes again is acknowledged again, not acted on again. An unreachable server is retried
 * without end, with growing waits; a stream that is silent for three heartbeats is dead. Once fenced by a newer runner,
 * it ends for good.
 */
export interface CommandClientOptions {
  endpoint: Endpoint;
  agentId: string;
  /** This process; the server fences the runner of an agent that started earlier. */
  runnerId: string;
  startedAt: number;
  seen: SeenCommands;
  /** @param again it was begun before, by this process or an earlier one, with unknown outcome */
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
/** A server that is back must hear from its runners before it declares them missing. */
const LONGEST_WAIT_MS = (RUNNER_GRACE_MS * 2) / 3;
const ACK_TIMEOUT_MS = 15_000;
const ACK_RETRY_MS = 2_000;

type StreamEnd =
  | { kind: 'again' }
  | { kind: 'fenced'; message: string }
  | { kind: 'failed'; cause: 'unavailable' | 'unauthorized'; message: string };

export class CommandClient {
  readonly #options: CommandClientOptions;
  readonly #clock: OutboxClock;
  readonly #stopped = new AbortController();
  readonly #acting = new Set<string>();
  readonly #unacknowledged = new Map<string, CommandOutcome>();
  #intake: Promise<void> = Promise.resolve();
  #acknowledging: Promise<void> | null = null;
  #running: Promise<void> | null = null;
  #callOffRetry = () => {};
  #failures = 0;
  /** Whether the last stream ended because of the token. */
  #wasSentAway = false;
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

  /** A command ended differently than was acknowledged: a delivered message that the agent did not read. */
  async report(id: string, outcome: CommandOutcome): Promise<void> {
    await this.#options.seen.settle(id, outcome, this.#clock.now());
    this.#acknowledge(id, outcome);
  }

  /** Accepts no more commands. Outcomes are still acknowledged until `stop`. */
  async hold(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await this.#intake;
  }

  /** Acknowledges what is left in one last try; the next process does the rest. */
  async stop(): Promise<void> {
    await this.hold();
    this.#callOffRetry();
    await this.#acknowledging;
    if (this.#link.state !== 'fenced') {
      await this.#sendAcknowledgements();
      this.#tell({ state: 'stopped' });
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const end = await this.#readStream();
      if (this.#stopped.signal.aborted) return;
      if (end.kind === 'fenced') return this.#fenced(end.message);
      if (end.kind === 'again') continue;
      this.#failures += 1;
      this.#wasSentAway = false;
      this.#tell({ state: 'waiting', cause: end.cause, message: end.message });
      await this.#pause(retryMs(end.cause, this.#failures, this.#clock.random(), LONGEST_WAIT_MS));
    }
  }

  async #readStream(): Promise<StreamEnd> {
    const silence = new AbortController();
    let callOff = () => {};
    const heard = () => {
      callOff();
      callOff = this.#clock.after(SILENT_MS, () => silence.abort());
    };
    try {
      heard();
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
        heard();
        parser.feed(decoder.decode(chunk, { stream: true }));
        if (end !== null) return end;
      }
      return { kind: 'failed', cause: 'unavailable', message: 'the server ended the stream of commands' };
    } catch (error) {
      const message = silence.signal.aborted ? 'the server fell silent' : connectionMessage(error);
      return { kind: 'failed', cause: 'unavailable', message };
    } finally {
      callOff();
    }
  }

  #refusal({ status, url }: Response, text: string): StreamEnd {
    const error = errorIn(text);
    const message = error?.message ?? `${url.split('?')[0]} answered ${status}`;
    if (error?.code === 'stale_epoch') return { kind: 'fenced', message };
    // Every agent has a stream, known or not. For whose token it is none of, there is none.
    if (status === 404 && error?.code === 'not_found') {
      const whose = `the token is not for the agent ${JSON.stringify(this.#options.agentId)}`;
      return { kind: 'failed', cause: 'unauthorized', message: whose };
    }
    return { kind: 'failed', cause: status === 401 || status === 403 ? 'unauthorized' : 'unavailable', message };
  }

  /** @returns how the stream ends, if the frame says so */
  #frame({ event, id, data }: EventSourceMessage): StreamEnd | null {
    switch (event) {
      case 'hello':
        this.#hello((JSON.parse(data) as CommandFrameData['hello']).resume === 'gap');
        return null;
      case 'command':
        this.#take(JSON.parse(data) as Command, id ?? null);
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
   * Of a token that counts no more there may be a successor by now. Where there is none, the next request is refused
   * and says why; where it is not, and the stream ends like that again, that is enough for now.
   */
  #bye(isUnauthorized: boolean): StreamEnd {
    const isAgain = isUnauthorized && this.#wasSentAway;
    this.#wasSentAway = isUnauthorized && !isAgain;
    if (!isAgain) return { kind: 'again' };
    return { kind: 'failed', cause: 'unauthorized', message: 'the server ended the stream because of the token' };
  }

  /** @param isAnother the position is beyond what the server has: it is another database, and begins anew */
  #hello(isAnother: boolean): void {
    this.#failures = 0;
    this.#tell({ state: 'connected' });
    this.#acknowledgeAll();
    if (isAnother) void this.#options.seen.forgetPosition().catch((error) => this.#complain(error));
  }

  #take(command: Command, position: Position | null): void {
    this.#intake = this.#intake.then(async () => {
      const { seen } = this.#options;
      const known = seen.get(command.id);
      if (known?.outcome) return this.#acknowledge(command.id, known.outcome);
      if (this.#acting.has(command.id) || this.#stopped.signal.aborted) return;
      this.#acting.add(command.id);
      try {
        await seen.begin(command.id, position, this.#clock.now());
      } catch (error) {
        // Not stored, not acted on: the server sends it again when its lease has run out.
        this.#acting.delete(command.id);
        return this.#complain(error);
      }
      void this.#act(command, known !== undefined);
    });
  }

  async #act(command: Command, again: boolean): Promise<void> {
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
      this.#complain(error);
    } finally {
      this.#acting.delete(command.id);
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

  /** The stream is open and an acknowledgement did not get through: no hello will bring it up. */
  #acknowledgeSoon(): void {
    this.#callOffRetry();
    this.#callOffRetry = this.#clock.after(ACK_RETRY_MS, () => this.#acknowledgeAll());
  }

  /** Sends them in order until there are none; a server that can't be reached gets the rest at its next hello. */
  async #sendAcknowledgements(): Promise<void> {
    try {
      for (;;) {
        const next = this.#unacknowledged.entries().next();
        if (next.done || this.#link.state === 'fenced') return;
        const [id, outcome] = next.value;
        const end = await this.#sendAcknowledgement(id, outcome);
        if (end === 'later') return;
        if (end === 'fenced') return this.#fenced('a newer runner of this agent has taken over');
        if (this.#unacknowledged.get(id) === outcome) this.#unacknowledged.delete(id);
        await this.#options.seen.acknowledged(id, outcome).catch((error) => this.#complain(error));
      }
    } finally {
      // In the same step as the last look: what comes from here on is sent by a call of its own.
      this.#acknowledging = null;
      if (this.#unacknowledged.size > 0 && this.#link.state === 'connected') this.#acknowledgeSoon();
    }
  }

  async #sendAcknowledgement(id: string, outcome: CommandOutcome): Promise<'known' | 'later' | 'fenced'> {
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
      // The server's own verdict about this command is final; any other failure is a delivery problem.
      const isFinal = error?.code !== undefined && [400, 404, 409, 410].includes(response.status);
      if (isFinal) this.#options.onError?.(`the outcome of command ${id} was refused: ${error?.message}`);
      return isFinal ? 'known' : 'later';
    } catch {
      return 'later';
    }
  }

  #fenced(message: string): void {
    if (this.#link.state === 'fenced') return;
    this.#tell({ state: 'fenced' });
    this.#stopped.abort();
    this.#options.onFenced(message);
  }

  get #path(): string {
    return `/agents/${encodeURIComponent(this.#options.agentId)}/commands`;
  }

  #tell(link: CommandLink): void {
    this.#link = link;
    this.#options.onLink?.(link);
  }

  #complain(error: unknown): void {
    this.#options.onError?.(error instanceof Error ? error.message : String(error));
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        callOff();
        this.#stopped.signal.removeEventListener('abort', done);
        resolve();
      };
      const callOff = this.#clock.after(ms, done);
      this.#stopped.signal.addEventListener('abort', done);
    });
  }
}
