import { fieldsOf } from '@interlude/protocol/fields';
import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import { idOf, type NativeEvent } from '../../adapters/opencode/native-event';
import type { SessionTree } from '../../adapters/opencode/subagents';
import type { SourceContext } from '../../host/source';
import type { Cursor } from '../../outbox/statements';

export interface FollowedSessionsOptions {
  tree: SessionTree;
  memory: SessionStore;
  context: SourceContext;
  /** Only sessions of this folder; null for all. */
  directory: string | null;
  /** Only this session, by its dashboard id; null for all. */
  session: string | null;
  now: () => number;
}

/** Existing sessions appear if they were active within this time, else once something happens in them. */
const RECENT_MS = 24 * 60 * 60_000;
const MAX_RECENT = 50;
/** Known sessions restored at startup, newest first; others are restored once something happens in them. */
const MAX_KNOWN = 300;

/** Maps followed root sessions of OpenCode to sessions of the dashboard. */
export class FollowedSessions {
  readonly #options: FollowedSessionsOptions;
  readonly #sessionIds = new Map<string, string>();

  constructor(options: FollowedSessionsOptions) {
    this.#options = options;
    const { memory, context, session } = options;
    for (const [root, sessionId] of memory.rootSessions) {
      const isOpen = !isNothing(context.openWork(sessionId));
      if (session === null ? isOpen : sessionId === session) this.#sessionIds.set(root, sessionId);
    }
  }

  get sessionIds(): ReadonlyMap<string, string> {
    return this.#sessionIds;
  }

  has(root: string): boolean {
    return this.#sessionIds.has(root);
  }

  idOf(root: string): string {
    return this.#sessionIds.get(root) ?? this.#options.memory.rootSessions.get(root) ?? root;
  }

  rootOf(sessionId: string): string | null {
    for (const [root, carried] of this.#sessionIds) if (carried === sessionId) return root;
    return null;
  }

  directoryOf(root: string): string | null {
    return this.#options.tree.get(root)?.directory ?? this.#options.directory;
  }

  isWanted(root: string): boolean {
    const { tree, memory, directory, session } = this.#options;
    const known = tree.get(root);
    if (known === undefined) return false;
    if (session !== null) return root === session || memory.rootSessions.get(root) === session;
    return directory === null || known.directory === directory;
  }

  async add(root: string): Promise<void> {
    const { tree, memory, context, now } = this.#options;
    if (this.#sessionIds.has(root)) return;
    const sessionId = this.idOf(root);
    this.#sessionIds.set(root, sessionId);
    const at = Math.min(tree.get(root)?.createdAt || now(), now());
    if (!memory.rootSessions.has(root))
      await context.announceSession(sessionId, at, memory.noteSession(root, sessionId));
    context.changed();
  }

  /** Sessions to show at startup: known and recent ones. */
  initialRoots(): string[] {
    const { tree, memory, session, now } = this.#options;
    const roots = [...tree.all]
      .filter(({ id, parentId }) => parentId === null && this.isWanted(id))
      .toSorted((a, b) => b.updatedAt - a.updatedAt);
    const known = roots.filter(({ id }) => session !== null || memory.rootSessions.has(id)).slice(0, MAX_KNOWN);
    const recent = roots.filter(({ updatedAt }) => now() - updatedAt < RECENT_MS).slice(0, MAX_RECENT);
    return [...new Set([...known, ...recent].map(({ id }) => id))];
  }
}

/** Cursor prefixes. Outboxes store them, so they keep their old names. */
const POSITION = 'opencode-place:';
const OPEN_PART = 'opencode-said:';
const ROOT_SESSION = 'opencode-told:';
const NEWEST_MESSAGE = 'opencode-begun:';

export class SessionStore {
  /** History position up to which all events are stored, by OpenCode session. */
  readonly positions: Map<string, number>;
  /** Part that was partly emitted, by OpenCode session. */
  readonly openParts: Map<string, string>;
  /** Newest message with emitted content, by OpenCode session. Ids increase. */
  readonly newestMessages: Map<string, string>;
  /** Known root sessions and their dashboard sessions. */
  readonly rootSessions: Map<string, string>;

  static async restore(context: Pick<SourceContext, 'cursors'>): Promise<SessionStore> {
    const read = async (prefix: string) =>
      new Map([...(await context.cursors(prefix))].map(([name, value]) => [name.slice(prefix.length), value]));
    const positions = [...(await read(POSITION))].map(([id, position]) => [id, Number(position)] as const);
    return new SessionStore({
      positions: new Map(positions),
      openParts: await read(OPEN_PART),
      newestMessages: await read(NEWEST_MESSAGE),
      rootSessions: await read(ROOT_SESSION),
    });
  }

  private constructor({
    positions,
    openParts,
    newestMessages,
    rootSessions,
  }: Pick<SessionStore, 'positions' | 'openParts' | 'newestMessages' | 'rootSessions'>) {
    this.positions = positions;
    this.openParts = openParts;
    this.newestMessages = newestMessages;
    this.rootSessions = rootSessions;
  }

  /** Cursors to store with an event. */
  of({ type, session, seq, data }: NativeEvent): Cursor[] {
    if (session === null) return [];
    const position = seq === null ? [] : this.#advance(session, seq);
    const messageId = type === 'message.updated' ? idOf(fieldsOf(data.info).id) : null;
    const partId = type === 'message.part.delta' ? idOf(data.partID) : null;
    return [
      ...position,
      ...(messageId === null ? [] : this.noteMessage(session, messageId)),
      ...(partId === null ? [] : this.#notePart(session, partId)),
    ];
  }

  wasEmitted({ session, seq }: NativeEvent): boolean {
    return session !== null && seq !== null && seq <= (this.positions.get(session) ?? -1);
  }

  noteMessage(session: string, messageId: string): Cursor[] {
    if (messageId <= (this.newestMessages.get(session) ?? '')) return [];
    this.newestMessages.set(session, messageId);
    return [{ name: NEWEST_MESSAGE + session, value: messageId }];
  }

  #advance(session: string, position: number): Cursor[] {
    if (position <= (this.positions.get(session) ?? -1)) return [];
    this.positions.set(session, position);
    return [{ name: POSITION + session, value: `${position}` }];
  }

  #notePart(session: string, partId: string): Cursor[] {
    if (this.openParts.get(session) === partId) return [];
    this.openParts.set(session, partId);
    return [{ name: OPEN_PART + session, value: partId }];
  }

  noteSession(root: string, sessionId: string): Cursor[] {
    this.rootSessions.set(root, sessionId);
    return [{ name: ROOT_SESSION + root, value: sessionId }];
  }

  /** The OpenCode session created for a dashboard session. */
  rootFor(sessionId: string): string | null {
    for (const [root, known] of this.rootSessions) if (known === sessionId) return root;
    return null;
  }
}
