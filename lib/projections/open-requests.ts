import { CUSTOM } from '@/lib/protocol/ag-ui';
import { answerBy } from '@/lib/protocol/answer-by';
import { MAX_PENDING_REQUESTS } from '@/lib/protocol/limits';
import type { Position } from '@/lib/protocol/position';
import type { EventEntry } from './event-entry';
import { caption, customName, customValue, pickId, pickText, pickTime } from './event-fields';
import type { Placement } from './placement';

/** A request the agent waits with. */
export interface OpenRequest {
  id: string;
  title: string;
  kind: 'permission' | 'question';
  digest: string;
  openedPosition: Position;
  /** Until when it can be answered, on the server's clock. Absent where it does not expire. */
  answerBy?: number;
}

/**
 * What an agent waits for, in the order it asked: a mutable copy, so that a batch of many costs no more than each.
 * A request told again as it was keeps its place and its digest; one that asks something else under the same id is new.
 */
export class OpenRequests {
  readonly #open: Map<string, OpenRequest>;
  #list: readonly OpenRequest[] | null;
  #more: number;

  constructor(open: readonly OpenRequest[], more = 0) {
    this.#more = more;
    this.#open = new Map(open.map((request) => [request.id, request]));
    this.#list = open;
  }

  get count(): number {
    return this.#open.size + this.#more;
  }

  /** How many are open beyond those that are remembered: those are only counted. */
  get more(): number {
    return this.#more;
  }

  get first(): OpenRequest | undefined {
    return this.#open.values().next().value;
  }

  /** When the first of those that are remembered expires. */
  get answerBy(): number | undefined {
    const first = this.list().reduce(
      (least, { answerBy = least }) => Math.min(least, answerBy),
      Number.POSITIVE_INFINITY,
    );
    return Number.isFinite(first) ? first : undefined;
  }

  get(id: string): OpenRequest | undefined {
    return this.#open.get(id);
  }

  /** The very list it began with while nothing has changed. */
  list(): OpenRequest[] {
    this.#list ??= [...this.#open.values()];
    return this.#list as OpenRequest[];
  }

  apply({ entry, turns }: Placement): void {
    // A turn that is over asks for nothing any more, unless it ended in order to ask.
    if (turns.some(({ kind, state }) => kind !== 'none' && state !== 'open' && state !== 'finished')) this.#clear();
    const value = customValue(entry.event);
    const id = pickId(value, 'request_id', 'requestId');
    switch (customName(entry.event)) {
      case CUSTOM.requestOpened:
        if (id !== null) this.#put(opened(id, value, entry));
        return;
      case CUSTOM.requestResolved:
        if (id !== null) this.#resolve(id);
        return;
      case CUSTOM.sessionEnded:
        this.#clear();
    }
  }

  #put(request: OpenRequest): void {
    const known = this.#open.get(request.id);
    if (known !== undefined && known.digest === request.digest) {
      if (known.answerBy === request.answerBy) return;
      // In its place: it is the same request, and may only wait longer.
      this.#open.set(request.id, request);
      this.#list = null;
      return;
    }
    if (known === undefined && this.#open.size >= MAX_PENDING_REQUESTS) {
      this.#more += 1;
      return;
    }
    this.#open.delete(request.id);
    this.#open.set(request.id, request);
    this.#list = null;
  }

  #resolve(id: string): void {
    if (this.#open.delete(id)) this.#list = null;
    else if (this.#more > 0) this.#more -= 1;
  }

  #clear(): void {
    this.#more = 0;
    if (this.#open.size === 0) return;
    this.#open.clear();
    this.#list = null;
  }
}

/** What a request is called, as far as it is remembered. */
export function requestTitle(value: Record<string, unknown>): string {
  return caption(pickText(value, 'title', 'tool_name', 'toolName')) ?? 'The agent asks';
}

function opened(id: string, value: Record<string, unknown>, entry: EventEntry): OpenRequest {
  const until = answerBy(pickTime(value, 'expires_at', 'expiresAt'), entry);
  return {
    id,
    title: requestTitle(value),
    kind: value.kind === 'question' ? 'question' : 'permission',
    // ingest writes both into what it places
    digest: pickText(value, 'digest') ?? '',
    openedPosition: pickText(value, 'opened_position') ?? entry.position,
    ...(until === null ? {} : { answerBy: until }),
  };
}
