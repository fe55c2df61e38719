import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { eventOf } from '../../adapters/opencode/native-event';
import type { OpencodeAdapter } from '../../adapters/opencode/opencode-adapter';
import { type BrokenStream, readEventStream, statusBehindGateway, unreachableReason } from '../../host/agent-http';
import type { SourceContext } from '../../host/source';
import type { WireFeed } from '../../host/wire-feed';
import { CatchUp } from './catch-up';
import type { SessionStore } from './followed-sessions';
import { FollowedSessions } from './followed-sessions';
import { type Answer, errorText, inDirectory, type OpencodeServer } from './opencode-server';

/**
 * Follows the events of an OpenCode server, and catches up after each connect.
 *
 * Ordering: missed events are read before the first event of a new stream. Events of an unknown session wait until its
 * history is read.
 * Failure: a broken stream is reopened forever. If the address stays silent, open work is closed (`lost`) and continues
 * as another turn.
 */
export interface EventFollowerOptions {
  server: OpencodeServer;
  adapter: OpencodeAdapter;
  feed: WireFeed;
  memory: SessionStore;
  context: SourceContext;
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
  readonly sessions: FollowedSessions;
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
    this.sessions = new FollowedSessions({ ...options, tree });
    this.#catchUp = new CatchUp({ ...options, sessions: this.sessions });
  }

  get version(): string | null {
    return this.#version;
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  /** Caught up with the server. */
  get isConnected(): boolean {
    return this.#isReady;
  }

  async reach(): Promise<string | null> {
    const { server, shownUrl } = this.#options;
    const ask = (withinMs: number) => server.request('GET', '/global/health', undefined, withinMs);
    return await unreachableReason(shownUrl, await statusBehindGateway(this.#lastStatus, ask));
  }

  async lost(reason: string): Promise<void> {
    await this.#options.feed.ended({ reason, goesOn: 'It will be followed again when it is back.' });
  }

  /** Resolves when the signal aborts. */
  async run(): Promise<void> {
    const { server, signal } = this.#options;
    await readEventStream({
      open: (until) => server.events(until),
      onOpen: () => this.#opened(),
      onEvent: ({ data }) => {
        this.#tail = this.#tail.then(() => this.#received(data)).catch((error: Error) => this.#warn(error.message));
      },
      onBroken: (broken) => this.#broken(broken),
      silentMs: SILENT_MS,
      longestMs: LONGEST_WAIT_MS,
      signal,
    });
    await this.#tail;
  }

  /** @returns whether the runner has caught up within the time */
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

  /** Posts a request for a session. */
  async ask(path: string, root: string, body?: unknown): Promise<Answer> {
    const { server, feed } = this.#options;
    const address = inDirectory(path, this.sessions.directoryOf(root));
    const answer = await server.request('POST', address, body);
    const msg = { method: 'POST', path: address, ...(body === undefined ? {} : { body }) };
    await Promise.all([feed.pass({ dir: 'out', msg }), feed.pass({ dir: 'in', msg: answer })]);
    return answer;
  }

  async newestMessages(root: string, most: number): Promise<unknown[]> {
    const path = inDirectory(`/session/${encodeURIComponent(root)}/message`, this.sessions.directoryOf(root));
    const answer = await this.#options.server.request('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${most}`);
    if (answer.status !== 200) throw new Error(errorText(answer));
    return listOf(answer.body);
  }

  async #received(data: string): Promise<void> {
    const { adapter, memory, feed } = this.#options;
    const msg = parseJson(data);
    const event = eventOf(msg);
    if (event === null) {
      this.#warn(`skipped an unreadable event: ${data.slice(0, 200)}`);
      return;
    }
    const { type, session } = event;
    if (session === null || adapter.isToldAgain(event)) return;
    if (type.startsWith('session.')) adapter.tree.learn(event.data.info);
    if (!(await this.#lookUp(session))) return;
    const root = adapter.tree.rootOf(session);
    if (!this.sessions.has(root)) {
      if (!this.sessions.isWanted(root)) return;
      const isNew = type === 'session.created' && session === root;
      await this.sessions.add(root);
      if (!isNew) await this.#catchUp.read([root]);
    }
    // Positions are dense, so a gap means missed events.
    const isGap = event.seq !== null && event.seq > (memory.places.get(session) ?? -1) + 1;
    if (isGap) await this.#catchUp.read([root]);
    await feed.pass({ dir: 'in', msg }, memory.of(event), this.sessions.idOf(root));
  }

  /** Loads a session and its parents. @returns whether it exists */
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
    for (const root of this.sessions.initialRoots()) await this.sessions.add(root);
    const roots = [...this.sessions.sessionIds.keys()].filter((root) => adapter.tree.get(root) !== undefined);
    await this.#catchUp.read(roots);
    await this.#catchUp.readStates(roots);
    this.#trouble = null;
    this.#lastStatus = null;
    this.#isReady = true;
    for (const done of [...this.#waiting]) done();
    context.changed();
    context.log('info', `connected to OpenCode ${this.#version ?? ''} at ${shownUrl}`);
  }

  /** Finds or creates the session named with --session. */
  async #findSession(): Promise<void> {
    const { session, memory, server, adapter, directory, context } = this.#options;
    if (session === null || memory.rootFor(session) !== null) return;
    if (session.startsWith('ses') && (await this.#lookUp(session))) return;
    const answer = await server.request('POST', inDirectory('/session', directory), {});
    const made = adapter.tree.learn(answer.body);
    if (answer.status !== 200 || made === null) throw new Error(errorText(answer));
    await context.emit(session, [], memory.noteSession(made.id, session));
  }

  #broken({ reason, status, failures, againInMs }: BrokenStream): void {
    const { context, shownUrl } = this.#options;
    this.#isReady = false;
    const trouble =
      status === 401
        ? `OpenCode at ${shownUrl} requires a password; set OPENCODE_SERVER_PASSWORD or --password-file`
        : `no connection to OpenCode at ${shownUrl} (${reason}); retrying`;
    if (trouble !== this.#trouble || failures % 30 === 0) context.log('warn', `${trouble} in ${againInMs} ms`);
    this.#trouble = trouble;
    this.#lastStatus = status;
    context.changed();
  }

  #warn(message: string): void {
    this.#options.context.log('warn', `OpenCode: ${message}`);
  }
}
