import { type Fields, fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { type CodexAdapter, codexVersion } from '../../adapters/codex/codex-adapter';
import type { CodexRequest, QuestionField } from '../../adapters/codex/requests';
import { setBounded } from '../../adapters/wire';
import { boundFrame } from '../../adapters/writer/size-limits';
import { RUNNER_VERSION } from '../../host/own-program.mjs';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOutcome } from '../../host/seen-commands';
import type { CommandOf, SourceContext } from '../../host/source';
import { outcomeOf } from '../../host/source-commands';
import type { WireFeed } from '../../host/wire-feed';
import { AppServer, type RpcResult, requestOf, type Transport, type TransportListener } from './app-server';
import type { ThreadStore } from './thread-store';

export interface CodexConnectionOptions {
  open: (listener: TransportListener) => Transport;
  adapter: CodexAdapter;
  feed: WireFeed;
  memory: ThreadStore;
  context: SourceContext;
  /**
   * True if other clients are connected. Their threads are followed, and requests that are not ours are left to them.
   */
  isShared: boolean;
  /** Our messages that Codex has, by `clientUserMessageId`. */
  receivedMessages: Map<string, true>;
  onThread(threadId: string, thread: Fields): Promise<void> | void;
  /** Called once the history of the thread is emitted. */
  onFollowed(threadId: string): void;
  onRequest(request: CodexRequest, server: AppServer): void;
  onResolved(rpcId: string | number): void;
  now: () => number;
  answerWithinMs?: number | undefined;
}

/** Messages of a thread queued until its history is read. */
const MAX_QUEUED = 50_000;
const MAX_KNOWN_MESSAGES = 4_000;
const PAGE = 200;
/** Page limit, in case a server never ends a list. */
const MAX_PAGES = 10_000;
/** Notifications without a thread that are logged. */
const LOGGED = new Set(['warning', 'configWarning', 'deprecationNotice', 'error', 'windows/worldWritableWarning']);

/**
 * One connection to an app-server and the threads followed through it.
 *
 * Ordering: messages of a thread wait until its history is emitted.
 * Failure: unreadable parts are logged and skipped. A thread that can't be followed is retried at its next activity.
 */
export class CodexConnection {
  readonly server: AppServer;
  readonly #options: CodexConnectionOptions;
  readonly #queued = new Map<string, Fields[]>();
  readonly #followed = new Set<string>();
  readonly #following = new Set<string>();
  /** Threads active before `followAll`; null afterwards. */
  #early: Set<string> | null = new Set();
  readonly #logged = new Map<string, true>();

  constructor(options: CodexConnectionOptions) {
    this.#options = options;
    const { context } = options;
    const link = options.open({
      onMessage: (message) => this.#received(message),
      onTrouble: (message) => context.log('warn', message),
      onStderr: (text) => context.log('debug', `codex: ${text.trim()}`),
    });
    this.server = new AppServer(
      link,
      (dir, message) => void options.feed.pass({ dir, msg: message }, [], undefined),
      options.answerWithinMs,
    );
  }

  /** @returns name and version of the server, or the problem */
  async greet(): Promise<{ provider: string | null } | { problem: string; isGone: boolean }> {
    const answered = await this.server.call('initialize', {
      clientInfo: { name: 'interlude', title: 'Interlude', version: RUNNER_VERSION },
      capabilities: { experimentalApi: true },
    });
    if ('error' in answered) return { problem: answered.error, isGone: answered.isGone };
    this.server.notify('initialized');
    return { provider: codexVersion(answered.result.userAgent) };
  }

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

  /** @returns the new thread, or the problem */
  async begin(params: object): Promise<{ threadId: string } | { problem: string }> {
    const answered = await this.server.call('thread/start', { ...params });
    if ('error' in answered) return { problem: answered.error };
    const thread = fieldsOf(answered.result.thread);
    const threadId = textOf(thread.id);
    if (threadId === null) return { problem: 'Codex started a thread without an id' };
    this.#followed.add(threadId);
    await this.#options.onThread(threadId, { ...thread, model: answered.result.model ?? thread.model });
    this.#options.onFollowed(threadId);
    return { threadId };
  }

