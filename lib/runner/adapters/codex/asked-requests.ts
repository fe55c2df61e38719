import type { RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import { type AskedRequest, askedIn, outcomeOf } from './requests';

export type RpcId = string | number;

interface Asked {
  request: AskedRequest;
  /** How Interlude answered it, if it did. */
  outcome: RequestResolvedValue['outcome'] | null;
}

const MAX_KNOWN = 2_000;

/** What an app-server waits for, by its own ids, which count from 0 in each process. */
export class AskedRequests {
  readonly #asked = new Map<RpcId, Asked>();
  /** `changes` of the `fileChange` items that run, by id: the request to make them does not say what they are. */
  readonly #changes = new Map<string, unknown>();

  /** @returns null for what is not meant for people */
  asked(rpcId: RpcId, message: Fields): AskedRequest | null {
    const request = askedIn(message, this.#changes.get(textOf(fieldsOf(message.params).itemId) ?? ''));
    if (request !== null) remember(this.#asked, rpcId, { request, outcome: null }, MAX_KNOWN);
    return request;
  }

  get(rpcId: RpcId): AskedRequest | null {
    return this.#asked.get(rpcId)?.request ?? null;
  }

  /** Interlude has answered; another client may have been faster. */
  answered(rpcId: RpcId, result: unknown): void {
    const asked = this.#asked.get(rpcId);
    if (asked !== undefined && result !== undefined) asked.outcome = outcomeOf(result);
  }

  /** Nobody is waited for any more. */
  take(rpcId: RpcId): Asked | null {
    const asked = this.#asked.get(rpcId) ?? null;
    this.#asked.delete(rpcId);
    return asked;
  }

  /** @param turnId those of this turn only */
  of(threadId: string, turnId?: string): RpcId[] {
    return [...this.#asked].flatMap(([rpcId, { request }]) =>
      request.threadId === threadId && (turnId === undefined || request.turnId === turnId) ? [rpcId] : [],
    );
  }

  clear(): void {
    this.#asked.clear();
  }

  changes(itemId: string, changes: unknown): void {
    remember(this.#changes, itemId, changes, MAX_KNOWN);
  }

  itemEnded(itemId: string): void {
    this.#changes.delete(itemId);
  }
}

export function rpcIdOf(id: unknown): RpcId | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
