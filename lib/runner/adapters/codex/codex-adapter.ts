import { type Fields, fieldsOf, isObject, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import {
  type EmittedEvent,
  earliest,
  setBounded,
  type WireAdapter,
  type WireAdapterOptions,
  type WireEnd,
  type WireFrame,
} from '../wire';
import { SessionWriter } from '../writer/session-writer';
import { boundFrame } from '../writer/size-limits';
import { type CodexRequest, PendingRequests, type RpcId, rpcIdOf } from './requests';
import { CodexThread, handleNotification, type ThreadProgress } from './thread';
import { History } from './thread-items';

/** State of a thread as written by an earlier process. */
interface ThreadSnapshot {
  progress: ThreadProgress;
  parentThreadId: string | null;
  openTurnRunId: string | null;
  openTasks: readonly { id: string; runId: string | null }[];
  openRequests: readonly string[];
}

const MAX_THREADS = 1_000;
const MAX_KNOWN = 2_000;
const ID_REUSED = 'Codex reused the id for another request.';

/**
 * Translates one connection to a Codex app-server, with all its threads. Each top-level thread is a session;
 * `ephemeral` threads (titles, predictions) are ignored.
 *
 * @see `codex app-server generate-ts --experimental`, @openai/codex 0.171.0: JSON-RPC without the `jsonrpc` member
 */
export class CodexAdapter implements WireAdapter {
  readonly #options: WireAdapterOptions;
  readonly #threads = new Map<string, CodexThread>();
  readonly #ignored = new Map<string, true>();
  readonly #writers = new Map<string, SessionWriter>();
  /** Interlude's requests to the server, by id. */
  readonly #calls = new Map<RpcId, { method: string; params: Fields }>();
  readonly #requests = new PendingRequests();
  /** Thread of each turn. */
  readonly #turns = new Map<string, string>();
  readonly #histories = new Map<string, History>();
  readonly #isActive = new Map<string, boolean>();
  readonly #lastWriteAt = new Map<SessionWriter, number>();
  #now = 0;

  constructor(options: WireAdapterOptions) {
    this.#options = options;
  }

  read({ dir, msg: raw }: WireFrame, now: number): EmittedEvent[] {
    this.#now = now;
    const msg = boundFrame(raw, true);
    if (!isObject(msg)) return [];
    if (dir === 'out') this.#sent(msg);
    else this.#received(msg);
    return this.#take();
  }

  get dueAt(): number | null {
    return earliest([...this.#threads.values()].map(({ dueAt }) => dueAt));
  }

  elapsed(now: number): EmittedEvent[] {
    this.#now = now;
    for (const thread of this.#threads.values()) {
      if (thread.dueAt === null || thread.dueAt > now) continue;
      this.#at(thread, now);
      thread.elapsed(now);
    }
    return this.#take();
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#now = now;
    for (const thread of this.#threads.values()) {
      this.#at(thread, now);
      thread.ended();
    }
    for (const writer of this.#writers.values()) writer.end(end);
    this.#requests.clear();
    this.disconnected();
    return this.#take();
  }

  /** Handles a lost connection to a server that still runs: open work continues, and its events are read later. */
  disconnected(): void {
    this.#calls.clear();
    this.#histories.clear();
    for (const thread of this.#threads.values()) thread.items.reconnected();
  }

  /** Resumes a thread of an earlier process. Parents come before their children. */
  restore(threadId: string, before: ThreadSnapshot, now: number): EmittedEvent[] {
    this.#now = now;
    const { progress, parentThreadId, openTurnRunId, openTasks, openRequests } = before;
    const thread = this.#thread(threadId, parentThreadId);
    if (thread === null) return [];
    this.#at(thread, now);
    if (thread.parent === null) {
      const { cause } = progress;
      const turn = openTurnRunId === null || cause === null ? null : { runId: openTurnRunId, cause };
      const parts = { texts: [], thoughts: [], calls: [] };
      thread.writer.resume({ turn, tasks: openTasks, requests: openRequests, ...parts });
      // Codex repeats requests that are still pending.
      for (const id of openRequests) thread.writer.resolved(id, 'cancelled', 'The runner restarted.');
    }
    thread.restore(
      progress,
      openTurnRunId,
      openTasks.map(({ id }) => id),
    );
    if (progress.openTurn !== null) setBounded(this.#turns, progress.openTurn, threadId, MAX_KNOWN);
    return this.#take();
  }

  /** Session of a thread; null if it has none. */
  sessionOf(threadId: string): string | null {
    return this.#threads.get(threadId)?.writer.sessionId ?? null;
  }

  thread(threadId: string): CodexThread | null {
    return this.#threads.get(threadId) ?? null;
  }

  get threads(): readonly CodexThread[] {
    return [...this.#threads.values()];
  }

  isIgnored(threadId: string): boolean {
    return this.#ignored.has(threadId);
  }

  /** Open server request with this id. */
  openRequest(rpcId: RpcId): CodexRequest | null {
    return this.#requests.get(rpcId);
  }

  #sent(msg: Fields): void {
    const id = rpcIdOf(msg.id);
    const params = fieldsOf(msg.params);
    if (id === null) return;
    if (typeof msg.method !== 'string') {
      this.#requests.answered(id, msg.result);
      return;
    }
    setBounded(this.#calls, id, { method: msg.method, params }, MAX_KNOWN);
    const threadId = textOf(params.threadId) ?? '';
    if (msg.method === 'thread/timeline/list' && textOf(params.cursor) === null) {
      const entry = this.#threads.get(threadId)?.progress ?? { lastTurn: null, openTurn: null, isWhole: false };
      setBounded(this.#histories, threadId, new History(entry), MAX_THREADS);
    }
    if (msg.method === 'thread/backgroundTerminals/terminate') {
      this.#threads.get(threadId)?.stopping(textOf(params.processId) ?? '');
    }
  }

  #received(msg: Fields): void {
    const id = rpcIdOf(msg.id);
    if (typeof msg.method !== 'string') {
      if (id !== null) this.#answered(id, msg);
      return;
    }
    const params = fieldsOf(msg.params);
    if (id !== null) {
      this.#requested(id, msg.method, msg);
      return;
    }
    if (msg.method === 'thread/started') {
      this.#registerThread(fieldsOf(params.thread), listOf(fieldsOf(params.thread).turns).length === 0);
      return;
    }
    const threadId = textOf(params.threadId);
    if (threadId !== null) this.#notified(msg.method, threadId, params);
  }

  #answered(id: RpcId, { result, error }: Fields): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (call === undefined || error !== undefined) return;
    const { method, params } = call;
    const response = fieldsOf(result);
    const threadId = textOf(params.threadId) ?? '';
    const thread = this.#threads.get(threadId);
    switch (method) {
      case 'thread/start':
        this.#registerThread(fieldsOf(response.thread), true);
        return;
      case 'thread/resume':
        this.#resumed(fieldsOf(response.thread));
        return;
      case 'turn/start': {
        const [turnId, clientId] = [textOf(fieldsOf(response.turn).id), textOf(params.clientUserMessageId)];
        if (turnId === null || thread === undefined) return;
        setBounded(this.#turns, turnId, threadId, MAX_KNOWN);
        this.#at(thread, this.#now);
        if (clientId !== null) thread.turns.expect(turnId, clientId);
        return;
      }
      case 'thread/timeline/list':
        this.#caughtUp(threadId, response);
        return;
      case 'thread/backgroundTerminals/list':
        if (thread === undefined || textOf(response.nextCursor) !== null || params.cursor) return;
        this.#at(thread, this.#now);
        thread.items.listed(listOf(response.data).filter(isObject), this.#now);
    }
  }

  #requested(id: RpcId, method: string, msg: Fields): void {
    const params = fieldsOf(msg.params);
    const before = this.#requests.get(id);
    const request = this.#requests.open(id, msg);
    if (before !== null && before.value.request_id !== request?.value.request_id) {
      this.#threads.get(before.threadId)?.writer.resolved(before.value.request_id, 'unknown', ID_REUSED);
    }
    const threadId = textOf(params.threadId) ?? '';
    const thread = request === null ? this.#threads.get(threadId) : this.#thread(request.threadId, null);
    if (thread === undefined || thread === null) return;
    this.#at(thread, this.#now);
    if (request === null) thread.keep(method, params);
    else if (!thread.writer.requests.isOpen(request.value.request_id)) {
      thread.writer.requested(request.value, thread.parent !== null || thread.writer.turn === null);
    }
  }

  #notified(method: string, threadId: string, params: Fields): void {
    if (this.#ignored.has(threadId)) return;
    const turn = fieldsOf(params.turn);
    const turnId = textOf(turn.id) ?? textOf(params.turnId);
    const isOfTurn = method === 'turn/started' || method.startsWith('item/');
    const thread = isOfTurn
      ? this.#thread(threadId, this.#parentOf(threadId, turnId, textOf(turn.rootTurnId)))
      : this.#threads.get(threadId);
    // Ignore threads without a session.
    if (thread === undefined || thread === null) return;
    this.#at(thread, this.#now);
    switch (method) {
      case 'serverRequest/resolved':
        this.#resolved(rpcIdOf(params.requestId));
        return;
      case 'item/fileChange/patchUpdated':
        this.#requests.changes(textOf(params.itemId) ?? '', params.changes);
        return;
      case 'thread/closed':
      case 'thread/archived':
      case 'thread/deleted':
        this.#closed(thread, method.slice('thread/'.length));
        return;
      case 'turn/started':
        if (turnId !== null) setBounded(this.#turns, turnId, threadId, MAX_KNOWN);
        break;
      case 'turn/completed':
        if (turnId !== null) this.#closeRequests(thread, turnId);
        break;
      case 'thread/status/changed':
        setBounded(this.#isActive, threadId, fieldsOf(params.status).type === 'active', MAX_THREADS);
        break;
      case 'item/started':
      case 'item/completed':
        this.#noteItem(thread, fieldsOf(params.item));
    }
    handleNotification(thread, method, params, this.#now);
    if (method === 'item/completed') this.#requests.itemEnded(textOf(fieldsOf(params.item).id) ?? '');
  }

  /** Records relations between threads and details of upcoming requests. */
  #noteItem(thread: CodexThread, item: Fields): void {
    const id = textOf(item.id) ?? '';
    if (item.type === 'fileChange') this.#requests.changes(id, item.changes);
    if (item.type === 'collabAgentToolCall' && item.tool === 'spawnAgent') {
      const name = textOf(item.prompt)?.split('\n')[0]?.slice(0, 200) ?? null;
      for (const child of textsOf(item.receiverThreadIds)) this.#thread(child, thread.id)?.turns.spawned(id, name);
    }
    if (item.type !== 'subAgentActivity') return;
    const childId = textOf(item.agentThreadId);
    const child = childId === null ? null : this.#thread(childId, thread.id);
    if (item.kind === 'started') {
      child?.turns.spawned(id, textOf(item.agentPath));
      thread.spawns(item);
    }
    if (item.kind === 'completed') child?.turns.finished();
  }

  /** A subagent's thread shows its parent only in its first root turn. */
  #parentOf(threadId: string, turnId: string | null, rootTurnId: string | null): string | null {
    if (rootTurnId === null || rootTurnId === turnId || this.#threads.has(threadId)) return null;
    const parent = this.#turns.get(rootTurnId) ?? null;
    return parent === threadId ? null : parent;
  }

  #registerThread(entry: Fields, isNew: boolean): CodexThread | null {
    const id = textOf(entry.id);
    if (id === null) return null;
    if (entry.ephemeral === true) {
      setBounded(this.#ignored, id, true, MAX_KNOWN);
      return null;
    }
    const parent = textOf(entry.parentThreadId);
    const thread = this.#thread(id, parent);
    thread?.turns.spawned(null, textOf(entry.agentNickname) ?? textOf(entry.agentRole));
    if (isNew) thread?.isNew();
    setBounded(this.#isActive, id, fieldsOf(entry.status).type === 'active', MAX_THREADS);
    return thread;
  }

  #resumed(entry: Fields): void {
    const thread = this.#registerThread(entry, false);
    if (thread === null) return;
    const flags = textsOf(fieldsOf(entry.status).activeFlags);
    if (flags.includes('waitingOnApproval') || flags.includes('waitingOnUserInput')) return;
    this.#at(thread, this.#now);
    for (const rpcId of this.#requests.of(thread.id)) this.#resolved(rpcId);
  }

  #caughtUp(threadId: string, page: Fields): void {
    const [thread, history] = [this.#threads.get(threadId), this.#histories.get(threadId)];
    if (thread === undefined || history === undefined) return;
    for (const entry of history.read(page)) {
      this.#at(thread, entry.at ?? this.#now);
      if (entry.kind === 'turnStarted') setBounded(this.#turns, entry.turnId, threadId, MAX_KNOWN);
      if (entry.kind === 'item' && !entry.isOld) this.#noteItem(thread, entry.fields);
      thread.happened(entry, this.#now);
    }
    if (textOf(page.nextCursor) !== null) return;
    this.#histories.delete(threadId);
    this.#at(thread, this.#now);
    thread.turns.caughtUp(this.#isActive.get(threadId) ?? true, this.#now);
  }

  #resolved(rpcId: RpcId | null): void {
    const settled = rpcId === null ? null : this.#requests.remove(rpcId);
    if (settled === null) return;
    const { request, outcome } = settled;
    const writer = this.#threads.get(request.threadId)?.writer;
    const elsewhere = outcome === null ? 'Answered in Codex or withdrawn.' : null;
    writer?.resolved(request.value.request_id, outcome ?? 'unknown', elsewhere);
  }

  /** Requests of a subagent outlive the session's turn; other requests end with it. */
  #closeRequests(thread: CodexThread, turnId: string): void {
    for (const rpcId of this.#requests.of(thread.id, turnId)) {
      if (thread.parent !== null) this.#resolved(rpcId);
      else this.#requests.remove(rpcId);
    }
  }

  #closed(thread: CodexThread, how: string): void {
    thread.ended();
    if (thread.parent === null) thread.writer.end({ reason: `the thread was ${how} in Codex`, isAsked: true });
  }

  /** @param parentId parent of a subagent's thread, if unknown so far */
  #thread(id: string, parentId: string | null): CodexThread | null {
    if (this.#ignored.has(id) || id.length > MAX_ID_LENGTH) return null;
    const known = this.#threads.get(id);
    if (known !== undefined) return known;
    const parent = parentId === null || parentId === id ? null : this.#thread(parentId, null);
    const writer = parent?.writer ?? this.#writerOf(id);
    const thread = new CodexThread({ id, writer, parent, isReplay: this.#options.isReplay === true });
    setBounded(this.#threads, id, thread, MAX_THREADS);
    return thread;
  }

  #writerOf(threadId: string): SessionWriter {
    const { sessionOf, newRunId, isReplay } = this.#options;
    const writer = new SessionWriter({ sessionId: sessionOf(threadId), newRunId, isReplay });
    setBounded(this.#writers, threadId, writer, MAX_THREADS);
    return writer;
  }

  /** History entries keep their own time, but never precede the last written event. */
  #at({ writer }: CodexThread, time: number): void {
    const at = Math.max(this.#lastWriteAt.get(writer) ?? 0, Math.min(time, this.#now));
    this.#lastWriteAt.delete(writer);
    setBounded(this.#lastWriteAt, writer, at, MAX_THREADS);
    writer.at(at);
  }

  #take(): EmittedEvent[] {
    return [...this.#writers.values()].flatMap((writer) => writer.drain());
  }
}

/** @param userAgent from the response to `initialize`: `interlude/0.171.0 (Debian 12.0.0; x86_64) …` */
export function codexVersion(userAgent: unknown): string | null {
  const [, version] = /^[^/]*\/(\d[\w.+-]{0,63})/.exec(textOf(userAgent) ?? '') ?? [];
  return version === undefined ? null : `codex ${version}`;
}
