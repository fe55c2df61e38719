import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { CommandBodies } from '@interlude/protocol/commands';
import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { JsonLines } from '@interlude/runner/host/agent-process';
import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import { AcpSource, type AcpSourceOptions } from '@interlude/runner/sources/acp/acp-source';
import { readSessions } from '@interlude/runner/sources/acp/session-setup';
import { expect, onTestFinished } from 'vitest';
import { MemorySourceContext } from './source-contract';
import { tempDir } from './temp-dir';

/**
 * A scripted ACP agent. Its command is a real process that bridges stdin and stdout to this test. It answers
 * `initialize` and session creation by itself; a prompt stays open until the test answers it.
 */
export interface AcpAgentOptions {
  name?: string;
  capabilities?: object;
  authMethods?: object[];
  /** Updates replayed by `session/load`. If omitted, no session can be loaded. */
  past?: object[];
  /** Overrides the response: a result, or `{ error }`. undefined falls back to the default; null sends no response. */
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

export class ScriptedAcpAgent {
  readonly command: [string, ...string[]];
  /** Frames received, over all processes. */
  readonly received: Fields[] = [];
  starts = 0;
  readonly #options: AcpAgentOptions;
  readonly #times = new Map<string, number>();
  #socket: Socket | null = null;
  /** Ids of unanswered prompts. */
  #prompts: unknown[] = [];

  static async open(options: AcpAgentOptions = {}): Promise<ScriptedAcpAgent> {
    const path = join(await tempDir(), 'agent');
    const agent = new ScriptedAcpAgent(path, options);
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

  /** Prompt texts, oldest first. */
  get prompts(): string[] {
    return this.received
      .filter(({ method }) => method === 'session/prompt')
      .map(({ params }) => String(fieldsOf(listOf(fieldsOf(params).prompt)[0]).text));
  }

  of(method: string): Fields[] {
    return this.received.filter((frame) => frame.method === method);
  }

  /** Responses to the agent's own requests. */
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

  /** Answers the oldest open prompt. */
  answerPrompt(result: object = { stopReason: 'end_turn' }): void {
    const id = this.#prompts.shift();
    if (id !== undefined) this.send({ id, ...('error' in result ? result : { result }) });
  }

  /** Ends the process. */
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
    const lines = new JsonLines({ onValue: (value) => this.#receive(fieldsOf(value)), onUnreadable: () => {} });
    socket.on('data', (chunk: Buffer) => lines.write(chunk)).on('error', () => {});
  }

  #receive(frame: Fields): void {
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
    else this.#respond(id, method, params);
  }

  #respond(id: unknown, method: string, params: Fields): void {
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

export const ID = 's';

export async function openAcpSource(
  agent: ScriptedAcpAgent,
  around: MemorySourceContext,
  options: Partial<AcpSourceOptions> = {},
) {
  const [known] = await readSessions(around as never);
  return new AcpSource({
    context: around,
    memory: known ?? { sessionId: ID, nativeId: null, note: null, cwd: process.cwd(), pid: null, running: false },
    inFlight: await InFlightMessages.restore(around, ID),
    command: agent.command,
    env: { PATH: process.env.PATH },
    answerWithinMs: 60_000,
    ...options,
  });
}

/** Starts a source with a scripted agent. */
export async function startAcpSource(agentOptions: AcpAgentOptions = {}, options: Partial<AcpSourceOptions> = {}) {
  const agent = await ScriptedAcpAgent.open(agentOptions);
  const around = new MemorySourceContext();
  const lines: string[] = [];
  let gaveUp: string | null = null;
  Object.assign(around, {
    log: (level: string, message: string) => lines.push(`${level} ${message}`),
    failRunner: (why: string) => {
      gaveUp = why;
    },
  });
  const source = await openAcpSource(agent, around, options);
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  const common = { sessionId: ID, createdAt: 1, expiresAt: 2 } as const;
  const from = { kind: 'person', id: 'operator' } as const;
  return {
    agent,
    around,
    source,
    lines,
    gaveUp: () => gaveUp,
    turn: () => around.openWork(ID).turn,
    say: (messageId: string, text: string, again = false) =>
      source.deliver({ ...common, id: messageId, type: 'message', body: { messageId, text, from } }, again),
    interrupt: (body: CommandBodies['interrupt'] = {}) =>
      source.interrupt({ ...common, id: 'c', type: 'interrupt', body }),
    decide: (request: Record<string, unknown>, said: object) => {
      const { request_id: requestId, tool_name: tool, input, options: offered } = request as never;
      const digest = requestDigest({ sessionId: ID, requestId, tool, input, options: offered, position: '7' });
      const body = { requestId, digest, openedPosition: '7', behavior: 'allow' as const, ...said };
      return source.answer({ ...common, id: 'd', type: 'permission.decision', body });
    },
    until: (look: () => unknown) => expect.poll(look, { interval: 5 }),
  };
}

export const custom = (events: readonly AgUiEvent[], name: string) =>
  events.filter((event) => event.name === name).map((event) => fieldsOf(event.value));
export const turnEnds = (events: readonly AgUiEvent[]) =>
  events
    .filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')
    .map(({ type, outcome, metadata }) => [
      type === 'RUN_ERROR' ? 'failed' : fieldsOf(outcome).type,
      metadata?.interlude?.userMessageIds,
    ]);
export const texts = (events: readonly AgUiEvent[]) =>
  events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta);
