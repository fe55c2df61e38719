import type { EventEntry } from '@/lib/projections/event-entry';
import { requestTitle } from '@/lib/projections/open-requests';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import { answerBy } from '@/lib/protocol/answer-by';
import { customName, customValue, pickId, pickText, pickTime } from '@/lib/protocol/event-fields';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import { requestOptions } from '@/lib/protocol/request-options';
import { type Asked, interruptOf } from './interrupts';
import type { Interrupt } from './strict-event';

/** Most requests that a client is asked at once: what is beyond them it is asked once others are answered. */
export const MOST_ASKED = 20;

/** What the agent waits for, without what this client has answered and the agent has not taken yet. */
export class OpenAsks {
  readonly #requests: Map<string, Asked>;
  readonly #answered: Set<string>;

  constructor(pending: readonly Asked[], answered: readonly string[]) {
    this.#requests = new Map(pending.map((asked) => [asked.id, asked]));
    this.#answered = new Set(answered);
  }

  interrupts(): Interrupt[] {
    return [...this.#requests.values()].filter(({ id }) => !this.#answered.has(id)).map(interruptOf);
  }

  clear(): void {
    this.#requests.clear();
  }

  /** @returns whether something is asked that was not before, or an answer could not be given */
  take(entry: EventEntry): boolean {
    const { event } = entry;
    const value = customValue(event);
    const id = pickId(value, 'request_id', 'requestId');
    if (id === null) return false;
    switch (customName(event)) {
      case CUSTOM.requestResolved:
        this.#requests.delete(id);
        this.#answered.delete(id);
        return false;
      case CUSTOM.commandFailed:
        return this.#answered.delete(id) && this.#requests.has(id);
      case CUSTOM.requestOpened: {
        const { replaces } = interludeOf(event);
        const known = this.#requests.get(id);
        if (replaces !== undefined) this.#requests.delete(replaces);
        if (known === undefined && this.#requests.size >= MOST_ASKED) return false;
        const asked = askedIn(id, value, entry);
        this.#requests.set(id, asked);
        // Told again, it is the one that was told or answered before.
        if (known?.digest === asked.digest) return false;
        this.#answered.delete(id);
        return true;
      }
      default:
        return false;
    }
  }
}

function askedIn(id: string, value: Record<string, unknown>, entry: EventEntry): Asked {
  return {
    id,
    kind: value.kind === 'question' ? 'question' : 'permission',
    title: requestTitle(value),
    toolName: pickText(value, 'tool_name', 'toolName'),
    toolCallId: pickId(value, 'tool_use_id', 'toolUseId', 'toolCallId'),
    input: value.input ?? null,
    options: requestOptions(value.options),
    digest: pickText(value, 'digest'),
    openedPosition: pickText(value, 'opened_position'),
    expiresAt: answerBy(pickTime(value, 'expires_at', 'expiresAt'), entry),
  };
}
