import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { JsonLines } from '@interlude/runner/host/agent-process';
import { expect, onTestFinished } from 'vitest';
import { tempDir } from './temp-dir';

/**
 * An ACP agent, played by the test: its command is a real process whose stdin and stdout lead here. It answers
 * `initialize` and opens sessions by itself; a prompt stays open until the test answers it.
 */
export interface AcpAgentOptions {
  name?: string;
  capabilities?: object;
  authMethods?: object[];
  /** What `session/load` replays before it answers; without it, there is no session to load. */
  past?: object[];
  /** Answers a request in place of the agent: a result, or `{ error }`; undefined leaves it to the agent, null to nobody. */
  answer?: (method: string, params: Fields, times: number) => object | null | undefined;
}

const BRIDGE = `
  const socket = require('node:net').connect(process.argv[1]);
  process.stdin.pipe(socket);
  socket.pipe(process.stdout);
  socket.on('error', () => process.exit(1));
  socket.on('close', () => process.exit(Number(process.env.PLAYED_EXIT_CODE ?? 0)));
`;

export const SESSION = 'native-1';

export class PlayedAcpAgent {
  readonly command: [string, ...string[]];
  /** Everything that was sent to it, of all its processes. */
  readonly received: Fields[] = [];
  starts = 0;
  readonly #options: AcpAgentOptions;
  readonly #times = new Map<string, number>();
  #socket: Socket | null = null;
  /** Ids of prompts that are not answered. */
  #prompts: unknown[] = [];

  static async open(options: AcpAgentOptions = {}): Promise<PlayedAcpAgent> {
    const path = join(await tempDir(), 'agent');
    const agent = new PlayedAcpAgent(path, options);
    const server = createServer((socket) => agent.#connected(socket)).listen(path);
    await once(server, 'listening');
    onTestFinished(() => {
      agent.#socket?.destroy();
      server.close();
    });
    return agent;
  }

  private constructor(path: string, options: AcpAgentOptions) {
    this.#options = options;
    this.command = [process.execPath, '-e', BRIDGE, path];
  }

  /** The texts it was prompted with. */
  get prompts(): string[] {
    return this.received
      .filter(({ method }) => method === 'session/prompt')
      .map(({ params }) => String(fieldsOf(listOf(fieldsOf(params).prompt)[0]).text));
  }

  of(method: string): Fields[] {
    return this.received.filter((frame) => frame.method === method);
  }

  /** The answers to its own requests. */
  answers(id: unknown): Fields[] {
    return this.received.filter((frame) => frame.id === id && frame.method === undefined);
  }

  send(frame: object): void {
    this.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  }

  write(text: string): void {
    this.#socket?.write(text);
  }

  update(update: object): void {
    this.send({ method: 'session/update', params: { sessionId: SESSION, update } });
  }

  say(text: string, messageId?: string): void {
    const content = { type: 'text', text };
    this.update({ sessionUpdate: 'agent_message_chunk', content, ...(messageId === undefined ? {} : { messageId }) });
  }

  asks(id: unknown, toolCallId: string, command: string): void {
    this.send({
      id,
      method: 'session/request_permission',
      params: {
        sessionId: SESSION,
        toolCall: { toolCallId, title: command, kind: 'execute', rawInput: { command } },
        options: [
          { optionId: 'once', name: 'Allow', kind: 'allow_once' },
          { optionId: 'no', name: 'Reject', kind: 'reject_once' },
        ],
      },
    });
  }

  /** Answers the oldest prompt that is open. */
  answerPrompt(result: object = { stopReason: 'end_turn' }): void {
    const id = this.#prompts.shift();
    if (id !== undefined) this.send({ id, ...('error' in result ? result : { result }) });
  }

  /** The process ends. */
  hangUp(): void {
    this.#socket?.end();
  }

  async prompted(count: number): Promise<void> {
    await expect.poll(() => this.prompts.length, { interval: 5 }).toBe(count);
  }

  #connected(socket: Socket): void {
    this.#socket = socket;
    this.#prompts = [];
    this.starts += 1;
    const lines = new JsonLines({ onValue: (value) => this.#heard(fieldsOf(value)), onUnreadable: () => {} });
    socket.on('data', (chunk: Buffer) => lines.write(chunk)).on('error', () => {});
  }

  #heard(frame: Fields): void {
    this.received.push(frame);
    const { id, method } = frame;
    if (id === undefined || typeof method !== 'string') return;
    const times = (this.#times.get(method) ?? 0) + 1;
    this.#times.set(method, times);
    const params = fieldsOf(frame.params);
    const given = this.#options.answer?.(method, params, times);
    if (given !== undefined) {
      if (given !== null) this.send({ id, ...('error' in given ? given : { result: given }) });
    } else if (method === 'session/prompt') this.#prompts.push(id);
    else this.#answered(id, method, params);
  }

  #answered(id: unknown, method: string, params: Fields): void {
    const { name = 'played', capabilities = {}, authMethods = [], past } = this.#options;
    if (method === 'initialize') {
      const agentCapabilities = { ...(past === undefined ? {} : { loadSession: true }), ...capabilities };
      const result = { protocolVersion: 1, agentInfo: { name, version: '1' }, agentCapabilities, authMethods };
      this.send({ id, result });
    } else if (method === 'session/new') this.send({ id, result: { sessionId: SESSION } });
    else if (method === 'session/load') {
      for (const update of past ?? []) {
        this.send({ method: 'session/update', params: { sessionId: textOf(params.sessionId), update } });
      }
      this.send({ id, result: {} });
    } else this.send({ id, result: {} });
  }
}
