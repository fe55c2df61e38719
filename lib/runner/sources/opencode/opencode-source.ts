import { CUSTOM, type RequestOpenedValue } from '@interlude/protocol/ag-ui';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { fieldsOf, listOf } from '@interlude/protocol/fields';
import { OpencodeAdapter } from '../../adapters/opencode/opencode-adapter';
import { messageIdIn } from '../../adapters/opencode/user-message';
import type { ToldEvent, WireFrame } from '../../adapters/wire';
import type { CommandOutcome } from '../../commands/seen-commands';
import type { AttachmentFile } from '../../host/attachment-store';
import { InFlightMessages, inFlightMessage } from '../../host/message-delivery';
import { PendingRequests } from '../../host/pending-requests';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed, messageText, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { connectionMessage } from '../../server-request';
import { isLoopback } from '../../wire/loopback';
import { WireFeed } from '../../wire/wire-feed';
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

/**
 * The sessions of an OpenCode server, beside the terminals that are attached to it.
 *
 * Ordering: one stream for all sessions; a message is handed over only once everything before it is read.
 * Failure: the server is not ours. It goes on when the runner ends, and the next one reads on where this one was.
 */
export interface OpencodeSourceOptions {
  address: ServerAddress;
  /** The address without a password. */
  shownUrl: string;
  context: SourceContext;
  newRunId: () => string;
  directory?: string | undefined;
  /** Only this session: the dashboard's id, or OpenCode's own. */
  session?: string | undefined;
  /** Said with the first message of the session that is named, if that is new. */
  workspaceNote?: string | null;
  record?: ((frame: WireFrame) => void) | undefined;
  now?: () => number;
}

/** How long a command waits for a connection that is broken. */
const CONNECTED_WITHIN_MS = 45_000;
/** The newest messages among which one of the dashboard's is looked for. */
const LOOKED_AT = 200;
const ELSEWHERE = 'this runner does not follow that session';

export class OpencodeSource implements Source {
  readonly refusals = {
    'session.end': 'OpenCode’s server is not the runner’s, and keeps its sessions',
    'task.wake': 'OpenCode tells its agent of ended subagents by itself',
    'wake-rule.set': 'OpenCode tells its agent of ended subagents by itself',
  };
  readonly elsewhere = ELSEWHERE;
  readonly #context: SourceContext;
  readonly #adapter: OpencodeAdapter;
  readonly #following: EventFollower;
  readonly #feed: WireFeed;
  readonly #held = new PendingRequests();
  readonly #inHand = new Map<string, InFlightMessages>();
  readonly #ending = new AbortController();
  readonly #session: string | null;
  /** Its server runs on this machine, and reads the same disk. */
  readonly #isHere: boolean;
  /** Null once the session is known to have begun. */
  #note: string | null;
  #life: Promise<void> = Promise.resolve();

  static async open(options: OpencodeSourceOptions): Promise<OpencodeSource> {
    return new OpencodeSource(options, await SessionStore.recall(options.context));
  }

