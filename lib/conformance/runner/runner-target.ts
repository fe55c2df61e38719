import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Fields, fieldsOf, listOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { MessageItem, RequestItem, Turn } from '@interlude/protocol/read-models';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { RunAborted, type Timeout, Unsupported, type WaitOptions, waitFor } from '../check';
import { type FakeCommand, FakeInterlude, type SeenAck } from './fake-interlude';

const TRIVIAL_AGENT = fileURLToPath(new URL('../trivial-agent.mjs', import.meta.url));
const MAX_OUTPUT_CHARACTERS = 4_000;
const TERM_TIMEOUT_MS = 3_000;

/** A line of the trivial agent's journal. */
export interface JournalLine extends Fields {
  /** Epoch milliseconds. */
  at: number;
  pid: number;
  /** `in`: received; `out`: written. */
  dir: 'start' | 'in' | 'out';
  type?: string;
  id?: string;
  text?: string;
  /** Time for which the write blocked, in milliseconds. */
  blockedMs?: number;
}

/** The journal of every agent process in this run. */
class AgentJournal {
  readonly #file: string;
  #size = 0;
  #lines: JournalLine[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  get lines(): readonly JournalLine[] {
    const { size } = statSync(this.#file, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size !== this.#size) {
      const complete = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1);
      this.#lines = complete.map((line) => fieldsOf(parseJson(line)) as JournalLine);
      this.#size = size;
    }
    return this.#lines;
  }

  /** The lines for a message or answer that an agent received. */
  received(type: 'message' | 'answer', id: string): JournalLine[] {
    return this.lines.filter((line) => line.dir === 'in' && line.type === type && line.id === id);
  }

  wrote(type: string): JournalLine[] {
    return this.lines.filter((line) => line.dir === 'out' && line.type === type);
  }

  /** The lines written in the turn for a message. An earlier turn may end in between. */
  turnFor(messageId: string): JournalLine[] {
    const lines = this.lines.filter(({ dir }) => dir === 'out');
    const start = lines.findIndex(
      ({ type, messages }) => type === 'turn-start' && listOf(messages).includes(messageId),
    );
    if (start === -1) return [];
    const end = lines.findIndex(({ type, turn }) => type === 'turn-end' && turn === lines[start]?.turn);
    return lines.slice(start, end === -1 ? undefined : end + 1);
  }
}

/**
 * The runner under test, between the trivial agent and a fake Interlude.
 *
 * Failure: a runner that has ended is started again when a check next needs it. `close` ends its process group and
 * removes its files.
 */
export class RunnerTarget {
  readonly fake: FakeInterlude;
  readonly journal: AgentJournal;
  readonly token: string;
  readonly timeout: Timeout;
  readonly #command: readonly string[];
  readonly #dir: string;
  readonly #closed = new AbortController();
  #child: ChildProcess | null = null;
  #output = '';

