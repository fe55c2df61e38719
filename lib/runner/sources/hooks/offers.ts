import type { HookMoment } from '@/lib/adapters/claude/heard-stops';
import { keyOf } from '@/lib/adapters/claude/said-text';

/** Messages that a stop hook answered the agent with. */
interface Offer {
  messageIds: readonly string[];
  /** What the agent is told by it. */
  reason: string;
  moment: HookMoment;
}

/**
 * What our stop hook holds the agent with, until the transcript says that it reached it. The transcript may be behind by
 * more than one such answer, and other people's hooks hold the agent too: which one a line is of, its text tells.
 */
export class Offers {
  #open: readonly Offer[] = [];

  get areOpen(): boolean {
    return this.#open.length > 0;
  }

  has(messageId: string): boolean {
    return this.#open.some(({ messageIds }) => messageIds.includes(messageId));
  }

  put(offer: Offer): void {
    this.#open = [...this.#open, offer];
  }

  /** @returns what the agent has by this feedback of a stop hook; empty where it is not ours */
  take(feedback: string): string[] {
    const said = keyOf(feedback);
    const its = this.#open.find(({ reason }) => said.includes(keyOf(reason)));
    this.#open = this.#open.filter((offer) => offer !== its);
    return [...(its?.messageIds ?? [])];
  }

  /** The agent will not have them. */
  drop(isIts = (_moment: HookMoment) => true): void {
    this.#open = this.#open.filter(({ moment }) => !isIts(moment));
  }
}
