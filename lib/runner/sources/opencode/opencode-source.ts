import type { RequestOpenedValue } from '@interlude/protocol/ag-ui';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { fieldsOf, listOf } from '@interlude/protocol/fields';
import { messageIdIn } from '../../adapters/opencode/native-event';
import { OpencodeAdapter } from '../../adapters/opencode/opencode-adapter';
import type { WireFrame } from '../../adapters/wire';
import type { AttachmentFile } from '../../host/attachment-store';
import { InFlightMessages, inFlightMessage } from '../../host/message-delivery';
import { type AnswerCommand, PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOutcome } from '../../host/seen-commands';
import { connectionMessage, isLoopback } from '../../host/server-request';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed, messageText, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { WireFeed } from '../../host/wire-feed';
import { EventFollower } from './event-follower';
import { SessionStore } from './followed-sessions';
import {
  answerRequest,
  errorText,
  OpencodeServer,
  promptParts,
  remoteFileRefusal,
  type ServerAddress,
} from './opencode-server';

export interface OpencodeSourceOptions {
  address: ServerAddress;
  shownUrl: string;
  context: SourceContext;
  newRunId: () => string;
  directory?: string | undefined;
  /** Only this session, by its dashboard or OpenCode id. */
  session?: string | undefined;
  /** Sent with the first message of the named session, if the session is new. */
  workspaceNote?: string | null;
  record?: ((frame: WireFrame) => void) | undefined;
  now?: () => number;
}

/** Time for which a command waits for a broken connection. */
const CONNECTED_WITHIN_MS = 45_000;
/** Newest messages that are searched for a message from the dashboard. */
const MAX_SEARCHED = 200;
const UNKNOWN_SESSION = 'this runner does not follow this session';

/**
 * Runs the sessions of an OpenCode server next to its terminals.
 *
 * Ordering: one stream for all sessions. A message is delivered only once everything before it is read.
 * Failure: the server belongs to the operator. It continues when the runner ends, and the next runner resumes from the
 * stored position.
 */
export class OpencodeSource implements Source {
  readonly refusals = {
    'session.end': 'the OpenCode server is not managed by the runner and keeps its sessions',
    'task.wake': 'OpenCode notifies its agent of ended subagents by itself',
    'wake-rule.set': 'OpenCode notifies its agent of ended subagents by itself',
  };
  readonly unknownSessionRefusal = UNKNOWN_SESSION;
  readonly #context: SourceContext;
  readonly #adapter: OpencodeAdapter;
  readonly #follower: EventFollower;
  readonly #feed: WireFeed;
  readonly #requests = new PendingRequests();
  readonly #inFlight = new Map<string, InFlightMessages>();
  readonly #ending = new AbortController();
  readonly #session: string | null;
  /** True if the server runs on this machine and can read local files. */
  readonly #isLocal: boolean;
  /** Null once the session has messages. */
  #workspaceNote: string | null;
  #life: Promise<void> = Promise.resolve();

  static async open(options: OpencodeSourceOptions): Promise<OpencodeSource> {
    return new OpencodeSource(options, await SessionStore.restore(options.context));
  }

