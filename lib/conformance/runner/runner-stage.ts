import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import type { Item, MessageItem, RequestItem, Turn } from '@interlude/protocol/read-models';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { Hopeless, NotDone, type Patience, type Progress, until } from '../check';
import { AgentJournal } from './agent-journal';
import type { FakeCommand, SeenAck } from './fake-commands';
import { FakeInterlude } from './fake-interlude';

/**
 * A runner under test, the agent it drives, and the Interlude that misbehaves in front of it.
 *
 * Failure: a runner that has ended is started again by whoever needs it next. `close` ends its whole process group and
 * removes what it wrote.
 */
const TRIVIAL_AGENT = fileURLToPath(new URL('../trivial-agent.mjs', import.meta.url));
const DATA = 'data';
const KEPT_OUTPUT = 4_000;
const ENDS_WITHIN_MS = 3_000;

export class RunnerStage {
  readonly fake: FakeInterlude;
  readonly journal: AgentJournal;
  readonly token: string;
  readonly patience: Patience;
  readonly #command: readonly string[];
  readonly #dir: string;
  readonly #journalFile: string;
  readonly #over = new AbortController();
  #child: ChildProcess | null = null;
  #output = '';

  private constructor(command: readonly string[], fake: FakeInterlude, token: string, dir: string, patience: Patience) {
    this.#command = command;
    this.#dir = dir;
    this.#journalFile = join(dir, 'agent.jsonl');
    this.fake = fake;
    this.token = token;
    this.journal = new AgentJournal(this.#journalFile);
    this.patience = { ...patience, signal: AbortSignal.any([patience.signal, this.#over.signal]) };
  }

  static async open(command: readonly string[], patience: Patience): Promise<RunnerStage> {
    const token = `conformance-${randomBytes(12).toString('hex')}`;
    const dir = await mkdtemp(join(tmpdir(), 'interlude-conformance-'));
    await mkdir(join(dir, DATA), { mode: 0o700 });
    return new RunnerStage(command, await FakeInterlude.start(token), token, dir, patience);
  }

  /** Everything that is taken to be the runner's session: the one it speaks of. */
  get sessionId(): string {
    const spoken = this.fake.ledger.taken.findLast(({ record }) => textOf(record.sessionId) !== null);
    return textOf(spoken?.record.sessionId) ?? '';
  }

  get turns(): readonly Turn[] {
    return this.fake.ledger.turns(this.sessionId);
  }

  /** What the runner last said of itself. */
  get status(): Fields {
    return this.fake.ledger.statuses().at(-1)?.status ?? {};
  }

  /** Starts the runner if it does not run. Resolves once it listens and has said which session it has. */
  async running(): Promise<void> {
    this.revive();
    const isThere = () => {
      if (this.#child === null)
        throw new Hopeless(`the runner has ended by itself: ${this.#output.trim() || 'no word'}`);
      return this.fake.commands.isListenedTo && this.sessionId !== '';
    };
    const missing = () => [
      this.fake.commands.isListenedTo ? 'a stream of commands' : 'no stream of commands',
      this.sessionId === '' ? 'no record that names a session' : 'a session',
      this.#output.trim().split('\n').at(-1) ?? '',
    ];
    try {
      await until(
        this.patience,
        'a stream of commands, and a record that names a session',
        isThere,
        'Begin with a status record that names the session, and listen for commands.',
        { seen: missing },
      );
    } catch (error) {
      throw this.fake.commands.streamed.length === 0 ? new Hopeless((error as Error).message) : error;
    }
  }

  /** Starts the runner if it does not run. */
  revive(): void {
    if (this.#child === null) this.#start();
  }

  /** Power off, of the runner and all it has started. */
  async kill9(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** @throws NotDone if the runner says that it does not act on this */
  async takes(type: string): Promise<void> {
    await this.running();
    const { takes, takesNot } = this.status;
    if (!Array.isArray(takes) || takes.includes(type)) return;
    throw new NotDone(textOf(fieldsOf(takesNot)[type]) ?? 'its status record does not say why it does not take this');
  }

  async say(text: string): Promise<FakeCommand> {
    await this.running();
    return this.fake.commands.message(this.sessionId, text);
  }

  /** Says it, and waits for the end of the turn that answers it. */
  async obey(text: string): Promise<Turn> {
    return await this.answered(await this.say(text));
  }

  async answered({ id }: Pick<FakeCommand, 'id'>): Promise<Turn> {
    return await this.until(
      `a turn that names ${id} and has ended`,
      () => this.turns.find((turn) => turn.state !== 'open' && turn.userMessageIds.includes(id)),
      'Tell RUN_STARTED and its end, with the message in metadata.interlude.userMessageIds.',
      {
        seen: () => this.turns.slice(-3).map(({ id: turn, state, userMessageIds }) => [turn, state, userMessageIds]),
        // A long answer takes its time.
        came: () => this.fake.ledger.entries(this.sessionId).length,
      },
    );
  }

  /** Says it, and waits until a turn that answers it is open. */
  async begun(text: string): Promise<Turn> {
    const { id } = await this.say(text);
    return await this.until(
      `an open turn that names ${id}`,
      () => this.turns.find((turn) => turn.state === 'open' && turn.userMessageIds.includes(id)),
      'Tell RUN_STARTED as soon as the agent begins, with the message in metadata.interlude.userMessageIds.',
      { seen: () => this.turns.slice(-3).map(({ id: turn, state, userMessageIds }) => [turn, state, userMessageIds]) },
    );
  }

  /** The request that the newest turn waits with. */
  async asked(): Promise<RequestItem> {
    return await this.until(
      'an open request in the turn',
      () => this.#items().findLast((item): item is RequestItem => item.kind === 'request' && item.outcome === null),
      'Tell request:opened with request_id, kind, tool_name and input.',
    );
  }

  /** Waits for the word that a command came to. */
  async acked({ id }: FakeCommand, states: readonly string[], count = 1): Promise<SeenAck> {
    const acks = () => this.fake.commands.acks.filter((ack) => ack.commandId === id);
    return await this.until(
      `${id} to be acknowledged as ${states.join(' or ')}`,
      () => (acks().length >= count ? acks().find(({ state }) => states.includes(state ?? '')) : null),
      'POST …/commands/:id/ack with the state, each time the command comes.',
      { seen: () => acks().map(({ state, reason }) => [state, reason]) },
    );
  }

  async until<Found>(
    expected: string,
    look: () => Found | null | undefined | false,
    todo: string,
    { withinMs = this.patience.withinMs, ...progress }: Progress & { withinMs?: number } = {},
  ): Promise<Found> {
    return await until({ ...this.patience, withinMs }, expected, look, todo, progress);
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#end('SIGTERM');
    await this.fake.close();
    await rm(this.#dir, { recursive: true, force: true });
  }

  #items(): readonly Item[] {
    return this.turns.flatMap((turn) => turn.items);
  }

  #start(): void {
    const [file = '', ...args] = this.#command;
    const agent = [process.execPath, TRIVIAL_AGENT, '--journal', this.#journalFile].map(shellWord).join(' ');
    const env = {
      ...process.env,
      INTERLUDE_URL: this.fake.url,
      INTERLUDE_TOKEN: this.token,
      INTERLUDE_DATA_DIR: join(this.#dir, DATA),
      CONFORMANCE_AGENT: agent,
    };
    // A group of its own, so that all it starts can be ended with it.
    const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#child = child;
    process.once('exit', this.#endAtOnce);
    this.#output = '';
    const keep = (chunk: Buffer) => {
      this.#output = (this.#output + chunk).slice(-KEPT_OUTPUT);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => {
      this.#output = `${file} can't be started: ${error.message}`;
      gone();
    });
    const gone = () => {
      if (this.#child === child) this.#child = null;
      process.off('exit', this.#endAtOnce);
    };
    child.once('close', gone);
    child.once('exit', gone);
  }

  /** For whoever ends this process without waiting. */
  readonly #endAtOnce = () => {
    if (this.#child?.pid !== undefined) kill(this.#child.pid, 'SIGKILL');
  };

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const { pid } = child;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    kill(pid, signal);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ENDS_WITHIN_MS);
    });
    await Promise.race([gone, late]);
    clearTimeout(timer);
    // What it left in its group goes, too.
    kill(pid, 'SIGKILL');
    this.#child = null;
    const isLeft = () => !this.fake.commands.isListenedTo;
    if (!this.#over.signal.aborted) await this.until('its stream to end', isLeft, 'End with the process group.');
  }
}

/** The texts that the agent said in a turn, in order. */
export function saidIn(turn: Turn): string[] {
  return turn.items
    .filter((item): item is MessageItem => item.kind === 'message' && item.role === 'assistant')
    .map(({ text }) => text);
}

/** The ids of the tasks that a status record lists; null if it lists none at all. */
export function tasksListed(status: Fields): string[] | null {
  return Array.isArray(status.tasks) ? listOf(status.tasks).map((task) => String(fieldsOf(task).id)) : null;
}

/** How often the runner promises a report, milliseconds. */
export function everyMsOf(status: Fields): number | null {
  return numberOf(status.everyMs);
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has gone already.
  }
}
