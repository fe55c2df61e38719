import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { HookMoment } from '../../adapters/claude/heard-stops';
import { notificationsIn } from '../../adapters/claude/notifications-in';
import { keyOf } from '../../adapters/claude/said-text';
import { textIn } from '../../adapters/claude/transcript-line';
import { remember } from '../../adapters/remember';
import type { MirrorState } from './mirror-state';

/** Most messages that are remembered as read, or as answered. */
const MOST_MESSAGES = 1_000;

/**
 * The messages of one session on their ways to its agent: put before it by our stop hook or by a wait of its own, then in
 * its hand for as long as the turn goes on, and then answered.
 */
export class MessageTracker {
  readonly offers = new StopHookHolds();
  readonly waited = new WaitMessages();
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
    for (const id of messageIds) remember(this.#reached, id, true, MOST_MESSAGES);
  }

  /** The open turn has them. */
  handedOver(messageIds: readonly string[], now: number): void {
    this.#handed = [...this.#handed, ...messageIds];
    this.reached(messageIds);
    this.#handedAt = now;
  }

  /** @param isItsOwn whether a stop hook of that moment was the turn's: what it held with is over */
  turnEnded(isAnswer: boolean, isItsOwn: (moment: HookMoment) => boolean): void {
    if (isAnswer) for (const id of this.#handed) remember(this.#answered, id, true, MOST_MESSAGES);
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

/** Messages that a stop hook answered the agent with. JSON: it outlives the companion, as the hold does. */
export interface StopHookHold {
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
class StopHookHolds {
  #open: readonly StopHookHold[] = [];

  get open(): readonly StopHookHold[] {
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

  put(offer: StopHookHold): void {
    this.#open = [...this.#open, offer];
  }

  /** As the reader before this one left them: nobody has searched for them since. */
  recall(open: readonly StopHookHold[], now: number): void {
    this.#open = [...open.map((offer) => ({ ...offer, since: now })), ...this.#open];
  }

  /** @returns what the agent has by this feedback of a stop hook; empty if it is not ours */
  take(feedback: string): string[] {
    const said = keyOf(feedback);
    const its = this.#open.find(({ reason }) => said.includes(keyOf(reason)));
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

/** What a wait was handed, and whether it has shown it. JSON: it outlives the companion. */
export interface WaitMessage {
  claim: string;
  messageIds: readonly string[];
  /** When it was handed; once it is shown, when that was. Epoch milliseconds. */
  at: number;
  isShown: boolean;
}

/** How long the agent may take to hear of the end of its wait. After it the message is owed like any other. */
const HEARD_MS = 90_000;
/** Most calls that are known to be waits. */
const MOST_WAITS = 64;
/** Ours, however the agent may have written the command around it. */
const RUNS_WAIT = /\binterlude(?:\.mjs)?['"]?\s(?:[^|;&\n]*\s)?wait\b/;

/**
 * Messages of one session that reach its agent by a wait of its own. The transcript tells when the agent hears that the
 * wait has ended: the turn in which it does answers them.
 */
export class WaitMessages {
  #all: readonly WaitMessage[] = [];
  /** Tool calls that run a wait. */
  readonly #waits = new Map<string, true>();

  get all(): readonly WaitMessage[] {
    return this.#all;
  }

  recall(all: readonly WaitMessage[]): void {
    this.#all = [...all, ...this.#all];
  }

  has(messageId: string, now: number): boolean {
    return this.#all.some(
      ({ messageIds, at, isShown }) => messageIds.includes(messageId) && (!isShown || now - at < HEARD_MS),
    );
  }

  put(claim: string, messageIds: readonly string[], at: number): void {
    this.#all = [...this.#all, { claim, messageIds, at, isShown: false }];
  }

  /** @returns what it was; empty for what was not handed */
  shown(claim: string, at: number): readonly string[] {
    const its = this.#all.find((one) => one.claim === claim && !one.isShown);
    if (its === undefined) return [];
    this.#all = this.#all.map((one) => (one === its ? { ...one, at, isShown: true } : one));
    return its.messageIds;
  }

  givenBack(claim: string): void {
    this.#all = this.#all.filter((one) => one.claim !== claim || one.isShown);
  }

  /** @returns messages that the agent has, according to this line of the transcript */
  read(line: Fields): string[] {
    for (const block of listOf(fieldsOf(line.message).content).map(fieldsOf)) {
      const id = textOf(block.id);
      const command = textOf(fieldsOf(block.input).command);
      if (block.type === 'tool_use' && id !== null && command !== null && RUNS_WAIT.test(command)) {
        remember(this.#waits, id, true, MOST_WAITS);
      }
    }
    if (this.#all.length === 0 || !this.#tellsOfWait(line)) return [];
    const heard = this.#all.flatMap(({ messageIds }) => messageIds);
    this.#all = [];
    return heard;
  }

  #tellsOfWait(line: Fields): boolean {
    if ((line.type !== 'user' && line.type !== 'attachment') || textOf(line.agentId) !== null) return false;
    const { prompt } = fieldsOf(line.attachment);
    const text =
      textIn(line) ||
      (textOf(prompt) ??
        listOf(prompt)
          .map((one) => textOf(fieldsOf(one).text))
          .join(''));
    return notificationsIn(text).some(
      // Another end is that of a wait which had nothing to show, or was killed before it had.
      ({ fields }) => fields.status === 'completed' && this.#waits.has(textOf(fields.tool_use_id) ?? ''),
    );
  }
}
