import type { AskedRequest } from '../../adapters/codex/requests';
import { remember } from '../../adapters/remember';
import { HeldRequests } from '../../host/held-requests';
import type { CommandOutcome } from '../../host/seen-commands';
import type { CommandOf } from '../../host/source';
import { resultOf } from './answers';
import type { AppServer } from './app-server';

/** As many as `HeldRequests` holds. */
const MAX_HELD = 1_000;

/**
 * What an app-server waits for people to say. It may have other clients: whoever answers first has answered, and it tells
 * the others by its own id of the request.
 */
export class HeldAsked {
  readonly #requests = new HeldRequests();
  readonly #byRpcId = new Map<string | number, { sessionId: string; requestId: string }>();

  hold(sessionId: string, request: CodexRequest, server: AppServer): void {
    const { rpcId, value } = request;
    const { request_id: requestId, kind, tool_name: tool = null, input, options } = value;
    // An answer to what was asked under this id before would be one to this.
    this.letGo(rpcId);
    setBounded(this.#byRpcId, rpcId, { sessionId, requestId }, MAX_HELD);
    this.#requests.hold({
      ...{ sessionId, requestId, kind, tool, input },
      ...(options === undefined ? {} : { options }),
      give(answer) {
        const given = resultOf(request, answer);
        if ('refusal' in given) return given.refusal;
        return server.answer(rpcId, given.result) ? null : 'the connection to Codex broke';
      },
    });
  }

  letGo(rpcId: string | number): void {
    const held = this.#byRpcId.get(rpcId);
    this.#byRpcId.delete(rpcId);
    if (held !== undefined) this.#requests.letGo(held.sessionId, held.requestId);
  }

  /** The connection is gone: the next one is asked anew. */
  letGoAll(): void {
    this.#requests.letGoAll();
    this.#byRpcId.clear();
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    const refusal = await this.#requests.answer(command);
    return refusal === null ? { state: 'done' } : { state: 'failed', reason: refusal };
  }
}
