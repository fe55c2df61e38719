import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import type { SessionTree } from '../../adapters/opencode/subagents';
import type { SourceSurroundings } from '../../host/source';
import type { OpencodeMemory } from './memory';

export interface CarriedOptions {
  tree: SessionTree;
  memory: OpencodeMemory;
  around: SourceSurroundings;
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
export class Carried {
  readonly #options: CarriedOptions;
  readonly #sessionIds = new Map<string, string>();

  constructor(options: CarriedOptions) {
    this.#options = options;
    const { memory, around, session } = options;
    for (const [root, sessionId] of memory.told) {
      const isOpen = !isNothing(around.openWork(sessionId));
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
    const { tree, memory, around, now } = this.#options;
    if (this.#sessionIds.has(root)) return;
    const sessionId = this.idOf(root);
    this.#sessionIds.set(root, sessionId);
    const at = Math.min(tree.get(root)?.createdAt || now(), now());
    if (!memory.told.has(root)) await around.opened(sessionId, at, memory.tells(root, sessionId));
    around.changed();
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
