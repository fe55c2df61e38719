import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { eventOf } from '../../adapters/opencode/native-event';
import type { OpencodeAdapter } from '../../adapters/opencode/opencode-adapter';
import type { SourceContext } from '../../host/source';
import { type BrokenStream, readEventStream } from '../../wire/event-stream';
import { noAnswerAt, statusBehindGateway } from '../../wire/no-answer-at';
import type { WireFeed } from '../../wire/wire-feed';
import { CatchUp } from './catch-up';
import type { SessionStore } from './followed-sessions';
import { FollowedSessions } from './followed-sessions';
import { type Answer, errorText, inDirectory, type OpencodeServer } from './opencode-server';

/**
 * The connection to an OpenCode server: its events, and after each connect what was missed.
 *
 * Ordering: what was missed is read before the first event of a new stream; the events of a session that is not known
 * yet wait until its beginnings are read.
 * Failure: a stream that breaks is opened again for ever. If the address does not answer for a while, what was under way
 * is closed (`lost`), and goes on as another turn if it turns out to go on.
 */
export interface EventFollowerOptions {
  server: OpencodeServer;
  adapter: OpencodeAdapter;
  feed: WireFeed;
  memory: SessionStore;
  context: SourceContext;
  /** The address, without a password. */
  shownUrl: string;
  directory: string | null;
  session: string | null;
  signal: AbortSignal;
  now: () => number;
}

/** Heartbeats come every 10 s. */
const SILENT_MS = 35_000;
const LONGEST_WAIT_MS = 10_000;
const LIST = '/experimental/session?limit=20000&archived=true';

export class EventFollower {
  readonly carried: FollowedSessions;
  readonly #options: EventFollowerOptions;
  readonly #catchUp: CatchUp;
  readonly #waiting = new Set<() => void>();
  #tail: Promise<void> = Promise.resolve();
  #isReady = false;
  #version: string | null = null;
  #trouble: string | null = null;
  #lastStatus: number | null = null;

  constructor(options: EventFollowerOptions) {
    this.#options = options;
    const { tree } = options.adapter;
    this.carried = new FollowedSessions({ ...options, tree });
    this.#catchUp = new CatchUp({ ...options, carried: this.carried });
  }

