import { fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import { idOf } from './native-event';

/** A session of OpenCode. Those with a parent are its subagents. */
export interface NativeSession {
  id: string;
  parentId: string | null;
  directory: string | null;
  title: string | null;
  /** The agent that works in it: `build`, `general`. */
  agent: string | null;
  /** Epoch milliseconds, by the server's clock; 0: not known. */
  createdAt: number;
  updatedAt: number;
}

/** Most sessions that are known; a server may have the sessions of years. */
const MAX_SESSIONS = 20_000;
/** Subagents of subagents; a longer line of parents is a circle. */
const MAX_DEPTH = 32;

/** Which sessions there are, and whose subagents they are. */
export class SessionTree {
  readonly #sessions = new Map<string, NativeSession>();

  /** @param info as events and routes tell a session */
  learn(info: unknown): NativeSession | null {
    const fields = fieldsOf(info);
    const id = idOf(fields.id);
    if (id === null) return null;
    const known = this.#sessions.get(id);
    const { created, updated } = fieldsOf(fields.time);
    const session: NativeSession = {
      id,
      parentId: idOf(fields.parentID) ?? known?.parentId ?? null,
      directory: textOf(fields.directory) ?? known?.directory ?? null,
      title: textOf(fields.title) ?? known?.title ?? null,
      agent: textOf(fields.agent) ?? known?.agent ?? null,
      createdAt: numberOf(created) ?? known?.createdAt ?? 0,
      updatedAt: numberOf(updated) ?? numberOf(created) ?? known?.updatedAt ?? 0,
    };
    remember(this.#sessions, id, session, MAX_SESSIONS);
    return session;
  }

  get(id: string): NativeSession | undefined {
    return this.#sessions.get(id);
  }

  get all(): Iterable<NativeSession> {
    return this.#sessions.values();
  }

  forget(id: string): void {
    this.#sessions.delete(id);
  }

  /** The session that a person talks to; of one that is not known, itself. */
  rootOf(id: string): string {
    let root = id;
    for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
      const parent = this.#sessions.get(root)?.parentId ?? null;
      if (parent === null) break;
      root = parent;
    }
    return root;
  }

  /** Whether the line of its parents is known to the end. */
  isKnown(id: string): boolean {
    return this.#sessions.has(this.rootOf(id));
  }
}
