import { setBounded } from '../../adapters/bounded-map';
import type { HookMoment } from '../../adapters/claude/stop-hooks';
import type { MirrorState } from './mirror-state';
import { Offers } from './offers';
import { WaitedMessages } from './waited-messages';

/** Most messages that are remembered as read, or as answered. */
const MOST_MESSAGES = 1_000;

/**
 * The messages of one session on their ways to its agent: put before it by our stop hook or by a wait of its own, then in
 * its hand for as long as the turn goes on, and then answered.
 */
export class MessagesUnderway {
  readonly offers = new Offers();
  readonly waited = new WaitedMessages();
  /** Put before the agent in the open turn. */
  #handed: readonly string[];
  /** Put before the agent since somebody looks, or in the turn that was open then. */
  readonly #reached = new Map<string, true>();
  /** Answered by a turn that finished: no longer owed, whatever the last answer of the server still says. */
  readonly #answered = new Map<string, true>();
  #handedAt = 0;

  constructor({ handed }: Pick<MirrorState, 'handed'>) {
    this.#handed = handed;
  }

  get state(): Pick<MirrorState, 'offers' | 'waited' | 'handed'> {
    return { offers: [...this.offers.open], waited: [...this.waited.all], handed: [...this.#handed] };
  }

  /** When the agent was given something last. */
  get handedAt(): number {
    return this.#handedAt;
  }

  /** Before the agent, or about to be, or answered. */
  has(messageId: string, now: number): boolean {
    const isComing = this.offers.has(messageId) || this.waited.has(messageId, now);
    return isComing || this.#handed.includes(messageId) || this.#answered.has(messageId);
  }

  hasReached(messageId: string): boolean {
    return this.#reached.has(messageId);
  }

  reached(messageIds: readonly string[]): void {
    for (const id of messageIds) setBounded(this.#reached, id, true, MOST_MESSAGES);
  }

  /** The open turn has them. */
  handedOver(messageIds: readonly string[], now: number): void {
    this.#handed = [...this.#handed, ...messageIds];
    this.reached(messageIds);
    this.#handedAt = now;
  }

  /** @param isItsOwn whether a stop hook of that moment was the turn's: what it held with is over */
  turnEnded(isAnswer: boolean, isItsOwn: (moment: HookMoment) => boolean): void {
    if (isAnswer) for (const id of this.#handed) setBounded(this.#answered, id, true, MOST_MESSAGES);
    this.#handed = [];
    this.offers.drop(isItsOwn);
  }

  /** As the reader before this one left them. */
  recall({ offers, waited, handed }: Pick<MirrorState, 'offers' | 'waited' | 'handed'>, now: number): void {
    this.reached(handed);
    this.offers.recall(offers, now);
    this.waited.recall(waited);
    for (const { isShown, messageIds } of waited) if (isShown) this.reached(messageIds);
  }
}