  private constructor(options: OpencodeSourceOptions, memory: SessionStore) {
    const { address, shownUrl, context, newRunId, directory, session, record, now = Date.now } = options;
    const { signal } = this.#ending;
    this.#context = context;
    this.#session = session ?? null;
    this.#isHere = isLoopback(address.url);
    this.#note = session === undefined ? null : (options.workspaceNote ?? null);
    this.#adapter = new OpencodeAdapter({ newRunId, sessionOf: (root) => memory.told.get(root) ?? root });
    this.#feed = new WireFeed({
      ...{ adapter: this.#adapter, around: context, record, now },
      onTold: (events) => this.#told(events),
      onAnswered: (sessionId, messageIds) => this.#inHand.get(sessionId)?.remove(messageIds),
    });
    this.#following = new EventFollower({
      ...{ server: new OpencodeServer(address, signal), adapter: this.#adapter, feed: this.#feed, memory, context },
      ...{ shownUrl, directory: directory ?? null, session: session ?? null, signal, now },
    });
  }

  get sessions(): SessionFacts[] {
    const { version, trouble, isConnected, carried } = this.#following;
    const provider = version === null ? null : `OpenCode ${version}`;
    // While the connection is broken, nobody knows.
    const process = isConnected ? { process: { state: 'running', pid: null, exitCode: null } as const } : {};
    return [...carried.sessionIds].map(([root, sessionId]) => {
      const cwd = carried.directoryOf(root);
      return {
        sessionId,
        ...(cwd === null ? {} : { cwd }),
        provider,
        pendingMessages: this.#inHand.get(sessionId)?.all.length ?? 0,
        attachments: ATTACHMENT_KINDS,
        ...(trouble === null ? {} : { trouble }),
        ...process,
      };
    });
  }

  async start(): Promise<void> {
    for (const sessionId of this.#following.carried.sessionIds.values()) await this.#messagesOf(sessionId);
    this.#life = this.#following.run();
  }

  reach(): Promise<string | null> {
    return this.#following.reach();
  }

  lost(reason: string): Promise<void> {
    return this.#following.lost(reason);
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#feed.close();
    await this.#life;
  }

  async say(
    { sessionId, body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    const root = await this.#connected(sessionId);
    if (typeof root !== 'string') return root;
    const { messageId } = body;
    const text = messageText(body);
    const inHand = await this.#messagesOf(sessionId ?? '');
    if (again && (await this.#has(root, messageId))) return { state: 'delivered' };
    const unreachable = this.#isHere ? null : remoteFileRefusal(files ?? []);
    if (unreachable !== null) return failed(unreachable);
    const message = inFlightMessage(messageId, text, files);
    if (!inHand.has(messageId)) await inHand.put(message);
    const path = `/session/${encodeURIComponent(root)}/prompt_async`;
    const note = sessionId === this.#session ? await this.#noteFor(root) : null;
    const before = note === null ? [] : [{ type: 'text', text: note, synthetic: true }];
    const refusal = await this.#ask(root, path, { parts: [...before, ...promptParts(message)] });
    if (refusal === null || (await this.#has(root, messageId).catch(() => false))) return { state: 'delivered' };
    inHand.remove([messageId]);
    return failed(refusal);
  }

  async interrupt({ sessionId, body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const root = await this.#connected(sessionId);
    if (typeof root !== 'string') return root;
    const running = this.#context.openWork(sessionId ?? '').turn?.runId ?? null;
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    return outcomeOf(await this.#ask(root, `/session/${encodeURIComponent(root)}/abort`));
  }

  async stop({ sessionId, body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const root = await this.#connected(sessionId);
    if (typeof root !== 'string') return root;
    const { taskId } = body;
    if (!this.#context.openWork(sessionId ?? '').tasks.some(({ id }) => id === taskId)) {
      return failed('this task does not run any more');
    }
    return outcomeOf(await this.#ask(root, `/session/${encodeURIComponent(taskId)}/abort`));
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    const root = await this.#connected(command.sessionId);
    if (typeof root !== 'string') return root;
    return outcomeOf(await this.#held.answer(command));
  }

  /** @returns the session of OpenCode, once everything up to now is read; else why nothing can be done */
  async #connected(sessionId: string | null): Promise<string | CommandOutcome> {
    const isReady = await this.#following.isReady(CONNECTED_WITHIN_MS);
    const root = this.#following.carried.rootOf(sessionId ?? '');
    if (root === null) return failed(ELSEWHERE);
    return isReady ? root : failed(this.#following.trouble ?? 'OpenCode does not answer');
  }

  /** @returns why it came to nothing, or null */
  async #ask(root: string, path: string, body?: object): Promise<string | null> {
    try {
      const answer = await this.#following.ask(path, root, body);
      if (answer.status === 404) return 'OpenCode does not know of this any more';
      return answer.status < 300 ? null : errorText(answer);
    } catch (error) {
      return `OpenCode can't be reached: ${connectionMessage(error)}`;
    }
  }

  /** What a session without a message is told with its first one. */
  async #noteFor(root: string): Promise<string | null> {
    if (this.#note === null) return null;
    const newest = await this.#following.newestMessages(root, 1).catch(() => null);
    if (newest !== null && newest.length > 0) this.#note = null;
    return newest === null ? null : this.#note;
  }

  async #has(root: string, messageId: string): Promise<boolean> {
    if (this.#adapter.hasMessage(root, messageId)) return true;
    const newest = await this.#following.newestMessages(root, LOOKED_AT);
    return newest.some((message) =>
      listOf(fieldsOf(message).parts).some((part) => messageIdIn(fieldsOf(part)) === messageId),
    );
  }

  async #messagesOf(sessionId: string): Promise<InFlightMessages> {
    const known = this.#inHand.get(sessionId);
    if (known !== undefined) return known;
    const recalled = await InFlightMessages.recall(this.#context, sessionId);
    const messages = this.#inHand.get(sessionId) ?? recalled;
    this.#inHand.set(sessionId, messages);
    return messages;
  }

  #told(events: readonly ToldEvent[]): void {
    for (const { sessionId, event } of events) {
      if (event.type !== 'CUSTOM') continue;
      const value = fieldsOf(event.value);
      if (event.name === CUSTOM.requestOpened) this.#hold(sessionId, event.value as RequestOpenedValue);
      else if (event.name === CUSTOM.requestResolved) this.#held.release(sessionId, String(value.request_id));
    }
  }

  #hold(sessionId: string, value: RequestOpenedValue): void {
    const { request_id: requestId, kind, tool_name: tool = null, input, options } = value;
    this.#held.hold({
      ...{ sessionId, requestId, kind, tool, input },
      ...(options === undefined ? {} : { options }),
      give: async (answer) => {
        const request = answerRequest(requestId, input, answer);
        const root = this.#following.carried.rootOf(sessionId);
        if (typeof request === 'string' || root === null) return root === null ? ELSEWHERE : String(request);
        return await this.#ask(root, request.path, request.body);
      },
    });
  }
}