  private constructor(command: readonly string[], fake: FakeInterlude, token: string, dir: string, timeout: Timeout) {
    this.#command = command;
    this.#dir = dir;
    this.fake = fake;
    this.token = token;
    this.journal = new AgentJournal(this.#journalFile);
    this.timeout = { ...timeout, signal: AbortSignal.any([timeout.signal, this.#closed.signal]) };
  }

  static async open(command: readonly string[], timeout: Timeout): Promise<RunnerTarget> {
    const token = `conformance-${randomBytes(12).toString('hex')}`;
    const dir = await mkdtemp(join(tmpdir(), 'interlude-conformance-'));
    const target = new RunnerTarget(command, await FakeInterlude.start(token), token, dir, timeout);
    await mkdir(target.#dataDir, { mode: 0o700 });
    return target;
  }

  get #journalFile(): string {
    return join(this.#dir, 'agent.jsonl');
  }

  get #dataDir(): string {
    return join(this.#dir, 'data');
  }

  /** The session of the newest record that names one. */
  get sessionId(): string {
    const named = this.fake.log.accepted.findLast(({ record }) => textOf(record.sessionId) !== null);
    return textOf(named?.record.sessionId) ?? '';
  }

  get turns(): readonly Turn[] {
    return this.fake.log.turns(this.sessionId);
  }

  /** The latest status record. */
  get status(): Fields {
    return this.fake.log.statuses().at(-1) ?? {};
  }

  /** The promised interval of reports, in milliseconds. */
  get everyMs(): number | null {
    return numberOf(this.status.everyMs);
  }

  /** Enough time for the next report. */
  get reportTimeoutMs(): number {
    return (this.everyMs ?? 0) + this.timeout.timeoutMs;
  }

  /** Starts the runner if necessary, and waits until it is connected and has named its session. */
  async ensureRunning(): Promise<void> {
    this.startIfStopped();
    const { commands } = this.fake;
    const isReady = () => {
      if (this.#child === null) throw new RunAborted(`the runner exited: ${this.#output.trim() || 'no output'}`);
      return commands.isConnected && this.sessionId !== '';
    };
    const seen = () => [
      commands.isConnected ? 'a command stream' : 'no command stream',
      this.sessionId === '' ? 'no record that names a session' : 'a session',
      this.#output.trim().split('\n').at(-1) ?? '',
    ];
    try {
      const todo = 'Begin with a status record that names the session, and open the command stream.';
      await this.waitFor('a command stream, and a record that names a session', isReady, { seen, todo });
    } catch (error) {
      throw commands.streams.length === 0 ? new RunAborted((error as Error).message) : error;
    }
  }

  startIfStopped(): void {
    if (this.#child === null) this.#start();
  }

  /** Kills the runner and everything it started, like a power failure. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** @throws Unsupported if the status record refuses this type of command */
  async requireSupport(type: string): Promise<void> {
    await this.ensureRunning();
    const { takes, takesNot } = this.status;
    if (!Array.isArray(takes) || takes.includes(type)) return;
    throw new Unsupported(textOf(fieldsOf(takesNot)[type]) ?? 'its status record gives no reason in takesNot');
  }

  queue(type: string, body: Fields, times?: number): FakeCommand {
    return this.fake.commands.queue(type, this.sessionId, body, times);
  }

  /** Sends a message to the agent. */
  async send(text: string): Promise<FakeCommand> {
    await this.ensureRunning();
    return this.fake.commands.queueMessage(this.sessionId, text);
  }

  /** Sends a message. @returns the turn that answered it, once it has ended */
  async prompt(text: string): Promise<Turn> {
    return await this.answer(await this.send(text));
  }

  /** @returns the texts of the turn that answered the message */
  async promptTexts(text: string): Promise<string[]> {
    return textsIn(await this.prompt(text));
  }

  /** Waits for the end of the turn that answers a message. */
  async answer({ id }: Pick<FakeCommand, 'id'>, timeoutMs = this.timeout.timeoutMs): Promise<Turn> {
    return await this.waitFor(
      `a turn that names ${id} and has ended`,
      () => this.turns.find((turn) => turn.state !== 'open' && turn.userMessageIds.includes(id)),
      {
        todo: 'Send RUN_STARTED and its end, with the message in metadata.interlude.userMessageIds.',
        seen: this.#lastTurns,
        timeoutMs,
        progress: () => this.fake.log.entries(this.sessionId).length,
      },
    );
  }

  /** Sends a message. @returns the turn that answers it, while it is open */
  async startTurn(text: string): Promise<Turn> {
    const { id } = await this.send(text);
    return await this.waitFor(
      `an open turn that names ${id}`,
      () => this.turns.find((turn) => turn.state === 'open' && turn.userMessageIds.includes(id)),
      {
        todo: 'Send RUN_STARTED as soon as the agent starts, with the message in metadata.interlude.userMessageIds.',
        seen: this.#lastTurns,
      },
    );
  }

  /** Waits for the end of a turn. */
  async turnEnd(turnId: string): Promise<Turn> {
    return await this.waitFor('the end of the turn', () =>
      this.turns.find((turn) => turn.id === turnId && turn.state !== 'open'),
    );
  }

  async openRequest(): Promise<RequestItem> {
    const items = () => this.turns.flatMap((turn) => turn.items);
    const isOpen = (item: { kind: string }) => item.kind === 'request' && (item as RequestItem).outcome === null;
    const todo = 'Send request:opened with request_id, kind, tool_name and input.';
    return (await this.waitFor('an open request in the turn', () => items().findLast(isOpen), { todo })) as RequestItem;
  }

  /** Waits until a command has been acknowledged `count` times, and at least once with one of these states. */
  async ack({ id }: FakeCommand, states: readonly string[], count = 1): Promise<SeenAck> {
    const acks = () => this.fake.commands.acks.filter((ack) => ack.commandId === id);
    return await this.waitFor(
      `${id} to be acknowledged as ${states.join(' or ')}`,
      () => (acks().length >= count ? acks().find(({ state }) => states.includes(state ?? '')) : null),
      {
        todo: 'POST …/commands/:id/ack with the state, each time the command arrives.',
        seen: () => acks().map(({ state, reason }) => [state, reason]),
      },
    );
  }

  async waitFor<Found>(
    expected: string,
    find: () => Found | null | undefined | false,
    options?: WaitOptions,
  ): Promise<Found> {
    return await waitFor(this.timeout, expected, find, options);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#end('SIGTERM');
    await this.fake.close();
    await rm(this.#dir, { recursive: true, force: true });
  }

  readonly #lastTurns = () => this.turns.slice(-3).map(({ id, state, userMessageIds }) => [id, state, userMessageIds]);

  #start(): void {
    const [file = '', ...args] = this.#command;
    const env = {
      ...process.env,
      INTERLUDE_URL: this.fake.url,
      INTERLUDE_TOKEN: this.token,
      INTERLUDE_DATA_DIR: this.#dataDir,
      CONFORMANCE_AGENT: [process.execPath, TRIVIAL_AGENT, '--journal', this.#journalFile].map(shellWord).join(' '),
    };
    // Detached, so that the child leads its own process group.
    const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#child = child;
    this.#output = '';
    const append = (chunk: Buffer) => {
      this.#output = (this.#output + chunk).slice(-MAX_OUTPUT_CHARACTERS);
    };
    child.stdout.on('data', append);
    child.stderr.on('data', append);
    const killOnExit = () => kill(child, 'SIGKILL');
    process.once('exit', killOnExit);
    const ended = () => {
      if (this.#child === child) this.#child = null;
      process.off('exit', killOnExit);
    };
    child.once('error', (error) => {
      this.#output = `${file} can't be started: ${error.message}`;
      ended();
    });
    child.once('close', ended);
    child.once('exit', ended);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const timer = new AbortController();
    kill(child, signal);
    await Promise.race([exited, pause(TERM_TIMEOUT_MS, undefined, { signal: timer.signal }).catch(() => undefined)]);
    timer.abort();
    // Kills the rest of the group.
    kill(child, 'SIGKILL');
    this.#child = null;
    const hasDisconnected = () => !this.fake.commands.isConnected;
    if (!this.#closed.signal.aborted)
      await this.waitFor('its stream to end', hasDisconnected, { todo: 'End with the process group.' });
  }
}

/** The texts of the assistant in a turn, in order. */
export function textsIn(turn: Turn): string[] {
  return turn.items
    .filter((item): item is MessageItem => item.kind === 'message' && item.role === 'assistant')
    .map(({ text }) => text);
}

/** Signals the process group. */
function kill({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group has already ended.
  }
}
