import { CUSTOM } from '@/lib/protocol/ag-ui';
import type { Position } from '@/lib/protocol/position';
import { customName, customValue, pickText } from './event-fields';
import type { Placement } from './turns';

/** A request the agent waits with. */
export interface OpenRequest {
  id: string;
  title: string;
  kind?: 'permission' | 'question';
  /** Absent where it was opened before servers computed it. */
  digest?: string;
  openedPosition?: Position;
}

/**
 * What an agent waits for, in the order it asked: a mutable copy, so that a batch of many costs no more than each.
 * A request told again as it was keeps its place and its digest; one that asks something else under the same id is new.
 */
export class OpenRequests {
  readonly #open: Map<string, OpenRequest>;
  #list: readonly OpenRequest[] | null;

  constructor(open: readonly OpenRequest[]) {
    this.#open = new Map(open.map((request) => [request.id, request]));
    this.#list = open;
  }

  get count(): number {
    return this.#open.size;
  }

  get first(): OpenRequest | undefined {
    return this.#open.values().next().value;
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
    const id = pickText(value, 'request_id', 'requestId');
    switch (customName(entry.event)) {
      case CUSTOM.requestOpened:
        if (id !== null) this.#put(opened(id, value));
        return;
      case CUSTOM.requestResolved:
        if (id !== null && this.#open.delete(id)) this.#list = null;
        return;
      case CUSTOM.sessionEnded:
        this.#clear();
    }
  }

  #put(request: OpenRequest): void {
    const known = this.#open.get(request.id);
    if (known !== undefined && known.digest === request.digest) return;
    this.#open.delete(request.id);
    this.#open.set(request.id, request);
    this.#list = null;
  }

  #clear(): void {
    if (this.#open.size === 0) return;
    this.#open.clear();
    this.#list = null;
  }
}

function opened(id: string, value: Record<string, unknown>): OpenRequest {
  const digest = pickText(value, 'digest');
  const openedPosition = pickText(value, 'opened_position');
  return {
    id,
    title: pickText(value, 'title', 'tool_name', 'toolName') ?? 'The agent asks',
    kind: value.kind === 'question' ? 'question' : 'permission',
    ...(digest === null || openedPosition === null ? {} : { digest, openedPosition }),
  };
}
