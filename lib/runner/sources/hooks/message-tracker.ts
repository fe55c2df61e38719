import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { comparisonKey } from '../../adapters/claude/final-text';
import type { HookMoment } from '../../adapters/claude/stop-hooks';
import { lineText } from '../../adapters/claude/transcript-line';
import { parseNotifications } from '../../adapters/claude/transcript-tasks';
import { setBounded } from '../../adapters/wire';
import type { MirrorState, StopHookHold, WaitMessage } from './mirror-state';

/** Delivered or answered messages remembered. */
const MOST_MESSAGES = 1_000;

/**
 * Tracks messages of one session: in a hold of the stop hook or in a wait, then handed to the open turn, then answered.
 */
export class MessageTracker {
  readonly offers = new StopHookHolds();
  readonly waited = new WaitMessages();
  /** Messages given to the agent in the open turn. */
  #handed: readonly string[];
  /** Messages given to the agent since this process started, or in the turn that was open then. */
  readonly #reached = new Map<string, true>();
  /** Answered messages, which are no longer pending even if the server still lists them. */
  readonly #answered = new Map<string, true>();
  #handedAt = 0;

  constructor({ handed }: Pick<MirrorState, 'handed'>) {
    this.#handed = handed;
  }

  get state(): Pick<MirrorState, 'offers' | 'waited' | 'handed'> {
    return { offers: [...this.offers.open], waited: [...this.waited.all], handed: [...this.#handed] };
  }

  /** Time of the last message given to the agent. */
  get handedAt(): number {
    return this.#handedAt;
  }

  /** True if the message is in delivery, given to the agent, or answered. */
  has(messageId: string, now: number): boolean {
    const isInDelivery = this.offers.has(messageId) || this.waited.has(messageId, now);
    return isInDelivery || this.#handed.includes(messageId) || this.#answered.has(messageId);
  }

  hasReached(messageId: string): boolean {
    return this.#reached.has(messageId);
  }

  reached(messageIds: readonly string[]): void {
    for (const id of messageIds) setBounded(this.#reached, id, true, MOST_MESSAGES);
  }

  delivered(messageIds: readonly string[], now: number): void {
    this.#handed = [...this.#handed, ...messageIds];
    this.reached(messageIds);
    this.#handedAt = now;
  }

  /** @param belongsToTurn true if a stop hook belongs to this turn, which ends its hold */
  turnEnded(isAnswer: boolean, belongsToTurn: (moment: HookMoment) => boolean): void {
    if (isAnswer) for (const id of this.#handed) setBounded(this.#answered, id, true, MOST_MESSAGES);
    this.#handed = [];
    this.offers.drop(belongsToTurn);
  }

  /** Restores stored state. */
  restore({ offers, waited, handed }: Pick<MirrorState, 'offers' | 'waited' | 'handed'>, now: number): void {
    this.reached(handed);
    this.offers.restore(offers, now);
    this.waited.restore(waited);
    for (const { isShown, messageIds } of waited) if (isShown) this.reached(messageIds);
  }
}

/**
 * Holds by our stop hook that the transcript does not show yet. The transcript may lag behind by several of them, and
 * other stop hooks hold the agent too, so holds are matched by text.
 */
class StopHookHolds {
  #open: readonly StopHookHold[] = [];

  get open(): readonly StopHookHold[] {
    return this.#open;
  }

  get isAny(): boolean {
    return this.#open.length > 0;
  }

  has(messageId: string): boolean {
    return this.#open.some(({ messageIds }) => messageIds.includes(messageId));
  }

  /** Where to start searching the transcript for the newest matching hold; null if none matches. */
  sinceOf(matches: (moment: HookMoment) => boolean): number | null {
    const found = this.#open.filter(({ moment }) => matches(moment)).map(({ since }) => since);
    return found.length === 0 ? null : Math.max(...found);
  }

  put(offer: StopHookHold): void {
    this.#open = [...this.#open, offer];
  }

  /** Restores stored holds; their search starts now. */
  restore(open: readonly StopHookHold[], now: number): void {
    this.#open = [...open.map((offer) => ({ ...offer, since: now })), ...this.#open];
  }

  /** @returns message ids confirmed by this stop-hook feedback; empty if the feedback is not ours */
  confirm(feedback: string): string[] {
    const text = comparisonKey(feedback);
    const found = this.#open.find(({ reason }) => text.includes(comparisonKey(reason)));
    this.#open = this.#open.filter((offer) => offer !== found);
    return [...(found?.messageIds ?? [])];
  }

  /** Drops the hold of a hook that timed out and let the turn end. */
  withdraw({ at, isClocked }: HookMoment): void {
    if (isClocked) this.drop((moment) => moment.isClocked && moment.at === at);
  }

  drop(matches = (_moment: HookMoment) => true): void {
    this.#open = this.#open.filter(({ moment }) => !matches(moment));
  }
}

/** Time for the agent to notice the end of its wait. Afterwards, the message is pending again. */
const NOTICE_MS = 90_000;
const MOST_WAITS = 64;
/** Matches our wait command in any form in which the agent may run it. */
const RUNS_WAIT = /\binterlude(?:\.mjs)?['"]?\s(?:[^|;&\n]*\s)?wait\b/;

/**
 * Messages that reach the agent through a wait. The transcript shows when the agent notices the end of the wait; that
 * turn answers the messages.
 */
export class WaitMessages {
  #all: readonly WaitMessage[] = [];
  readonly #waits = new Map<string, true>();

  get all(): readonly WaitMessage[] {
    return this.#all;
  }

  restore(all: readonly WaitMessage[]): void {
    this.#all = [...all, ...this.#all];
  }

  has(messageId: string, now: number): boolean {
    return this.#all.some(
      ({ messageIds, at, isShown }) => messageIds.includes(messageId) && (!isShown || now - at < NOTICE_MS),
    );
  }

  put(claim: string, messageIds: readonly string[], at: number): void {
    this.#all = [...this.#all, { claim, messageIds, at, isShown: false }];
  }

  /** @returns the message ids; empty if unknown */
  shown(claim: string, at: number): readonly string[] {
    const found = this.#all.find((one) => one.claim === claim && !one.isShown);
    if (found === undefined) return [];
    this.#all = this.#all.map((one) => (one === found ? { ...one, at, isShown: true } : one));
    return found.messageIds;
  }

  returned(claim: string): void {
    this.#all = this.#all.filter((one) => one.claim !== claim || one.isShown);
  }

  /** @returns ids of messages that the agent has according to this transcript line */
  read(line: Fields): string[] {
    for (const block of listOf(fieldsOf(line.message).content).map(fieldsOf)) {
      const id = textOf(block.id);
      const command = textOf(fieldsOf(block.input).command);
      if (block.type === 'tool_use' && id !== null && command !== null && RUNS_WAIT.test(command)) {
        setBounded(this.#waits, id, true, MOST_WAITS);
      }
    }
    if (this.#all.length === 0 || !this.#endsWait(line)) return [];
    const received = this.#all.flatMap(({ messageIds }) => messageIds);
    this.#all = [];
    return received;
  }

  #endsWait(line: Fields): boolean {
    if ((line.type !== 'user' && line.type !== 'attachment') || textOf(line.agentId) !== null) return false;
    const { prompt } = fieldsOf(line.attachment);
    const text =
      lineText(line) ||
      (textOf(prompt) ??
        listOf(prompt)
          .map((one) => textOf(fieldsOf(one).text))
          .join(''));
    return parseNotifications(text).some(
      // Other statuses mean that the wait showed nothing.
      ({ fields }) => fields.status === 'completed' && this.#waits.has(textOf(fields.tool_use_id) ?? ''),
    );
  }
}
