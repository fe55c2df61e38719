import { comparisonKey } from '../../adapters/claude/final-text';
import type { HookMoment } from '../../adapters/claude/stop-hooks';

/** Messages that a stop hook answered the agent with. JSON: it outlives the companion, as the hold does. */
export interface Offer {
  messageIds: readonly string[];
  /** What the agent is told by it. */
  reason: string;
  moment: HookMoment;
  /** Since when the transcript has been searched for it. Epoch milliseconds. */
  since: number;
}

/**
 * What our stop hook holds the agent with, until the transcript says that it reached it. The transcript may be behind
 * by more than one such answer, and other people's hooks hold the agent too: which one a line is of, its text tells.
 */
export class Offers {
  #open: readonly Offer[] = [];

  get open(): readonly Offer[] {
    return this.#open;
  }

  get areOpen(): boolean {
    return this.#open.length > 0;
  }

  has(messageId: string): boolean {
    return this.#open.some(({ messageIds }) => messageIds.includes(messageId));
  }

  /** Since when the transcript has been searched for the newest of them; null for none. */
  sinceOf(isIts: (moment: HookMoment) => boolean): number | null {
    const its = this.#open.filter(({ moment }) => isIts(moment)).map(({ since }) => since);
    return its.length === 0 ? null : Math.max(...its);
  }

  put(offer: Offer): void {
    this.#open = [...this.#open, offer];
  }

  /** As the reader before this one left them: nobody has searched for them since. */
  recall(open: readonly Offer[], now: number): void {
    this.#open = [...open.map((offer) => ({ ...offer, since: now })), ...this.#open];
  }

  /** @returns what the agent has by this feedback of a stop hook; empty if it is not ours */
  take(feedback: string): string[] {
    const said = comparisonKey(feedback);
    const its = this.#open.find(({ reason }) => said.includes(comparisonKey(reason)));
    this.#open = this.#open.filter((offer) => offer !== its);
    return [...(its?.messageIds ?? [])];
  }

  /** The hook that ran then let the turn end after all: it had no answer in time. */
  withdraw({ at, isClocked }: HookMoment): void {
    if (isClocked) this.drop((moment) => moment.isClocked && moment.at === at);
  }

  /** The agent will not get them. */
  drop(isIts = (_moment: HookMoment) => true): void {
    this.#open = this.#open.filter(({ moment }) => !isIts(moment));
  }
}
