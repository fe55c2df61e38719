import { type Fields, fieldsOf, isObject, textOf } from '@interlude/protocol/fields';
import type { CodexLink } from './codex-link';

/** What became of a request: what the server answered, or why it did not. */
export type Answered = { result: Fields } | { error: string; code: number | null; isGone: boolean };

/** A server that does not answer within this time will not. */
const ANSWER_WITHIN_MS = 30_000;
/** JSON-RPC: there is no such method, so this version has none. */
export const NO_SUCH_METHOD = -32_601;

/**
 * The requests of one connection to an app-server.
 *
 * Ordering: `passed` is told of every message, both ways, before anybody acts on it.
 * Failure: a request is answered by the server, or by the end of the connection, or by the clock; never not at all.
 */
export class AppServer {
  readonly #link: CodexLink;
  readonly #passed: (dir: 'in' | 'out', message: object) => void;
  readonly #waiting = new Map<number, { settle: (answered: Answered) => void; threadId: string | null }>();
  readonly #waitMs: number;
  #next = 1;
  #isGone = false;

  constructor(link: CodexLink, passed: (dir: 'in' | 'out', message: object) => void, waitMs = ANSWER_WITHIN_MS) {
    this.#link = link;
    this.#passed = passed;
    this.#waitMs = waitMs;
    void link.ended.then(() => this.#ended());
  }

  get link(): CodexLink {
    return this.#link;
  }

  /** The thread that the request with this id is about. */
  threadOf(id: unknown): string | null {
    return typeof id === 'number' ? (this.#waiting.get(id)?.threadId ?? null) : null;
  }

  async call(method: string, params: { threadId?: string; [name: string]: unknown }): Promise<Answered> {
    if (this.#isGone) return GONE;
    const id = this.#next++;
    const answered = new Promise<Answered>((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        resolve({ error: `Codex did not answer within ${this.#waitMs / 1_000} s`, code: null, isGone: false });
      }, this.#waitMs);
      const settle = (answer: Answered) => {
        clearTimeout(timer);
        resolve(answer);
      };
      this.#waiting.set(id, { settle, threadId: params.threadId ?? null });
    });
    this.#send({ id, method, params });
    return await answered;
  }

  notify(method: string): void {
    this.#send({ method });
  }

  /** Answers a request of the server. @returns false if the connection is gone, and nothing was told */
  answer(id: string | number, result: object): boolean {
    return this.#send({ id, result });
  }

  refuse(id: string | number, message: string): void {
    this.#send({ id, error: { code: NO_SUCH_METHOD, message } });
  }

  /** @returns whether it was the answer to a request of this runner */
  settle(message: Fields): boolean {
    if (typeof message.method === 'string' || typeof message.id !== 'number') return false;
    const settle = this.#waiting.get(message.id)?.settle;
    this.#waiting.delete(message.id);
    if (message.error === undefined) settle?.({ result: fieldsOf(message.result) });
    else {
      const { message: text, code } = fieldsOf(message.error);
      settle?.({
        error: textOf(text) ?? 'no reason given',
        code: typeof code === 'number' ? code : null,
        isGone: false,
      });
    }
    return true;
  }

  #send(message: object): boolean {
    if (this.#isGone) return false;
    this.#passed('out', message);
    this.#link.send(message);
    return true;
  }

  #ended(): void {
    this.#isGone = true;
    for (const { settle } of this.#waiting.values()) settle(GONE);
    this.#waiting.clear();
  }
}

const GONE: Answered = { error: 'the connection to Codex broke', code: null, isGone: true };

/** The request of the server that a message is: its id, what it asks for. */
export function requestIn(message: unknown): { id: string | number; method: string } | null {
  if (!isObject(message) || typeof message.method !== 'string') return null;
  const { id, method } = message;
  return typeof id === 'string' || typeof id === 'number' ? { id, method } : null;
}
