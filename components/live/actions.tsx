'use client';

import type { CommandResponse } from '@interlude/protocol/commands';
import { createContext, type ReactNode, useContext, useSyncExternalStore } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { IdempotentPost } from './idempotent-post';
import { Store } from './store';

/** `accepted`: the server has accepted the request, and the agent has not acted on it as far as known. */
export type ActionState =
  | { kind: 'sending' }
  | { kind: 'accepted'; commandId: string }
  | { kind: 'failed'; reason: string };

/**
 * Requests sent to the agent from this page, by subject: a task, a request, the turn. Outlives the cards, which unmount
 * while the reader scrolls.
 */
export class ActionStore extends Store {
  readonly sessionId: string;
  readonly #states = new Map<string, ActionState>();
  readonly #posts = new Map<string, IdempotentPost>();
  readonly #bodies = new Map<string, object>();
  #version = 0;
  readonly #onFailure: (key: string, reason: string) => void;

  constructor(sessionId: string, onFailure: (key: string, reason: string) => void) {
    super();
    this.sessionId = sessionId;
    this.#onFailure = onFailure;
  }

  get version(): number {
    return this.#version;
  }

  get(key: string): ActionState | null {
    return this.#states.get(key) ?? null;
  }

  /** The body that was sent last for a subject. */
  sent(key: string): object | undefined {
    return this.#bodies.get(key);
  }

  /** Keys and commands of requests that the agent has not acted on. */
  accepted(): { key: string; commandId: string }[] {
    return [...this.#states].flatMap(([key, state]) =>
      state.kind === 'accepted' ? [{ key, commandId: state.commandId }] : [],
    );
  }

  /** @param path below the session's URL */
  async request(key: string, path: string, body: object): Promise<void> {
    if (this.get(key)?.kind === 'sending') return;
    const post = this.#posts.get(key) ?? new IdempotentPost();
    this.#posts.set(key, post);
    this.#bodies.set(key, body);
    this.#set(key, { kind: 'sending' });
    try {
      const url = `/sessions/${encodeURIComponent(this.sessionId)}${path}`;
      const { commandId } = await post.post<CommandResponse>(url, body);
      this.#set(key, { kind: 'accepted', commandId });
    } catch (error) {
      this.fail(key, (error as Error).message);
    }
  }

  fail(key: string, reason: string): void {
    this.#set(key, { kind: 'failed', reason });
    this.#onFailure(key, reason);
  }

  clear(key: string): void {
    if (this.#states.delete(key)) this.#notify();
  }

  #set(key: string, state: ActionState): void {
    this.#states.set(key, state);
    this.#notify();
  }

  #notify(): void {
    this.#version += 1;
    this.changed();
  }
}

/** Null if this page can't send requests: no buttons are shown. */
const ActionsContext = createContext<ActionStore | null>(null);

export function ActionsProvider({ store, children }: { store: ActionStore; children: ReactNode }) {
  return <ActionsContext value={store}>{children}</ActionsContext>;
}

export function useActions(): ActionStore | null {
  const store = useContext(ActionsContext);
  return useMayAct() ? store : null;
}

const never = () => () => {};

export function useActionState(key: string): ActionState | null {
  const store = useActions();
  return useSyncExternalStore(
    store?.subscribe ?? never,
    () => store?.get(key) ?? null,
    () => null,
  );
}
