import { CUSTOM, caption, customName, customValue, pickId, pickText, pickTime } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { MAX_CAPTION, MAX_LATE_TITLE, MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS } from '../limits';
import type { Position } from '../position';
import { truncateText } from '../text';
import { answerDeadline } from '../time';
import type { EventEntry, Placement } from './placement';

/** A request that the agent waits for. */
export interface OpenRequest {
  id: string;
  title: string;
  kind: 'permission' | 'question';
  digest: string;
  openedPosition: Position;
  /** Until when it can be answered, on the server's clock. Absent if it does not expire. */
  answerBy?: number;
}

/**
 * The requests an agent waits for, in the order it asked: a mutable copy, so that a large batch costs no more per
 * event. A request told again unchanged keeps its place and its digest; one that asks something else under its id is
 * new. Each is remembered, so that what is told twice counts once: beyond MAX_OPEN_REQUESTS none is.
 */
export class OpenRequests {
  readonly #open: Map<string, OpenRequest>;
  #hasMore: boolean;

  constructor(open: readonly OpenRequest[], hasMore = false) {
    this.#hasMore = hasMore;
    this.#open = new Map(open.map((request) => [request.id, request]));
  }

  get count(): number {
    return this.#open.size;
  }

  /** Whether more may be open, which are not remembered and which nobody waits for. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  get first(): OpenRequest | undefined {
    return this.#open.values().next().value;
  }

  /** When the first of them expires. */
  get answerBy(): number | undefined {
    const times = this.list().flatMap(({ answerBy }) => answerBy ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  get(id: string): OpenRequest | undefined {
    return this.#open.get(id);
  }

  list(): OpenRequest[] {
    return [...this.#open.values()];
  }

  apply({ entry, turns }: Placement): void {
    // A turn that broke off no longer asks for anything; one that finished may have done so in order to ask.
    if (turns.some(({ kind, state }) => kind !== 'none' && state !== 'open' && state !== 'finished')) this.#clear();
    const value = customValue(entry.event);
    const id = pickId(value, 'request_id', 'requestId');
    switch (customName(entry.event)) {
      case CUSTOM.requestOpened:
        if (id === null) return;
        this.#replace(readInterlude(entry.event).replaces, id);
        this.#put(opened(id, value, entry));
        return;
      case CUSTOM.requestResolved:
        if (id !== null) this.#open.delete(id);
        return;
      case CUSTOM.sessionEnded:
        this.#clear();
    }
  }

  #put(request: OpenRequest): void {
    const known = this.#open.get(request.id);
    if (known === undefined && this.#open.size >= MAX_OPEN_REQUESTS) {
      this.#hasMore = true;
      return;
    }
    // The same request keeps its place: it may only wait longer.
    const isSame = known?.digest === request.digest;
    if (!isSame) this.#open.delete(request.id);
    const isLate = this.#open.size - Number(isSame) >= MAX_PENDING_REQUESTS;
    const kept = isLate ? Math.max(isSame ? known.title.length : 0, MAX_LATE_TITLE) : MAX_CAPTION;
    this.#open.set(request.id, { ...request, title: truncateText(request.title, kept) });
  }

  #replace(replaced: string | undefined, id: string): void {
    if (replaced !== undefined && replaced !== id) this.#open.delete(replaced);
  }

  #clear(): void {
    this.#hasMore = false;
    this.#open.clear();
  }
}

/** The title of a request, as far as it is kept. */
export function requestTitle(value: Record<string, unknown>): string {
  return caption(pickText(value, 'title', 'tool_name', 'toolName')) ?? 'The agent asks';
}

function opened(id: string, value: Record<string, unknown>, entry: EventEntry): OpenRequest {
  const until = answerDeadline(pickTime(value, 'expires_at', 'expiresAt'), entry);
  return {
    id,
    title: requestTitle(value),
    kind: value.kind === 'question' ? 'question' : 'permission',
    // ingest has written both into the event
    digest: pickText(value, 'digest') ?? '',
    openedPosition: pickText(value, 'opened_position') ?? entry.position,
    ...(until === null ? {} : { answerBy: until }),
  };
}
