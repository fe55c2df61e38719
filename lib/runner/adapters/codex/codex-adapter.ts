import { type Fields, fieldsOf, isObject, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { remember } from '../remember';
import type { ToldEvent, WireAdapter, WireAdapterOptions, WireEnd, WireFrame } from '../wire';
import { withinReason } from '../within-reason';
import { SessionWriter } from '../writer/session-writer';
import { AskedRequests, type RpcId, rpcIdOf } from './asked-requests';
import { History } from './history';
import { tellThread } from './notifications';
import type { AskedRequest } from './requests';
import { CodexThread, type ThreadPlace } from './thread';

/** What a process before this one had told of a thread, and what is open by that. */
export interface ThreadBefore {
  place: ThreadPlace;
  parentThreadId: string | null;
  openTurnRunId: string | null;
  openTasks: readonly { id: string; runId: string | null }[];
  openRequests: readonly string[];
}

const MAX_THREADS = 1_000;
const MAX_KNOWN = 2_000;
const ASKED_ANEW = 'Codex asks for something else under the same id.';

/**
 * One connection to an app-server of Codex, with all its threads → AG-UI events. Each thread that is no subagent's is a
 * session; those that are only for the server's own use (`ephemeral`: titles, predictions) are not told of.
 *
 * @see `codex app-server generate-ts --experimental`, @openai/codex 0.171.0: JSON-RPC without the `jsonrpc` member
 */
export class CodexAdapter implements WireAdapter {
  readonly #options: WireAdapterOptions;
  readonly #threads = new Map<string, CodexThread>();
  readonly #ignored = new Map<string, true>();
  readonly #writers = new Map<string, SessionWriter>();
  /** What Interlude asked of the server, by the id of the request. */
  readonly #calls = new Map<RpcId, { method: string; params: Fields }>();
  readonly #requests = new AskedRequests();
  /** Which thread a turn is of. */
  readonly #turns = new Map<string, string>();
  readonly #histories = new Map<string, History>();
  readonly #isActive = new Map<string, boolean>();
  readonly #toldAt = new Map<SessionWriter, number>();
  #now = 0;

  constructor(options: WireAdapterOptions) {
    this.#options = options;
  }

  read({ dir, msg: given }: WireFrame, now: number): ToldEvent[] {
    this.#now = now;
    const msg = withinReason(given, true);
    if (!isObject(msg)) return [];
    if (dir === 'out') this.#sent(msg);
    else this.#received(msg);
    return this.#take();
  }

  get dueAt(): number | null {
    const times = [...this.#threads.values()].flatMap(({ dueAt }) => dueAt ?? []);
    return times.length === 0 ? null : Math.min(...times);
  }

  elapsed(now: number): ToldEvent[] {
    this.#now = now;
    for (const thread of this.#threads.values()) {
      if (thread.dueAt === null || thread.dueAt > now) continue;
      this.#at(thread, now);
      thread.elapsed(now);
    }
    return this.#take();
  }

  ended(end: WireEnd, now: number): ToldEvent[] {
    this.#now = now;
    for (const thread of this.#threads.values()) {
      this.#at(thread, now);
      thread.isGone();
    }
    for (const writer of this.#writers.values()) writer.end(end);
    this.#requests.clear();
    this.disconnected();
    return this.#take();
  }

  /** The connection is gone and the server is not: what is open goes on, and is caught up with. */
  disconnected(): void {
    this.#calls.clear();
    this.#histories.clear();
    for (const thread of this.#threads.values()) thread.items.reconnected();
  }

  /** A thread that a process before this one has told of. Parents come before their children. */
  takeUp(threadId: string, before: ThreadBefore, now: number): ToldEvent[] {
    this.#now = now;
    const { place, parentThreadId, openTurnRunId, openTasks, openRequests } = before;
    const thread = this.#thread(threadId, parentThreadId);
    if (thread === null) return [];
    this.#at(thread, now);
    if (thread.parent === null) {
      const turn = openTurnRunId === null || place.cause === null ? null : { runId: openTurnRunId, cause: place.cause };
      const said = { texts: [], thoughts: [], calls: [] };
      thread.writer.takeUp({ turn, tasks: openTasks, requests: openRequests, ...said });
      // Codex asks anew for what still waits.
      for (const id of openRequests) thread.writer.resolved(id, 'cancelled', 'The runner was started again.');
    }
    thread.takeUp(
      place,
      openTurnRunId,
      openTasks.map(({ id }) => id),
    );
    if (place.openTurn !== null) remember(this.#turns, place.openTurn, threadId, MAX_KNOWN);
    return this.#take();
  }

  /** The session that a thread belongs to; null if it is not told of. */
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

  /** What the server asks under this id, and waits for. */
  asked(rpcId: RpcId): AskedRequest | null {
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
    remember(this.#calls, id, { method: msg.method, params }, MAX_KNOWN);
    const threadId = textOf(params.threadId) ?? '';
    if (msg.method === 'thread/timeline/list' && textOf(params.cursor) === null) {
      const told = this.#threads.get(threadId)?.place ?? { lastTurn: null, openTurn: null, isWhole: false };
      remember(this.#histories, threadId, new History(told), MAX_THREADS);
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
      this.#seen(fieldsOf(params.thread), listOf(fieldsOf(params.thread).turns).length === 0);
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
    const said = fieldsOf(result);
    const threadId = textOf(params.threadId) ?? '';
    const thread = this.#threads.get(threadId);
    switch (method) {
      case 'thread/start':
        this.#seen(fieldsOf(said.thread), true);
        return;
      case 'thread/resume':
        this.#resumed(fieldsOf(said.thread));
        return;
      case 'turn/start': {
        const [turnId, clientId] = [textOf(fieldsOf(said.turn).id), textOf(params.clientUserMessageId)];
        if (turnId === null || thread === undefined) return;
        remember(this.#turns, turnId, threadId, MAX_KNOWN);
        this.#at(thread, this.#now);
        if (clientId !== null) thread.turns.expect(turnId, clientId);
        return;
      }
      case 'thread/timeline/list':
        this.#caughtUp(threadId, said);
        return;
      case 'thread/backgroundTerminals/list':
        if (thread === undefined || textOf(said.nextCursor) !== null || params.cursor) return;
        this.#at(thread, this.#now);
        thread.items.listed(listOf(said.data).filter(isObject), this.#now);
    }
  }

  #requested(id: RpcId, method: string, msg: Fields): void {
    const params = fieldsOf(msg.params);
    const before = this.#requests.get(id);
    const request = this.#requests.asked(id, msg);
    if (before !== null && before.value.request_id !== request?.value.request_id) {
      this.#threads.get(before.threadId)?.writer.resolved(before.value.request_id, 'unknown', ASKED_ANEW);
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
    // Of a thread that nobody follows there is nothing to tell but that it is there.
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
        if (turnId !== null) remember(this.#turns, turnId, threadId, MAX_KNOWN);
        break;
      case 'turn/completed':
        if (turnId !== null) this.#closeRequests(thread, turnId);
        break;
      case 'thread/status/changed':
        remember(this.#isActive, threadId, fieldsOf(params.status).type === 'active', MAX_THREADS);
        break;
      case 'item/started':
      case 'item/completed':
        this.#noted(thread, fieldsOf(params.item));
    }
    tellThread(thread, method, params, this.#now);
    if (method === 'item/completed') this.#requests.itemEnded(textOf(fieldsOf(params.item).id) ?? '');
  }

  /** What an item says about threads, and about requests to come. */
  #noted(thread: CodexThread, item: Fields): void {
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

  /** Nothing says of a subagent's thread whose it is but the turn that its first turn goes back to. */
  #parentOf(threadId: string, turnId: string | null, rootTurnId: string | null): string | null {
    if (rootTurnId === null || rootTurnId === turnId || this.#threads.has(threadId)) return null;
    const parent = this.#turns.get(rootTurnId) ?? null;
    return parent === threadId ? null : parent;
  }

  #seen(told: Fields, isNew: boolean): CodexThread | null {
    const id = textOf(told.id);
    if (id === null) return null;
    if (told.ephemeral === true) {
      remember(this.#ignored, id, true, MAX_KNOWN);
      return null;
    }
    const parent = textOf(told.parentThreadId);
    const thread = this.#thread(id, parent);
    thread?.turns.spawned(null, textOf(told.agentNickname) ?? textOf(told.agentRole));
    if (isNew) thread?.isNew();
    remember(this.#isActive, id, fieldsOf(told.status).type === 'active', MAX_THREADS);
    return thread;
  }

  #resumed(told: Fields): void {
    const thread = this.#seen(told, false);
    if (thread === null) return;
    const flags = textsOf(fieldsOf(told.status).activeFlags);
    if (flags.includes('waitingOnApproval') || flags.includes('waitingOnUserInput')) return;
    this.#at(thread, this.#now);
    for (const rpcId of this.#requests.of(thread.id)) this.#resolved(rpcId);
  }

  #caughtUp(threadId: string, page: Fields): void {
    const [thread, history] = [this.#threads.get(threadId), this.#histories.get(threadId)];
    if (thread === undefined || history === undefined) return;
    for (const entry of history.read(page)) {
      this.#at(thread, entry.at ?? this.#now);
      if (entry.kind === 'turnStarted') remember(this.#turns, entry.turnId, threadId, MAX_KNOWN);
      if (entry.kind === 'item' && !entry.isOld) this.#noted(thread, entry.fields);
      thread.happened(entry, this.#now);
    }
    if (textOf(page.nextCursor) !== null) return;
    this.#histories.delete(threadId);
    this.#at(thread, this.#now);
    thread.turns.caughtUp(this.#isActive.get(threadId) ?? true, this.#now);
  }

  #resolved(rpcId: RpcId | null): void {
    const asked = rpcId === null ? null : this.#requests.take(rpcId);
    if (asked === null) return;
    const { request, outcome } = asked;
    const writer = this.#threads.get(request.threadId)?.writer;
    const elsewhere = outcome === null ? 'It was answered where Codex runs, or withdrawn.' : null;
    writer?.resolved(request.value.request_id, outcome ?? 'unknown', elsewhere);
  }

  /** What a subagent has asked outlives the turn of the session; what the turn itself has asked ends with it. */
  #closeRequests(thread: CodexThread, turnId: string): void {
    for (const rpcId of this.#requests.of(thread.id, turnId)) {
      if (thread.parent !== null) this.#resolved(rpcId);
      else this.#requests.take(rpcId);
    }
  }

  #closed(thread: CodexThread, how: string): void {
    thread.isGone();
    if (thread.parent === null) thread.writer.end({ reason: `the thread was ${how} in Codex`, isAsked: true });
  }

  /** @param parentId whose subagent it is, where it is not known yet */
  #thread(id: string, parentId: string | null): CodexThread | null {
    if (this.#ignored.has(id) || id.length > MAX_ID_LENGTH) return null;
    const known = this.#threads.get(id);
    if (known !== undefined) return known;
    const parent = parentId === null || parentId === id ? null : this.#thread(parentId, null);
    const writer = parent?.writer ?? this.#writerOf(id);
    const thread = new CodexThread({ id, writer, parent, isReplay: this.#options.isReplay === true });
    remember(this.#threads, id, thread, MAX_THREADS);
    return thread;
  }

  #writerOf(threadId: string): SessionWriter {
    const { sessionOf, newRunId, isReplay } = this.#options;
    const writer = new SessionWriter({ sessionId: sessionOf(threadId), newRunId, isReplay });
    remember(this.#writers, threadId, writer, MAX_THREADS);
    return writer;
  }

  /** What a thread's history tells has its own time, which is never before what was told last. */
  #at({ writer }: CodexThread, time: number): void {
    const at = Math.max(this.#toldAt.get(writer) ?? 0, Math.min(time, this.#now));
    this.#toldAt.delete(writer);
    remember(this.#toldAt, writer, at, MAX_THREADS);
    writer.at(at);
  }

  #take(): ToldEvent[] {
    return [...this.#writers.values()].flatMap((writer) => writer.take());
  }
}
