import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { endsOf, isNothing } from '@interlude/protocol/lifecycle/open-session';
import { entryOf, eventOf, idOf, type NativeEvent } from '../../adapters/opencode/native-event';
import type { OpencodeAdapter } from '../../adapters/opencode/opencode-adapter';
import type { SessionTree } from '../../adapters/opencode/subagents';
import type { WireFrame } from '../../adapters/wire';
import { type BrokenStream, readEventStream, statusBehindGateway, unreachableReason } from '../../host/agent-http';
import type { SourceContext } from '../../host/source';
import { noticeEvent } from '../../host/source-commands';
import type { WireFeed } from '../../host/wire-feed';
import type { Cursor } from '../../outbox/statements';
import { FollowedSessions, type SessionStore } from './followed-sessions';
import { type Answer, errorText, inDirectory, type OpencodeServer } from './opencode-server';

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

/**
 * Follows the events of an OpenCode server, and catches up after each connect.
 *
 * Ordering: missed events are read before the first event of a new stream. Events of an unknown session wait until its
 * history is read.
 * Failure: a broken stream is reopened forever. If the address stays silent, open work is closed (`lost`) and continues
 * as another turn.
 */
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

  /** True once the runner has caught up with the server. */
  get isConnected(): boolean {
    return this.#isReady;
  }

  async reach(): Promise<string | null> {
    const { server, shownUrl } = this.#options;
    const request = (withinMs: number) => server.request('GET', '/global/health', undefined, withinMs);
    return await unreachableReason(shownUrl, await statusBehindGateway(this.#lastStatus, request));
  }

  async lost(reason: string): Promise<void> {
    await this.#options.feed.ended({ reason, goesOn: 'The runner will reconnect once OpenCode is back.' });
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

  /** @returns true if the runner catches up within the time */
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

  /** Sends a POST request about a session. */
  async post(path: string, root: string, body?: unknown): Promise<Answer> {
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
    if (session === null || adapter.isRepeatedLater(event)) return;
    if (type.startsWith('session.')) adapter.tree.update(event.data.info);
    if (!(await this.#lookUp(session))) return;
    const root = adapter.tree.rootOf(session);
    if (!this.sessions.has(root)) {
      if (!this.sessions.isWanted(root)) return;
      const isNew = type === 'session.created' && session === root;
      await this.sessions.add(root);
      if (!isNew) await this.#catchUp.read([root]);
    }
    // Positions are dense, so a gap means missed events.
    const isGap = event.seq !== null && event.seq > (memory.positions.get(session) ?? -1) + 1;
    if (isGap) await this.#catchUp.read([root]);
    await feed.pass({ dir: 'in', msg }, memory.of(event), this.sessions.idOf(root));
  }

  /** Loads a session and its parents. @returns true if the session exists */
  async #lookUp(session: string): Promise<boolean> {
    const { adapter, server } = this.#options;
    while (!adapter.tree.isKnown(session)) {
      const unknown = adapter.tree.rootOf(session);
      const { status, body } = await server.request('GET', `/session/${encodeURIComponent(unknown)}`);
      if (status !== 200 || adapter.tree.update(body)?.id !== unknown) return false;
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
    for (const info of listOf(list.body)) adapter.tree.update(info);
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
    const made = adapter.tree.update(answer.body);
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

interface CatchUpOptions {
  server: OpencodeServer;
  adapter: OpencodeAdapter;
  feed: WireFeed;
  memory: SessionStore;
  context: SourceContext;
  sessions: FollowedSessions;
  now: () => number;
}

/** History entries stored in one transaction. */
const MOST_AT_ONCE = 200;
const HISTORY: WireFrame = { dir: 'out', msg: { method: 'POST', path: '/sync/history' } };

/**
 * Reads what happened in sessions while the runner was disconnected.
 *
 * Ordering: the history of a session is emitted in order, each batch with the position after it. State that the history
 * lacks (activity, open requests) is read afterwards.
 * Failure: from servers without a history, the current messages are read.
 */
class CatchUp {
  readonly #options: CatchUpOptions;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** Reads new history of these root sessions and their subagents. */
  async read(roots: readonly string[]): Promise<void> {
    const { server, adapter, memory, context, sessions } = this.#options;
    const isOpen = (root: string) => !isNothing(context.openWork(sessions.idOf(root)));
    // Open work can only be ended by a process that has read its beginning.
    const reread = new Set(roots.filter((root) => !adapter.knows(root) && isOpen(root)));
    const after = new Map<string, number>();
    for (const { id } of adapter.tree.all) {
      const root = adapter.tree.rootOf(id);
      if (roots.includes(root)) after.set(id, reread.has(root) ? -1 : (memory.positions.get(id) ?? -1));
    }
    const entries = await readHistory(server, adapter.tree, after);
    if (entries === null) {
      for (const root of roots) await this.#readMessages(root);
      return;
    }
    // Includes sessions created meanwhile.
    for (const { event } of entries) if (event.type.startsWith('session.')) adapter.tree.update(event.data.info);
    const byRoot = new Map<string, HistoryEntry[]>(roots.map((root) => [root, []]));
    for (const entry of entries) {
      const root = adapter.tree.rootOf(entry.event.session ?? '');
      if (sessions.isWanted(root)) byRoot.set(root, [...(byRoot.get(root) ?? []), entry]);
    }
    for (const [root, of] of byRoot) {
      await sessions.add(root);
      if (reread.has(root)) await this.#restore(root, of);
      await this.#emit(root, of);
    }
  }

  /** Reads activity and open requests. */
  async readStates(roots: readonly string[]): Promise<void> {
    const { server, adapter, context, sessions } = this.#options;
    // A server starts an instance for every folder of a request, so only active folders are requested.
    const isBusy = (root: string) => adapter.hasOpenWork(root) || !isNothing(context.openWork(sessions.idOf(root)));
    const active = roots.filter(isBusy);
    for (const directory of new Set(active.map((root) => sessions.directoryOf(root)))) {
      const paths = ['/session/status', '/permission', '/question'].map((path) => inDirectory(path, directory));
      const answers = await Promise.all(paths.map((path) => server.request('GET', path)));
      const busy = fieldsOf(answers[0]?.body);
      const here = active.filter((root) => sessions.directoryOf(root) === directory);
      // The history already has the end of a turn that has just ended.
      if (here.some((root) => !Object.hasOwn(busy, root))) await this.read(here);
      for (const [index, path] of paths.entries()) {
        await this.#pass([
          { dir: 'out', msg: { method: 'GET', path } },
          { dir: 'in', msg: answers[index] },
        ]);
      }
    }
  }

  /** Replays the events that the previous process emitted, without emitting them, so that later events have context. */
  async #restore(root: string, entries: readonly HistoryEntry[]): Promise<void> {
    const { adapter, memory, context, sessions, now } = this.#options;
    const sessionId = sessions.idOf(root);
    const open = context.openWork(sessionId);
    const emitted = entries.filter(({ event }) => memory.wasEmitted(event)).map(({ raw }) => raw);
    const frames: WireFrame[] = [HISTORY, { dir: 'in', msg: { status: 200, body: emitted } }];
    const before = { runId: open.turn?.runId ?? null, requests: open.requests, openParts: memory.openParts };
    adapter.restore(root, frames, before, now());
    // The history lacks the beginning of this turn, so nothing will report its end.
    if (open.turn === null || open.turn.runId === adapter.runOf(root)) return;
    await context.emit(sessionId, endsOf({ ...open, tasks: [], requests: [] }, sessionId, now()));
  }

  async #emit(root: string, entries: readonly HistoryEntry[]): Promise<void> {
    const { memory, sessions } = this.#options;
    const fresh = entries.filter(({ event }) => !memory.wasEmitted(event));
    for (let index = 0; index < fresh.length; index += MOST_AT_ONCE) {
      const some = fresh.slice(index, index + MOST_AT_ONCE);
      const cursors = new Map<string, Cursor>();
      for (const { event } of some) for (const cursor of memory.of(event)) cursors.set(cursor.name, cursor);
      const answer: WireFrame = { dir: 'in', msg: { status: 200, body: some.map(({ raw }) => raw) } };
      await this.#pass([HISTORY, answer], [...cursors.values()], sessions.idOf(root));
    }
  }

  /**
   * Reads the current messages. Those that an earlier process emitted, completely or in part, are not emitted again.
   */
  async #readMessages(root: string): Promise<void> {
    const { server, adapter, memory, context, sessions, now } = this.#options;
    const sessionId = sessions.idOf(root);
    const open = context.openWork(sessionId);
    const isFirst = !adapter.knows(root);
    if (isFirst && !isNothing(open)) {
      const text =
        'The runner was disconnected, and this OpenCode has no history, so the rest of this turn is missing.';
      await context.emit(sessionId, [...endsOf(open, sessionId, now()), noticeEvent(text, 'warning', now())]);
    }
    const members = [...adapter.tree.all].filter(({ id }) => adapter.tree.rootOf(id) === root);
    for (const { id, directory } of members) {
      const path = inDirectory(`/session/${encodeURIComponent(id)}/message`, directory);
      const answer = await server.request('GET', path);
      if (answer.status !== 200) throw new Error(errorText(answer));
      const request: WireFrame = { dir: 'out', msg: { method: 'GET', path } };
      const framesOf = (body: unknown[]): WireFrame[] => [request, { dir: 'in', msg: { status: 200, body } }];
      const idIn = (message: unknown) => idOf(fieldsOf(fieldsOf(message).info).id) ?? '';
      const emittedUpTo = isFirst ? (memory.newestMessages.get(id) ?? '') : '';
      const all = listOf(answer.body);
      const nothing = { runId: null, requests: [], openParts: new Map<string, string>() };
      if (emittedUpTo !== '')
        adapter.restore(root, framesOf(all.filter((message) => idIn(message) <= emittedUpTo)), nothing, now());
      const newest = all.map(idIn).toSorted().at(-1) ?? '';
      const cursors = memory.noteMessage(id, newest);
      await this.#pass(framesOf(all.filter((message) => idIn(message) > emittedUpTo)), cursors, sessionId);
    }
  }

  /** Feeds a request with its response, without anything in between. */
  async #pass(frames: readonly WireFrame[], cursors: readonly Cursor[] = [], ofSession?: string): Promise<void> {
    const { feed } = this.#options;
    await Promise.all(
      frames.map((frame) => (frame.dir === 'out' ? feed.pass(frame) : feed.pass(frame, cursors, ofSession))),
    );
  }
}