  private constructor(options: OpencodeSourceOptions, memory: SessionStore) {
    const { address, shownUrl, context, newRunId, directory, session, record, now = Date.now } = options;
    const { signal } = this.#ending;
    this.#context = context;
    this.#session = session ?? null;
    this.#isLocal = isLoopback(address.url);
    this.#workspaceNote = session === undefined ? null : (options.workspaceNote ?? null);
    this.#adapter = new OpencodeAdapter({ newRunId, sessionOf: (root) => memory.rootSessions.get(root) ?? root });
    this.#feed = new WireFeed({
      ...{ adapter: this.#adapter, context: context, record, now },
      onEmitted: (events) => this.#requests.observe(events, (...answer) => this.#giveAnswer(...answer)),
      onAnswered: (sessionId, messageIds) => this.#inFlight.get(sessionId)?.remove(messageIds),
    });
    this.#follower = new EventFollower({
      ...{ server: new OpencodeServer(address, signal), adapter: this.#adapter, feed: this.#feed, memory, context },
      ...{ shownUrl, directory: directory ?? null, session: session ?? null, signal, now },
    });
  }

  get sessions(): SessionFacts[] {
    const { version, trouble, isConnected, sessions } = this.#follower;
    const provider = version === null ? null : `OpenCode ${version}`;
    // The state of the process is unknown while disconnected.
    const process = isConnected ? { process: { state: 'running', pid: null, exitCode: null } as const } : {};
    return [...sessions.sessionIds].map(([root, sessionId]) => {
      const cwd = sessions.directoryOf(root);
      return {
        sessionId,
        ...(cwd === null ? {} : { cwd }),
        provider,
        pendingMessages: this.#inFlight.get(sessionId)?.all.length ?? 0,
        attachments: ATTACHMENT_KINDS,
        ...(trouble === null ? {} : { trouble }),
        ...process,
      };
    });
  }

  async start(): Promise<void> {
    for (const sessionId of this.#follower.sessions.sessionIds.values()) await this.#messagesOf(sessionId);
    this.#life = this.#follower.run();
  }

  reach(): Promise<string | null> {
    return this.#follower.reach();
  }

  lost(reason: string): Promise<void> {
    return this.#follower.lost(reason);
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#feed.close();
    await this.#life;
  }

  async deliver(
    { sessionId, body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    const root = await this.#connected(sessionId);
    if (typeof root !== 'string') return root;
    const { messageId } = body;
    const text = messageText(body);
    const inFlight = await this.#messagesOf(sessionId ?? '');
    if (again && (await this.#has(root, messageId))) return { state: 'delivered' };
    const unreachable = this.#isLocal ? null : remoteFileRefusal(files ?? []);
    if (unreachable !== null) return failed(unreachable);
    const message = inFlightMessage(messageId, text, files);
    if (!inFlight.has(messageId)) await inFlight.put(message);
    const path = `/session/${encodeURIComponent(root)}/prompt_async`;
    const note = sessionId === this.#session ? await this.#noteFor(root) : null;
    const before = note === null ? [] : [{ type: 'text', text: note, synthetic: true }];
    const refusal = await this.#post(root, path, { parts: [...before, ...promptParts(message)] });
    if (refusal === null || (await this.#has(root, messageId).catch(() => false))) return { state: 'delivered' };
    inFlight.remove([messageId]);
    return failed(refusal);
  }

  async interrupt({ sessionId, body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const root = await this.#connected(sessionId);
    if (typeof root !== 'string') return root;
    const running = this.#context.openWork(sessionId ?? '').turn?.runId ?? null;
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    return outcomeOf(await this.#post(root, `/session/${encodeURIComponent(root)}/abort`));
  }

  async stop({ sessionId, body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const root = await this.#connected(sessionId);
    if (typeof root !== 'string') return root;
    const { taskId } = body;
    if (!this.#context.openWork(sessionId ?? '').tasks.some(({ id }) => id === taskId)) {
      return failed('this task is no longer running');
    }
    return outcomeOf(await this.#post(root, `/session/${encodeURIComponent(taskId)}/abort`));
  }

  async answer(command: AnswerCommand): Promise<CommandOutcome> {
    const root = await this.#connected(command.sessionId);
    if (typeof root !== 'string') return root;
    return outcomeOf(await this.#requests.answer(command));
  }

  /** @returns the OpenCode session once caught up, or the failure */
  async #connected(sessionId: string | null): Promise<string | CommandOutcome> {
    const isReady = await this.#follower.isReady(CONNECTED_WITHIN_MS);
    const root = this.#follower.sessions.rootOf(sessionId ?? '');
    if (root === null) return failed(UNKNOWN_SESSION);
    return isReady ? root : failed(this.#follower.trouble ?? 'OpenCode does not respond');
  }

  /** @returns the problem, or null */
  async #post(root: string, path: string, body?: object): Promise<string | null> {
    try {
      const answer = await this.#follower.post(path, root, body);
      if (answer.status === 404) return 'OpenCode no longer has this session or request';
      return answer.status < 300 ? null : errorText(answer);
    } catch (error) {
      return `OpenCode can't be reached: ${connectionMessage(error)}`;
    }
  }

  /** Note for the first message of a session. */
  async #noteFor(root: string): Promise<string | null> {
    if (this.#workspaceNote === null) return null;
    const newest = await this.#follower.newestMessages(root, 1).catch(() => null);
    if (newest !== null && newest.length > 0) this.#workspaceNote = null;
    return newest === null ? null : this.#workspaceNote;
  }

  async #has(root: string, messageId: string): Promise<boolean> {
    if (this.#adapter.hasMessage(root, messageId)) return true;
    const newest = await this.#follower.newestMessages(root, MAX_SEARCHED);
    return newest.some((message) =>
      listOf(fieldsOf(message).parts).some((part) => messageIdIn(fieldsOf(part)) === messageId),
    );
  }

  async #messagesOf(sessionId: string): Promise<InFlightMessages> {
    const known = this.#inFlight.get(sessionId);
    if (known !== undefined) return known;
    const restored = await InFlightMessages.restore(this.#context, sessionId);
    const messages = this.#inFlight.get(sessionId) ?? restored;
    this.#inFlight.set(sessionId, messages);
    return messages;
  }

  async #giveAnswer(answer: RequestAnswer, value: RequestOpenedValue, sessionId: string): Promise<string | null> {
    const request = answerRequest(value.request_id, value.input, answer);
    if (typeof request === 'string') return request;
    const root = this.#follower.sessions.rootOf(sessionId);
    return root === null ? UNKNOWN_SESSION : await this.#post(root, request.path, request.body);
  }
}
