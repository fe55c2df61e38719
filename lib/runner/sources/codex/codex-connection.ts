import { type Fields, fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import type { CodexAdapter } from '../../adapters/codex/codex-adapter';
import { codexVersion } from '../../adapters/codex/codex-version';
import type { AskedRequest } from '../../adapters/codex/requests';
import { remember } from '../../adapters/remember';
import { withinReason } from '../../adapters/within-reason';
import type { SourceContext } from '../../host/source';
import { RUNNER_VERSION } from '../../version';
import type { WireFeed } from '../../wire/wire-feed';
import type { Transport, TransportListener } from './app-server';
import { AppServer, type RpcResult, requestOf } from './app-server';
import type { ThreadStore } from './thread-store';

/**
 * One connection to an app-server, and the threads that are followed through it.
 *
 * Ordering: what the server says of a thread while its history is read waits until that is told.
 * Failure: what can't be read is told in the log and passed over; a thread that can't be followed is left alone until
 * it does something.
 */
export interface CodexConnectionOptions {
  open: (listener: TransportListener) => Transport;
  adapter: CodexAdapter;
  feed: WireFeed;
  memory: ThreadStore;
  context: SourceContext;
  /** Other clients are connected too: their threads are followed, and what is not for us is left to them. */
  isShared: boolean;
  /** What Codex has of ours, by `clientUserMessageId`. */
  taken: Map<string, true>;
  onThread(threadId: string, thread: Fields): Promise<void> | void;
  /** All of its history is told. */
  onFollowed(threadId: string): void;
  onAsked(request: AskedRequest, server: AppServer): void;
  onResolved(rpcId: string | number): void;
  now: () => number;
  answerWithinMs?: number | undefined;
}

/** Most messages of a thread that wait for its history. */
const MAX_HELD = 50_000;
const MAX_TAKEN = 4_000;
const PAGE = 200;
/** Most pages of one list that are read: a server that always names another one has no end. */
const MAX_PAGES = 10_000;
/** What concerns no thread, and is worth a line in the log. */
const LOGGED = new Set(['warning', 'configWarning', 'deprecationNotice', 'error', 'windows/worldWritableWarning']);

export class CodexConnection {
  readonly server: AppServer;
  readonly #options: CodexConnectionOptions;
  readonly #held = new Map<string, Fields[]>();
  readonly #followed = new Set<string>();
  readonly #following = new Set<string>();
  /** Threads that did something before it was known which of them go on; null from then on. */
  #early: Set<string> | null = new Set();
  readonly #logged = new Map<string, true>();

  constructor(options: CodexConnectionOptions) {
    this.#options = options;
    const { context } = options;
    const link = options.open({
      onMessage: (message) => this.#heard(message),
      onTrouble: (message) => context.log('warn', message),
      onStderr: (text) => context.log('debug', `codex: ${text.trim()}`),
    });
    this.server = new AppServer(
      link,
      (dir, message) => void options.feed.pass({ dir, msg: message }, [], undefined),
      options.answerWithinMs,
    );
  }

  /** @returns the server's name and version, or why it can't be talked to */
  async greet(): Promise<{ provider: string | null } | { problem: string; isGone: boolean }> {
    const answered = await this.server.call('initialize', {
      clientInfo: { name: 'interlude', title: 'Interlude', version: RUNNER_VERSION },
      capabilities: { experimentalApi: true },
    });
    if ('error' in answered) return { problem: answered.error, isGone: answered.isGone };
    this.server.notify('initialized');
    return { provider: codexVersion(answered.result.userAgent) };
  }

  /** The threads that the server has loaded. */
  async loaded(): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answered: RpcResult = await this.server.call('thread/loaded/list', cursor === null ? {} : { cursor });
      if ('error' in answered) return ids;
      ids.push(...listOf(answered.result.data).filter((id) => typeof id === 'string'));
      cursor = textOf(answered.result.nextCursor);
      if (cursor === null) break;
    }
    return ids;
  }

  /** @returns the thread, or why there is none */
  async begin(params: object): Promise<{ threadId: string } | { problem: string }> {
    const answered = await this.server.call('thread/start', { ...params });
    if ('error' in answered) return { problem: answered.error };
    const thread = fieldsOf(answered.result.thread);
    const threadId = textOf(thread.id);
    if (threadId === null) return { problem: 'Codex began a thread and did not name it' };
    this.#followed.add(threadId);
    await this.#options.onThread(threadId, { ...thread, model: answered.result.model ?? thread.model });
    this.#options.onFollowed(threadId);
    return { threadId };
  }

  /** Follows these, and from now on all that do something. */
  async followAll(threadIds: readonly string[]): Promise<void> {
    const all = new Set([...threadIds, ...(this.#early ?? [])]);
    this.#early = null;
    for (const threadId of all) if (!this.#options.adapter.isIgnored(threadId)) await this.follow(threadId);
  }

  /**
   * Subscribes to a thread, and tells what of it is new.
   * @returns why it can't be followed, or null
   */
  async follow(threadId: string, params: object = {}): Promise<string | null> {
    if (this.#followed.has(threadId) || this.#following.has(threadId)) return null;
    this.#following.add(threadId);
    this.#held.set(threadId, []);
    try {
      const answered = await this.server.call('thread/resume', { threadId, excludeTurns: true, ...params });
      if ('error' in answered) return answered.error;
      const thread = fieldsOf(answered.result.thread);
      if (thread.ephemeral === true) return 'it is for Codex itself';
      this.#followed.add(threadId);
      await this.#options.onThread(threadId, { ...thread, model: answered.result.model ?? thread.model });
      await this.#catchUp(threadId);
      return null;
    } finally {
      this.#following.delete(threadId);
      const held = this.#held.get(threadId) ?? [];
      this.#held.delete(threadId);
      for (const message of held) this.#pass(message, threadId);
      if (this.#followed.has(threadId)) this.#options.onFollowed(threadId);
    }
  }

  /** What of ours Codex has taken, or holds in a thread's queue. */
  async hasTaken(threadId: string, clientId: string): Promise<boolean> {
    if (this.#options.taken.has(clientId)) return true;
    const answered = await this.server.call('thread/queue/list', { threadId });
    if ('error' in answered) return false;
    return listOf(answered.result.data).some((queued) => fieldsOf(queued).clientUserMessageId === clientId);
  }

  async #catchUp(threadId: string): Promise<void> {
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const place = cursor === null ? {} : { cursor };
      const answered: RpcResult = await this.server.call('thread/timeline/list', { threadId, limit: PAGE, ...place });
      if ('error' in answered) {
        this.#options.context.log('warn', `the history of thread ${threadId} can't be read: ${answered.error}`);
        break;
      }
      cursor = textOf(answered.result.nextCursor);
      if (cursor === null) break;
    }
    await this.server.call('thread/backgroundTerminals/list', { threadId });
  }

  #heard(message: unknown): void {
    if (!isObject(message)) {
      this.#options.context.log('warn', `Codex sent what is no message: ${beginningOf(message)}`);
      return;
    }
    const isOurs = this.server?.threadOf(message.id) ?? null;
    const isAnswer = typeof message.method !== 'string';
    const threadId = isAnswer ? isOurs : textOf(fieldsOf(message.params).threadId);
    const held = threadId === null || isAnswer ? undefined : this.#held.get(threadId);
    if (held !== undefined && held.length < MAX_HELD) held.push(message);
    else this.#pass(message, threadId);
  }

  #pass(message: Fields, threadId: string | null): void {
    const { adapter, feed, memory, now } = this.#options;
    const cursors = () => (threadId === null ? [] : memory.placeNow(adapter, threadId, now()));
    const session = () => (threadId === null ? undefined : (adapter.sessionOf(threadId) ?? undefined));
    void feed.pass({ dir: 'in', msg: message }, cursors, session);
    this.#noteTaken(message);
    if (!this.server.settle(message)) this.#acted(message, threadId);
  }

  #acted(message: Fields, threadId: string | null): void {
    const { adapter, onAsked, onResolved, isShared, context } = this.#options;
    const params = fieldsOf(message.params);
    const request = requestOf(message);
    if (request !== null) {
      const asked = adapter.asked(request.id);
      if (asked !== null) onAsked(asked, this.server);
      else if (!isShared) this.server.refuse(request.id, `Interlude does not answer ${request.method}`);
      return;
    }
    const method = String(message.method);
    const { requestId } = params;
    if (method === 'serverRequest/resolved' && (typeof requestId === 'string' || typeof requestId === 'number')) {
      onResolved(requestId);
    }
    if (isShared && (method === 'thread/started' || method === 'thread/status/changed')) {
      const id = threadId ?? textOf(fieldsOf(params.thread).id);
      if (id !== null && !adapter.isIgnored(id)) {
        if (this.#early === null) void this.follow(id);
        else this.#early.add(id);
      }
    }
    const text = textOf(params.message) ?? textOf(params.summary);
    if (threadId !== null || text === null || !LOGGED.has(method) || this.#logged.has(text)) return;
    remember(this.#logged, text, true, 100);
    context.log(method === 'error' ? 'error' : 'warn', `Codex: ${text}`);
  }

  /** Messages of ours that stand in a thread, now or by its history. */
  #noteTaken(message: Fields): void {
    const items = [
      fieldsOf(message.params).item,
      ...listOf(fieldsOf(message.result).data).map((entry) => fieldsOf(entry).item),
    ];
    for (const item of items) {
      const clientId = textOf(fieldsOf(item).clientId);
      if (clientId !== null) remember(this.#options.taken, clientId, true, MAX_TAKEN);
    }
  }
}

function beginningOf(message: unknown): string {
  return (JSON.stringify(withinReason(message)) ?? '').slice(0, 200);
}