interface HistoryEntry {
  raw: unknown;
  event: NativeEvent;
}

/** The server's query has one condition per session, and its database allows a thousand. */
const MAX_NAMED = 900;
const ALL = Number.MAX_SAFE_INTEGER;
const ANSWER_WITHIN_MS = 60_000;

/**
 * Reads the history of sessions after known positions.
 *
 * Failure: for sessions that a request does not name, the server returns the full history. So nothing is read if there
 * are too many sessions to name, or no history.
 *
 * @param after last known position by session; -1 for the whole history
 * @returns null without a history
 */
async function readHistory(
  server: OpencodeServer,
  tree: SessionTree,
  after: ReadonlyMap<string, number>,
): Promise<HistoryEntry[] | null> {
  if (after.size === 0) return [];
  const named: Record<string, number> = {};
  for (const { id } of tree.all) named[id] = ALL;
  for (const [id, position] of after) {
    if (position < 0) delete named[id];
    else named[id] = position;
  }
  if (Object.keys(named).length > MAX_NAMED) return null;
  const { status, body } = await server.request('POST', '/sync/history', named, ANSWER_WITHIN_MS);
  if (status !== 200 || !Array.isArray(body)) return null;
  return inOrder(listOf(body));
}

/** Orders entries by position within a session, and across sessions by their time-based ids. */
function inOrder(body: readonly unknown[]): HistoryEntry[] {
  const entries = body.flatMap((raw) => {
    const event = entryOf(raw);
    return event === null || event.session === null ? [] : [{ raw, event }];
  });
  const bySession = new Map<string | null, HistoryEntry[]>();
  for (const entry of entries) {
    const of = bySession.get(entry.event.session);
    if (of === undefined) bySession.set(entry.event.session, [entry]);
    else of.push(entry);
  }
  for (const of of bySession.values()) of.sort((a, b) => (a.event.seq ?? 0) - (b.event.seq ?? 0));
  const next = new Map<string | null, number>();
  return entries
    .toSorted((a, b) => ((a.event.id ?? '') < (b.event.id ?? '') ? -1 : 1))
    .flatMap(({ event: { session } }) => {
      const at = next.get(session) ?? 0;
      next.set(session, at + 1);
      return bySession.get(session)?.[at] ?? [];
    });
}
