import { fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import type { EmittedEvent, WireAdapter, WireAdapterOptions, WireEnd, WireFrame } from '../wire';
import { setBounded } from '../wire';
import { boundFrame } from '../writer/size-limits';
import { Conversation, type EarlierState } from './conversation';
import {
  entryOf,
  eventOf,
  eventsOfMessage,
  idOf,
  isLasting,
  type NativeEvent,
  type NativeRequest,
  requestOf,
  timeOf,
} from './native-event';
import type { RequestKind } from './requests';
import { SessionTree } from './subagents';

/** Events remembered by id: duplicates across streams and history come close together. */
const MAX_SEEN = 20_000;
const MAX_CONVERSATIONS = 2_000;

/**
 * Translates OpenCode's HTTP interface. Frames are stream events and Interlude's requests with their responses; a
 * response belongs to the request before it.
 *
 * Each root session is a session of the dashboard; the sessions below it are its subagents.
 *
 * @see opencode-ai 1.18.33
 */
export class OpencodeAdapter implements WireAdapter {
  readonly dueAt = null;
  readonly tree = new SessionTree();
  readonly #options: WireAdapterOptions;
  readonly #conversations = new Map<string, Conversation>();
  readonly #seen = new Map<string, true>();
  /** Last read position of each native session. */
  readonly #positions = new Map<string, number>();
  #request: NativeRequest | null = null;
  /** True if the server repeats durable events with their position. */
  #hasPositions = false;

  constructor(options: WireAdapterOptions) {
    this.#options = options;
  }

  read({ dir, msg: raw }: WireFrame, now: number): EmittedEvent[] {
    const msg = boundFrame(raw, true);
    if (dir === 'out') this.#request = requestOf(msg);
    else if (numberOf(fieldsOf(msg).status) !== null && fieldsOf(msg).type === undefined)
      this.#answer(fieldsOf(msg), now);
    else this.#event(eventOf(msg), now, fieldsOf(fieldsOf(msg).payload).type === 'sync');
    return this.#take();
  }

  elapsed(): EmittedEvent[] {
    return [];
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    for (const conversation of this.#conversations.values()) {
      // Idle sessions stay as they are.
      if (end.goesOn !== undefined && !conversation.hasOpenWork) continue;
      conversation.writer.at(now);
      conversation.end(end);
    }
    return this.#take();
  }

  /**
   * Restores a session of an earlier process by reading its history again, without output.
   * @param frames the beginning of its history
   */
  restore(root: string, frames: readonly WireFrame[], before: EarlierState, now: number): void {
    for (const frame of frames) this.read(frame, now);
    this.#conversation(root).restore(before);
    this.#take();
  }

  knows(root: string): boolean {
    return this.#conversations.has(root);
  }

  /** True if the next frame repeats the event with its position; only the repeat counts. */
  isRepeatedLater(event: NativeEvent): boolean {
    return event.isWrapped && this.#hasPositions && isLasting(event);
  }

  /** Open run of a session. */
  runOf(root: string): string | null {
    return this.#conversations.get(root)?.writer.turn?.runId ?? null;
  }

  hasMessage(root: string, messageId: string): boolean {
    return this.#conversations.get(root)?.hasMessage(messageId) ?? false;
  }

  /** True if an idle status would end open work of the session. */
  hasOpenWork(root: string): boolean {
    return this.#conversations.get(root)?.hasOpenWork ?? false;
  }

  #event(event: NativeEvent | null, now: number, isPlaced: boolean): void {
    if (event === null) return;
    if (isPlaced) this.#hasPositions = true;
    if (!this.isRepeatedLater(event)) this.#apply(event, now);
  }

  #apply(event: NativeEvent, now: number): void {
    const { id, session, seq } = event;
    if (session === null || (id !== null && this.#seen.has(id))) return;
    if (id !== null) setBounded(this.#seen, id, true, MAX_SEEN);
    if (seq !== null) {
      if (seq <= (this.#positions.get(session) ?? -1)) return;
      setBounded(this.#positions, session, seq, MAX_SEEN);
    }
    if (event.type.startsWith('session.')) this.tree.update(event.data.info);
    const conversation = this.#conversation(this.tree.rootOf(session));
    conversation.writer.at(now);
    conversation.read(event, session);
  }

  #answer({ status, body }: Record<string, unknown>, now: number): void {
    const request = this.#request;
    this.#request = null;
    if (request === null || numberOf(status) === null || Number(status) >= 300) return;
    const { method, path, directory } = request;
    const [, name = '', id = '', verb = ''] = path.split('/');
    if (path === '/sync/history') this.#history(body, now);
    else if (path === '/session/status') this.#statuses(fieldsOf(body), directory, now);
    else if (path === '/permission' || path === '/question') this.#listed(name as RequestKind, body, directory, now);
    else if (name === 'permission' && verb === 'reply')
      this.#replied(id, textOf(fieldsOf(request.body).reply) ?? '', now);
    else if (name === 'question' && verb !== '') this.#replied(id, verb === 'reply' ? 'answers' : 'reject', now);
    else if (name === 'session' && verb === 'message') {
      for (const message of listOf(body)) for (const event of eventsOfMessage(message)) this.#past(event, now);
    } else if (name === 'session' || path === '/experimental/session') {
      if (method === 'GET' || id === '') for (const info of Array.isArray(body) ? body : [body]) this.tree.update(info);
    }
  }

  #history(body: unknown, now: number): void {
    if (!Array.isArray(body)) return;
    this.#hasPositions = true;
    for (const entry of body) {
      const event = entryOf(entry);
      if (event !== null) this.#past(event, now);
    }
  }

  /** Applies a past event with its own time. */
  #past(event: NativeEvent, now: number): void {
    this.#apply(event, Math.min(now, timeOf(event) ?? now));
  }

  /** Applies the status list of one directory: unlisted sessions are idle. */
  #statuses(statuses: Record<string, unknown>, directory: string | null, now: number): void {
    for (const conversation of this.#of(directory, now)) {
      const statusOf = (session: string) => fieldsOf(Object.hasOwn(statuses, session) ? statuses[session] : undefined);
      const isIdle = (session: string) => !['busy', 'retry'].includes(String(statusOf(session).type));
      for (const session of [conversation.root, ...conversation.writer.openTasks]) {
        conversation.status(statusOf(session), session);
      }
      conversation.processEnded(isIdle);
    }
  }

  #listed(kind: RequestKind, body: unknown, directory: string | null, now: number): void {
    for (const request of listOf(body)) {
      const session = idOf(fieldsOf(request).sessionID);
      if (session === null) continue;
      const conversation = this.#conversation(this.tree.rootOf(session));
      conversation.writer.at(now);
      conversation.ask(kind, fieldsOf(request));
    }
    for (const conversation of this.#of(directory, now)) conversation.requests.listed(kind, body);
  }

  /** Yields a directory's conversations; without a directory, none: the response may be about any. */
  *#of(directory: string | null, now: number): Iterable<Conversation> {
    if (directory === null) return;
    for (const conversation of this.#conversations.values()) {
      if (this.tree.get(conversation.root)?.directory !== directory) continue;
      conversation.writer.at(now);
      yield conversation;
    }
  }

  #replied(id: string, answer: string, now: number): void {
    for (const conversation of this.#conversations.values()) {
      conversation.writer.at(now);
      if (conversation.writer.requests.isOpen(id)) conversation.requests.answered(id, answer);
    }
  }

  #conversation(root: string): Conversation {
    const known = this.#conversations.get(root);
    if (known !== undefined) return known;
    const sessionId = this.#options.sessionOf(root);
    const conversation = new Conversation(root, this.tree, { ...this.#options, sessionId });
    setBounded(this.#conversations, root, conversation, MAX_CONVERSATIONS);
    return conversation;
  }

  #take(): EmittedEvent[] {
    return [...this.#conversations.values()].flatMap(({ writer }) => writer.drain());
  }
}
