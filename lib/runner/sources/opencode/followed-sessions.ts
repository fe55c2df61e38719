import { fieldsOf } from '@interlude/protocol/fields';
import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import { idOf, type NativeEvent } from '../../adapters/opencode/native-event';
import type { SessionTree } from '../../adapters/opencode/session-tree';
import type { SourceContext } from '../../host/source';
import type { Cursor } from '../../outbox/statements';

export interface FollowedSessionsOptions {
  tree: SessionTree;
  memory: SessionStore;
  context: SourceContext;
  /** Only sessions of this folder; null: of all. */
  directory: string | null;
  /** Only this session, by the dashboard's id; null: all. */
  session: string | null;
  now: () => number;
}

/** A session that was there before is told of when something happens in it, or if it is as young as this. */
const RECENT_MS = 24 * 60 * 60_000;
const MOST_RECENT = 50;
/** Of those that were told of before, the newest; an older one when something happens in it. */
const MOST_TOLD = 300;

/** Which root sessions of OpenCode are followed, and as which sessions of the dashboard. */
export class FollowedSessions {
  readonly #options: FollowedSessionsOptions;
  readonly #sessionIds = new Map<string, string>();

  constructor(options: FollowedSessionsOptions) {
    this.#options = options;
    const { memory, context, session } = options;
    for (const [root, sessionId] of memory.told) {
      const isOpen = !isNothing(context.openWork(sessionId));
      if (session === null ? isOpen : sessionId === session) this.#sessionIds.set(root, sessionId);
    }
  }

  /** By root session. */
  get sessionIds(): ReadonlyMap<string, string> {
    return this.#sessionIds;
  }

  has(root: string): boolean {
    return this.#sessionIds.has(root);
  }

  idOf(root: string): string {
    return this.#sessionIds.get(root) ?? this.#options.memory.told.get(root) ?? root;
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
    if (session !== null) return root === session || memory.told.get(root) === session;
    return directory === null || known.directory === directory;
  }

  async add(root: string): Promise<void> {
    const { tree, memory, context, now } = this.#options;
    if (this.#sessionIds.has(root)) return;
    const sessionId = this.idOf(root);
    this.#sessionIds.set(root, sessionId);
    const at = Math.min(tree.get(root)?.createdAt || now(), now());
    if (!memory.told.has(root)) await context.opened(sessionId, at, memory.tells(root, sessionId));
    context.changed();
  }

  /** Those that are told of though nothing happens in them now: those told of before, and the young ones. */
  toAdd(): string[] {
    const { tree, memory, session, now } = this.#options;
    const roots = [...tree.all]
      .filter(({ id, parentId }) => parentId === null && this.isWanted(id))
      .toSorted((a, b) => b.updatedAt - a.updatedAt);
    const told = roots.filter(({ id }) => session !== null || memory.told.has(id)).slice(0, MOST_TOLD);
    const young = roots.filter(({ updatedAt }) => now() - updatedAt < RECENT_MS).slice(0, MOST_RECENT);
    return [...new Set([...told, ...young].map(({ id }) => id))];
  }
}

/** What is stored with the events of OpenCode's sessions, so that the next process goes on behind them. */
const PLACE = 'opencode-place:';
const SAID = 'opencode-said:';
const TOLD = 'opencode-told:';
const BEGUN = 'opencode-begun:';

export class SessionStore {
  /** By session of OpenCode, the place in its history up to which everything is stored. */
  readonly places: Map<string, number>;
  /** By session of OpenCode, the part of which something was said before it was whole. */
  readonly said: Map<string, string>;
  /** By session of OpenCode, the newest message of which anything was told. Their ids rise. */
  readonly begun: Map<string, string>;
  /** Root sessions that were told of, with the dashboard's sessions. */
  readonly told: Map<string, string>;

  static async recall(context: Pick<SourceContext, 'cursors'>): Promise<SessionStore> {
    const read = async (prefix: string) =>
      new Map([...(await context.cursors(prefix))].map(([name, value]) => [name.slice(prefix.length), value]));
    const [places, said, begun, told] = [await read(PLACE), await read(SAID), await read(BEGUN), await read(TOLD)];
    return new SessionStore({
      places: new Map([...places].map(([id, place]) => [id, Number(place)])),
      ...{ said, begun, told },
    });
  }

  private constructor({ places, said, begun, told }: Pick<SessionStore, 'places' | 'said' | 'begun' | 'told'>) {
    this.places = places;
    this.said = said;
    this.begun = begun;
    this.told = told;
  }

  /** What of it is to be stored with what an event says. */
  of({ type, session, seq, data }: NativeEvent): Cursor[] {
    if (session === null) return [];
    const place = seq === null ? [] : this.#reached(session, seq);
    const messageId = type === 'message.updated' ? idOf(fieldsOf(data.info).id) : null;
    const partId = type === 'message.part.delta' ? idOf(data.partID) : null;
    return [
      ...place,
      ...(messageId === null ? [] : this.begins(session, messageId)),
      ...(partId === null ? [] : this.#says(session, partId)),
    ];
  }

  isTold({ session, seq }: NativeEvent): boolean {
    return session !== null && seq !== null && seq <= (this.places.get(session) ?? -1);
  }

  begins(session: string, messageId: string): Cursor[] {
    if (messageId <= (this.begun.get(session) ?? '')) return [];
    this.begun.set(session, messageId);
    return [{ name: BEGUN + session, value: messageId }];
  }

  #reached(session: string, place: number): Cursor[] {
    if (place <= (this.places.get(session) ?? -1)) return [];
    this.places.set(session, place);
    return [{ name: PLACE + session, value: `${place}` }];
  }

  #says(session: string, partId: string): Cursor[] {
    if (this.said.get(session) === partId) return [];
    this.said.set(session, partId);
    return [{ name: SAID + session, value: partId }];
  }

  tells(root: string, sessionId: string): Cursor[] {
    this.told.set(root, sessionId);
    return [{ name: TOLD + root, value: sessionId }];
  }

  /** The session of OpenCode that was made for one of the dashboard's. */
  rootFor(sessionId: string): string | null {
    for (const [root, told] of this.told) if (told === sessionId) return root;
    return null;
  }
}