  /** Follows these threads, and from now on every active one. */
  async followAll(threadIds: readonly string[]): Promise<void> {
    const all = new Set([...threadIds, ...(this.#early ?? [])]);
    this.#early = null;
    for (const threadId of all) if (!this.#options.adapter.isIgnored(threadId)) await this.follow(threadId);
  }

  /**
   * Subscribes to a thread and emits what is new.
   * @returns the problem, or null
   */
  async follow(threadId: string, params: object = {}): Promise<string | null> {
    if (this.#followed.has(threadId) || this.#following.has(threadId)) return null;
    this.#following.add(threadId);
    this.#queued.set(threadId, []);
    try {
      const answered = await this.server.call('thread/resume', { threadId, excludeTurns: true, ...params });
      if ('error' in answered) return answered.error;
      const thread = fieldsOf(answered.result.thread);
      if (thread.ephemeral === true) return 'it is internal to Codex';
      this.#followed.add(threadId);
      await this.#options.onThread(threadId, { ...thread, model: answered.result.model ?? thread.model });
      await this.#catchUp(threadId);
      return null;
    } finally {
      this.#following.delete(threadId);
      const queued = this.#queued.get(threadId) ?? [];
      this.#queued.delete(threadId);
      for (const message of queued) this.#pass(message, threadId);
      if (this.#followed.has(threadId)) this.#options.onFollowed(threadId);
    }
  }

  /** True if Codex has this message of ours, possibly queued. */
  async hasMessage(threadId: string, clientId: string): Promise<boolean> {
    if (this.#options.receivedMessages.has(clientId)) return true;
    const answered = await this.server.call('thread/queue/list', { threadId });
    if ('error' in answered) return false;
    return listOf(answered.result.data).some((queued) => fieldsOf(queued).clientUserMessageId === clientId);
  }

  async #catchUp(threadId: string): Promise<void> {
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const from = cursor === null ? {} : { cursor };
      const answered: RpcResult = await this.server.call('thread/timeline/list', { threadId, limit: PAGE, ...from });
      if ('error' in answered) {
        this.#options.context.log('warn', `could not read the history of thread ${threadId}: ${answered.error}`);
        break;
      }
      cursor = textOf(answered.result.nextCursor);
      if (cursor === null) break;
    }
    await this.server.call('thread/backgroundTerminals/list', { threadId });
  }

  #received(message: unknown): void {
    if (!isObject(message)) {
      this.#options.context.log('warn', `Codex sent an invalid message: ${beginningOf(message)}`);
      return;
    }
    const requestThread = this.server?.threadOf(message.id) ?? null;
    const isResponse = typeof message.method !== 'string';
    const threadId = isResponse ? requestThread : textOf(fieldsOf(message.params).threadId);
    const queued = threadId === null || isResponse ? undefined : this.#queued.get(threadId);
    if (queued !== undefined && queued.length < MAX_QUEUED) queued.push(message);
    else this.#pass(message, threadId);
  }

  #pass(message: Fields, threadId: string | null): void {
    const { adapter, feed, memory, now } = this.#options;
    const cursors = () => (threadId === null ? [] : memory.positionCursor(adapter, threadId, now()));
    const session = () => (threadId === null ? undefined : (adapter.sessionOf(threadId) ?? undefined));
    void feed.pass({ dir: 'in', msg: message }, cursors, session);
    this.#noteReceived(message);
    if (!this.server.settle(message)) this.#act(message, threadId);
  }

  #act(message: Fields, threadId: string | null): void {
    const { adapter, onRequest, onResolved, isShared, context } = this.#options;
    const params = fieldsOf(message.params);
    const request = requestOf(message);
    if (request !== null) {
      const open = adapter.openRequest(request.id);
      if (open !== null) onRequest(open, this.server);
      else if (!isShared) this.server.refuse(request.id, `Interlude does not support ${request.method}`);
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
    setBounded(this.#logged, text, true, 100);
    context.log(method === 'error' ? 'error' : 'warn', `Codex: ${text}`);
  }

  /** Notes our messages that appear in a thread or its history. */
  #noteReceived(message: Fields): void {
    const items = [
      fieldsOf(message.params).item,
      ...listOf(fieldsOf(message.result).data).map((entry) => fieldsOf(entry).item),
    ];
    for (const item of items) {
      const clientId = textOf(fieldsOf(item).clientId);
      if (clientId !== null) setBounded(this.#options.receivedMessages, clientId, true, MAX_KNOWN_MESSAGES);
    }
  }
}

function beginningOf(message: unknown): string {
  return (JSON.stringify(boundFrame(message)) ?? '').slice(0, 200);
}

const MAX_HELD = 1_000;

/**
 * Requests of an app-server that wait for a person. The first client to answer wins; the server notifies the others by
 * its own request id.
 */
export class CodexRequests {
  readonly #requests = new PendingRequests();
  readonly #byRpcId = new Map<string | number, { sessionId: string; requestId: string }>();

  hold(sessionId: string, request: CodexRequest, server: AppServer): void {
    const { rpcId, value } = request;
    const { request_id: requestId } = value;
    // An answer to an earlier request with this id must not reach the new one.
    this.release(rpcId);
    setBounded(this.#byRpcId, rpcId, { sessionId, requestId }, MAX_HELD);
    this.#requests.open(sessionId, value, (answer) => {
      const outcome = answerResult(request, answer);
      if ('refusal' in outcome) return outcome.refusal;
      return server.respond(rpcId, outcome.result) ? null : 'the connection to Codex broke';
    });
  }

  release(rpcId: string | number): void {
    const held = this.#byRpcId.get(rpcId);
    this.#byRpcId.delete(rpcId);
    if (held !== undefined) this.#requests.release(held.sessionId, held.requestId);
  }

  /** Forgets all requests, because the connection is gone. The next connection repeats them. */
  clear(): void {
    this.#requests.clear();
    this.#byRpcId.clear();
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return outcomeOf(await this.#requests.answer(command));
  }
}

/** @returns `result` for the app-server, or the problem */
function answerResult(request: CodexRequest, answer: RequestAnswer): { result: object } | { refusal: string } {
  if (answer.kind === 'question') return questionResult(request, answer.answers);
  if (request.value.kind === 'question') {
    return { result: request.isForm ? { action: 'decline', content: null, _meta: null } : { answers: {} } };
  }
  const found =
    answer.kind === 'option'
      ? request.decisions.find(({ option }) => option.id === answer.optionId)
      : request.decisions.find(({ option }) => (option.kind === 'allow') === answer.isAllowed);
  return found === undefined ? { refusal: 'Codex offers no such answer; choose another' } : { result: found.result };
}

function questionResult(
  { fields, isForm }: CodexRequest,
  answers: Record<string, string | string[]>,
): { result: object } | { refusal: string } {
  const answered = fields.flatMap((field) => {
    const value = answers[field.question] ?? answers[field.header] ?? answers[field.id];
    return value === undefined ? [] : [{ field, texts: [value].flat() }];
  });
  if (answered.length === 0) return { refusal: 'no question was answered; answer at least one' };
  if (!isForm) {
    return {
      result: { answers: Object.fromEntries(answered.map(({ field, texts }) => [field.id, { answers: texts }])) },
    };
  }
  const content = Object.fromEntries(answered.map(({ field, texts }) => [field.id, typedValue(field, texts)]));
  return { result: { action: 'accept', content, _meta: null } };
}

/** Converts an answer to the type of its form field. If that fails, the text stays, and the MCP server rejects it. */
function typedValue({ type }: QuestionField, texts: string[]): unknown {
  const text = texts.join(', ');
  if (type === 'texts') return texts;
  if (type === 'boolean') return /^(yes|true)$/i.test(text.trim());
  const value = Number(text);
  return type === 'number' && text.trim() !== '' && Number.isFinite(value) ? value : text;
}