  get version(): string | null {
    return this.#version;
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  /** Everything up to now is read. */
  get isConnected(): boolean {
    return this.#isReady;
  }

  async reach(): Promise<string | null> {
    const { server, shownUrl } = this.#options;
    const ask = (withinMs: number) => server.request('GET', '/global/health', undefined, withinMs);
    return await noAnswerAt(shownUrl, await statusBehindGateway(this.#lastStatus, ask));
  }

  async lost(reason: string): Promise<void> {
    await this.#options.feed.ended({ reason, goesOn: 'It is followed again when it is back.' });
  }

  /** Resolves when the signal fires. */
  async run(): Promise<void> {
    const { server, signal } = this.#options;
    await readEventStream({
      open: (until) => server.events(until),
      onOpen: () => this.#opened(),
      onEvent: ({ data }) => {
        this.#tail = this.#tail.then(() => this.#heard(data)).catch((error: Error) => this.#warn(error.message));
      },
      onBroken: (broken) => this.#broken(broken),
      silentMs: SILENT_MS,
      longestMs: LONGEST_WAIT_MS,
      signal,
    });
    await this.#tail;
  }

  /** @returns whether everything up to now is read; waits for that, but not for ever */
  async isReady(withinMs: number): Promise<boolean> {
    if (this.#isReady) return true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, withinMs);
      const { signal } = this.#options;
      const waiting = this.#waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
      function done() {
        clearTimeout(timer);
        waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      }
    });
    return this.#isReady;
  }

  /** Asks for something to happen in a session. */
  async ask(path: string, root: string, body?: unknown): Promise<Answer> {
    const { server, feed } = this.#options;
    const address = inDirectory(path, this.carried.directoryOf(root));
    const answer = await server.request('POST', address, body);
    const msg = { method: 'POST', path: address, ...(body === undefined ? {} : { body }) };
    await Promise.all([feed.pass({ dir: 'out', msg }), feed.pass({ dir: 'in', msg: answer })]);
    return answer;
  }

  /** @returns the newest messages of a session, as the server has them */
  async newestMessages(root: string, most: number): Promise<unknown[]> {
    const path = inDirectory(`/session/${encodeURIComponent(root)}/message`, this.carried.directoryOf(root));
    const answer = await this.#options.server.request('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${most}`);
    if (answer.status !== 200) throw new Error(errorText(answer));
    return listOf(answer.body);
  }

  async #heard(data: string): Promise<void> {
    const { adapter, memory, feed } = this.#options;
    const msg = parseJson(data);
    const event = eventOf(msg);
    if (event === null) {
      this.#warn(`an event can't be read and is passed over: ${data.slice(0, 200)}`);
      return;
    }
    const { type, session } = event;
    if (session === null || adapter.isToldAgain(event)) return;
    if (type.startsWith('session.')) adapter.tree.learn(event.data.info);
    if (!(await this.#lookUp(session))) return;
    const root = adapter.tree.rootOf(session);
    if (!this.carried.has(root)) {
      if (!this.carried.isWanted(root)) return;
      const isNew = type === 'session.created' && session === root;
      await this.carried.add(root);
      if (!isNew) await this.#catchUp.read([root]);
    }
    // Places have no gaps: what is between was missed.
    const isGap = event.seq !== null && event.seq > (memory.places.get(session) ?? -1) + 1;
    if (isGap) await this.#catchUp.read([root]);
    await feed.pass({ dir: 'in', msg }, memory.of(event), this.carried.idOf(root));
  }

  /** Learns of a session, and of those it belongs to. @returns whether it exists */
  async #lookUp(session: string): Promise<boolean> {
    const { adapter, server } = this.#options;
    while (!adapter.tree.isKnown(session)) {
      const unknown = adapter.tree.rootOf(session);
      const { status, body } = await server.request('GET', `/session/${encodeURIComponent(unknown)}`);
      if (status !== 200 || adapter.tree.learn(body)?.id !== unknown) return false;
    }
    return true;
  }

  async #opened(): Promise<void> {
    const { server, adapter, context, shownUrl } = this.#options;
    await this.#tail;
    const health = await server.request('GET', '/global/health');
    if (health.status !== 200) throw new Error(errorText(health));
    this.#version = textOf(fieldsOf(health.body).version);
    const all = await server.request('GET', LIST);
    const list = all.status === 200 ? all : await server.request('GET', '/session');
    for (const info of listOf(list.body)) adapter.tree.learn(info);
    await this.#findSession();
    for (const root of this.carried.toAdd()) await this.carried.add(root);
    const roots = [...this.carried.sessionIds.keys()].filter((root) => adapter.tree.get(root) !== undefined);
    await this.#catchUp.read(roots);
    await this.#catchUp.readStates(roots);
    this.#trouble = null;
    this.#lastStatus = null;
    this.#isReady = true;
    for (const done of [...this.#waiting]) done();
    context.changed();
    context.log('info', `connected to OpenCode ${this.#version ?? ''} at ${shownUrl}`);
  }

  /** The one session that was asked for, if one was: it is found, or made. */
  async #findSession(): Promise<void> {
    const { session, memory, server, adapter, directory, context } = this.#options;
    if (session === null || memory.rootFor(session) !== null) return;
    if (session.startsWith('ses') && (await this.#lookUp(session))) return;
    const answer = await server.request('POST', inDirectory('/session', directory), {});
    const made = adapter.tree.learn(answer.body);
    if (answer.status !== 200 || made === null) throw new Error(errorText(answer));
    await context.emit(session, [], memory.tells(made.id, session));
  }

  #broken({ reason, status, failures, againInMs }: BrokenStream): void {
    const { context, shownUrl } = this.#options;
    this.#isReady = false;
    const trouble =
      status === 401
        ? `OpenCode at ${shownUrl} asks for a password; give it with OPENCODE_SERVER_PASSWORD or --password-file`
        : `no connection to OpenCode at ${shownUrl} (${reason}); it is tried again`;
    if (trouble !== this.#trouble || failures % 30 === 0) context.log('warn', `${trouble} in ${againInMs} ms`);
    this.#trouble = trouble;
    this.#lastStatus = status;
    context.changed();
  }

  #warn(message: string): void {
    this.#options.context.log('warn', `OpenCode: ${message}`);
  }
}
