import type { RequestOpenedValue, RequestOption } from '@interlude/protocol/ag-ui';
import { type PermissionAnswer, permissionResult } from '../../adapters/acp/content';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOf } from '../../host/source';
import type { AcpConnection } from './acp-connection';

/**
 * Permission requests of an ACP agent, each with a time limit.
 *
 * Failure: each is answered once: by a person, by an interrupt, or on timeout with the agent's own “reject once”.
 * Requests of an exited process can't be answered.
 * @see ACP v1, `session/request_permission`
 */
export class PermissionRequests {
  readonly #sessionId: string;
  readonly #answerWithinMs: number;
  readonly #requests = new PendingRequests();
  /** By JSON-RPC id: the connection to respond on and the timeout. */
  readonly #open = new Map<string, { connection: AcpConnection; id: unknown; timer: NodeJS.Timeout }>();

  constructor(sessionId: string, answerWithinMs: number) {
    this.#sessionId = sessionId;
    this.#answerWithinMs = answerWithinMs;
  }

  /** @param value the emitted request; null if it was not emitted and can't be answered */
  hold(connection: AcpConnection, id: unknown, value: RequestOpenedValue | null): void {
    if (this.#open.has(JSON.stringify(id))) return;
    if (value === null) {
      connection.respond(id, permissionResult({ kind: 'cancelled' }));
      return;
    }
    const { request_id: requestId, options } = value;
    const sessionId = this.#sessionId;
    const expire = () => {
      this.#requests.release(sessionId, requestId);
      this.#reply(id, { kind: 'expired' }, options);
    };
    this.#open.set(JSON.stringify(id), { connection, id, timer: setTimeout(expire, this.#answerWithinMs) });
    const give = (answer: RequestAnswer): string | null => {
      if (answer.kind === 'question' || (answer.kind === 'permission' && answer.isAllowed)) {
        return 'the agent can’t allow this';
      }
      const isGiven = this.#reply(id, answer.kind === 'option' ? answer : { kind: 'cancelled' });
      return isGiven ? null : 'the agent has exited';
    };
    this.#requests.open(sessionId, value, give);
  }

  /** @returns why the answer failed, or null */
  answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<string | null> {
    return this.#requests.answer(command);
  }

  /** Answers all requests of an interrupted turn as cancelled. @see ACP v1, Cancellation */
  cancelAll(): void {
    this.#requests.clear();
    for (const { id } of [...this.#open.values()]) this.#reply(id, { kind: 'cancelled' });
  }

  /** The asking process has exited. */
  clear(): void {
    this.#requests.clear();
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  #reply(id: unknown, answer: PermissionAnswer, options: readonly RequestOption[] = []): boolean {
    const key = JSON.stringify(id);
    const open = this.#open.get(key);
    if (open === undefined) return false;
    clearTimeout(open.timer);
    this.#open.delete(key);
    return open.connection.respond(id, permissionResult(answer, options));
  }
}
