import type { ServerResponse } from 'node:http';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, textOf } from '@interlude/protocol/fields';
import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { HEARTBEAT } from '@interlude/protocol/sse';
import { answer, type FakeAnswer, refusal } from './fake-answer';
import type { FakeLedger } from './fake-ledger';

/**
 * What the fake Interlude asks of the runner in front of it, and what it hears of that.
 *
 * Ordering: commands are sent in the order in which they were asked; what is open comes again with every stream.
 */
export interface SeenAck {
  at: number;
  commandId: string;
  state: string | null;
  reason: string | null;
  runner: string | null;
}

export interface FakeCommand {
  id: string;
  type: string;
  sessionId: string | null;
  position: string;
  isOpen: boolean;
  body: Fields;
}

interface CommandStream {
  runner: string;
  startedAt: number;
  openedAt: number;
  response: ServerResponse;
}

const COMMAND_LIVES_MS = 600_000;

export class FakeCommands {
  readonly acks: SeenAck[] = [];
  /** Every stream of commands there was, oldest first. */
  readonly streamed: Pick<CommandStream, 'runner' | 'startedAt' | 'openedAt'>[] = [];
  /** What becomes of acknowledgements: with a status, they are refused with it. */
  refusesAcks: number | null = null;
  /** The runner that another one has taken over from. */
  #fencedRunner: string | null = null;
  readonly #ledger: FakeLedger;
  readonly #streams = new Set<CommandStream>();
  readonly #commands: FakeCommand[] = [];
  readonly #beating: NodeJS.Timeout;
  #named = 0;
  #isMidFrame = false;

  constructor(ledger: FakeLedger) {
    this.#ledger = ledger;
    this.#beating = setInterval(() => this.#isMidFrame || this.say(HEARTBEAT), HEARTBEAT_MS);
    this.#beating.unref();
  }

  get isListenedTo(): boolean {
    return this.#streams.size > 0;
  }

  /** Queues a command and sends it, this often. */
  ask(type: string, sessionId: string | null, body: Fields, times = 1): FakeCommand {
    this.#named += 1;
    const id = type === 'message' ? String(body.messageId) : `command-${this.#named}`;
    const event = { type: 'CUSTOM', name: CUSTOM.commandQueued, value: { command_id: id, type } };
    const position = this.#ledger.tell(sessionId ?? '', event);
    const command = { id, type, sessionId, position, isOpen: true, body };
    this.#commands.push(command);
    for (let at = 0; at < times; at += 1) this.say(frameOf(command));
    return command;
  }

  /** A message to the agent, as the composer sends it: it stands in the session before it is sent. */
  message(sessionId: string, text: string, times = 1): FakeCommand {
    const messageId = `message-${this.#named + 1}`;
    const queued = { interlude: { delivery: 'queued' as const } };
    this.#ledger.tell(sessionId, { type: 'TEXT_MESSAGE_START', messageId, role: 'user', metadata: queued });
    this.#ledger.tell(sessionId, { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text });
    this.#ledger.tell(sessionId, { type: 'TEXT_MESSAGE_END', messageId });
    return this.ask('message', sessionId, { messageId, text, from: { kind: 'person', id: 'operator' } }, times);
  }

  /** Sends a command once more. */
  again(command: FakeCommand): void {
    this.say(frameOf(command));
  }

  /** Whether each command that the newest stream has sent, and that is open, has been acknowledged since. */
  get isAllAcknowledged(): boolean {
    const openedAt = this.streamed.at(-1)?.openedAt ?? 0;
    const acked = new Set(this.acks.filter(({ at }) => at >= openedAt).map(({ commandId }) => commandId));
    return this.#commands.every(({ id, isOpen }) => !isOpen || acked.has(id));
  }

  /** Writes to every stream of commands, as it is. */
  say(text: string | Uint8Array): void {
    for (const { response } of this.#streams) response.write(text);
  }

  /** Writes a frame in pieces, this many milliseconds apart, and nothing between them. */
  async sayInPieces(pieces: readonly Uint8Array[], pauseMs: number): Promise<void> {
    this.#isMidFrame = true;
    for (const piece of pieces) {
      this.say(piece);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    this.#isMidFrame = false;
  }

  /** Ends every stream of commands, after a last frame if there is one. */
  endStreams(last = ''): void {
    for (const { response } of this.#streams) response.end(last);
    this.#streams.clear();
  }

  /** Another runner has taken over. */
  fence(): void {
    this.#fencedRunner = this.streamed.at(-1)?.runner ?? null;
    const data = { runnerId: 'another', startedAt: Date.now(), message: 'Another runner has taken over.' };
    this.endStreams(`event: fenced\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** What an acknowledgement is answered. */
  acknowledge(commandId: string, { state, reason, runner }: Fields): FakeAnswer {
    const ack = { commandId, state: textOf(state), reason: textOf(reason), runner: textOf(runner) };
    this.acks.push({ at: Date.now(), ...ack });
    if (this.refusesAcks !== null) return refusal(this.refusesAcks, 'unavailable', {});
    if (ack.runner !== null && ack.runner === this.#fencedRunner) return refusal(403, 'stale_epoch', {});
    const command = this.#commands.find(({ id }) => id === commandId);
    if (command === undefined) return refusal(404, 'not_found', {});
    if (ack.state === 'done' || ack.state === 'failed') command.isOpen = false;
    return { status: 200, body: { commandId, state: ack.state } };
  }

  /** A runner asks for its commands. */
  open(query: URLSearchParams, lastEventId: string | null, response: ServerResponse): void {
    const stream = {
      runner: query.get('runner') ?? '',
      startedAt: Number(query.get('startedAt') ?? 0),
      openedAt: Date.now(),
      response,
    };
    const { response: _, ...about } = stream;
    this.streamed.push(about);
    if (stream.runner === this.#fencedRunner && stream.runner !== '') {
      answer(response, refusal(403, 'stale_epoch', {}));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const after = Number(lastEventId ?? query.get('after') ?? 0);
    response.write(`event: hello\ndata: ${JSON.stringify({ resume: 'ok', position: String(after) })}\n\n`);
    for (const command of this.#commands) {
      if (command.isOpen && Number(command.position) > after) response.write(frameOf(command));
    }
    response.write(`event: up-to-date\ndata: ${JSON.stringify({ position: String(after) })}\n\n`);
    this.#streams.add(stream);
    response.on('close', () => this.#streams.delete(stream));
  }

  close(): void {
    clearInterval(this.#beating);
  }
}

function frameOf({ id, type, sessionId, position, body }: FakeCommand): string {
  const now = Date.now();
  const data = { id, type, sessionId, createdAt: now, expiresAt: now + COMMAND_LIVES_MS, body };
  return `id: ${position}\nevent: command\ndata: ${JSON.stringify(data)}\n\n`;
}
