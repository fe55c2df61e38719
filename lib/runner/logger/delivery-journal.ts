import { cutText } from '@interlude/protocol/cut-text';
import { formatDuration } from '@interlude/protocol/duration';
import type { CommandLink } from '../commands/command-client';
import { OUTBOX_COMPONENT } from '../outbox/append-plan';
import type { OutboxNotice } from '../outbox/delivery';
import type { Trouble } from '../outbox/drain';
import type { OutboxStatus } from '../outbox/outbox';
import type { Logger } from './logger';

/**
 * What a runner's log says of the way to the server: a line as an outage begins, one where its kind changes, one as it
 * ends, however often the outbox and the stream of commands tried in between. At debug each try is told.
 *
 * Ordering: it ends when both get through and what waited by then has arrived.
 * Failure: these lines go through the outbox as all others do. None of them is written because another one was stored.
 */
export interface DeliveryJournalOptions {
  logger: Logger;
  /** Who goes on meanwhile: `the agent goes on`. */
  meanwhile: string;
  now?: () => number;
}

type Kind = Exclude<Trouble['kind'], 'fenced'>;

interface Outage {
  since: number;
  kind: Kind;
  sent: number;
  /** Since when everything gets through again, and up to which record what waited then goes. */
  over: { at: number; upToSeq: number } | null;
}

const IN_WORDS: Record<Kind, string> = {
  unavailable: 'the dashboard can’t be reached',
  unauthorized: 'the dashboard refuses the token',
  refused: 'the dashboard refuses everything',
  storage: 'the outbox’s file can’t be used',
};
/** A reason comes from whatever answers at that address. */
const MAX_REASON = 300;

/** What stands between a runner and the dashboard, in one line: the same in its log and in its terminal. */
export function troubleInWords({ kind, message }: Pick<Trouble, 'kind' | 'message'>): string {
  return kind === 'fenced' ? reason(message) : `${IN_WORDS[kind]} (${reason(message)})`;
}

export class DeliveryJournal {
  readonly #outbox: Logger;
  readonly #commands: Logger;
  readonly #meanwhile: string;
  readonly #now: () => number;
  #held: Trouble | null = null;
  #waiting: Extract<CommandLink, { state: 'waiting' }> | null = null;
  #outage: Outage | null = null;
  #acknowledged = { epoch: 0, seq: 0 };
  #lastSeq = 0;
  #wasConnected = false;
  #isOver = false;

  constructor({ logger, meanwhile, now = Date.now }: DeliveryJournalOptions) {
    this.#outbox = logger.child(OUTBOX_COMPONENT);
    this.#commands = logger.child('commands');
    this.#meanwhile = meanwhile;
    this.#now = now;
  }

  outboxChanged({ state, trouble, lastSeq, waiting, producer }: OutboxStatus): void {
    if (state === 'stopped' || state === 'fenced') this.#isOver = true;
    if (this.#isOver) return;
    if (trouble !== null && trouble.tries !== this.#held?.tries) this.#tellTry(trouble, state === 'waiting');
    this.#held = trouble;
    this.#count(producer.epoch, lastSeq, lastSeq - waiting);
    this.#look();
  }

  linkChanged(link: CommandLink): void {
    this.#waiting = link.state === 'waiting' ? link : null;
    if (link.state === 'waiting') this.#commands.debug(`failed: ${reason(link.message)}`);
    else this.#commands[this.#wasConnected && link.state === 'connected' ? 'debug' : 'info'](link.state);
    if (link.state === 'connected') this.#wasConnected = true;
    if (link.state === 'fenced' || link.state === 'stopped') this.#isOver = true;
    if (!this.#isOver) this.#look();
  }

  notice(notice: OutboxNotice): void {
    if (notice.kind !== 'poisoned') {
      this.#outbox.log(notice.level, notice.message);
      return;
    }
    const { seq, sessionId, message } = notice;
    const of = sessionId === undefined ? {} : { sessionId };
    const insight = { signal: 'outbox_poisoned', value: seq, outcome: 'failed', source: OUTBOX_COMPONENT, ...of };
    this.#outbox.log('fatal', message, { insight });
  }

  #tellTry({ tries, message, retryAt }: Trouble, rests: boolean): void {
    const next = rests && retryAt !== null ? `in ${formatDuration(retryAt - this.#now())}` : 'now';
    this.#outbox.debug(`attempt ${tries} failed: ${reason(message)}; the next one ${next}`);
  }

  #count(epoch: number, lastSeq: number, acknowledged: number): void {
    const before = this.#acknowledged;
    const isSameEpoch = epoch === before.epoch;
    if (this.#outage !== null && isSameEpoch) this.#outage.sent += Math.max(0, acknowledged - before.seq);
    if (this.#outage?.over && !isSameEpoch) this.#outage.over.upToSeq = lastSeq;
    this.#acknowledged = { epoch, seq: isSameEpoch ? Math.max(before.seq, acknowledged) : acknowledged };
    this.#lastSeq = lastSeq;
  }

  #look(): void {
    const kind = (this.#held?.kind ?? this.#waiting?.cause ?? null) as Kind | null;
    if (kind !== null) this.#troubled(kind, this.#held?.message ?? this.#waiting?.message ?? '');
    else if (this.#outage !== null) this.#passable(this.#outage);
  }

  #troubled(kind: Kind, message: string): void {
    const known = this.#outage;
    this.#outage = { since: this.#now(), sent: 0, ...known, kind, over: null };
    if (known?.kind === kind) return;
    const trouble = troubleInWords({ kind, message });
    this.#outbox.warn(`${trouble}; ${this.#meanwhile}, and what it does is kept and sent later`);
  }

  #passable(outage: Outage): void {
    outage.over ??= { at: this.#now(), upToSeq: this.#lastSeq };
    if (this.#acknowledged.seq < outage.over.upToSeq) return;
    this.#outage = null;
    const records = outage.sent === 1 ? 'record' : 'records';
    this.#outbox.info(`back after ${formatDuration(outage.over.at - outage.since)}, ${outage.sent} ${records} sent`);
  }
}

function reason(message: string): string {
  return cutText(message, MAX_REASON);
}
