import { truncateText } from '@interlude/protocol/text';
import { formatDuration } from '@interlude/protocol/time';
import type { CommandLink } from '../host/command-client';
import { OUTBOX_COMPONENT } from '../outbox/append-plan';
import type { OutboxNotice } from '../outbox/delivery';
import type { Trouble } from '../outbox/drain';
import type { OutboxStatus } from '../outbox/outbox';
import type { Logger } from './logger';

export interface DeliveryJournalOptions {
  logger: Logger;
  /** For messages about an outage: `the agent continues`. */
  meanwhile: string;
  now?: () => number;
}

type Kind = Exclude<Trouble['kind'], 'fenced'>;

interface Outage {
  since: number;
  kind: Kind;
  sent: number;
  /** Set once outbox and command stream succeed again: the time, and the last record that was waiting at that time. */
  over: { at: number; upToSeq: number } | null;
}

const TROUBLES: Record<Kind, string> = {
  unavailable: 'the dashboard can’t be reached',
  unauthorized: 'the dashboard refuses the token',
  refused: 'the dashboard refuses every request',
  storage: 'the outbox file can’t be read or written',
};
/** Bounded, because reasons come from foreign servers. */
const MAX_REASON = 300;

function formatTrouble({ kind, message }: Pick<Trouble, 'kind' | 'message'>): string {
  return kind === 'fenced' ? reason(message) : `${TROUBLES[kind]} (${reason(message)})`;
}

/**
 * Logs outages between a runner and the server: a line when one starts, changes its kind and ends, however often the
 * outbox and the command stream retry. At debug level each attempt is logged.
 *
 * Ordering: an outage ends when both succeed and the records that were waiting have arrived.
 * Failure: these lines go through the outbox like all others. Storing one never causes another.
 */
export class DeliveryJournal {
  readonly #outbox: Logger;
  readonly #commands: Logger;
  readonly #meanwhile: string;
  readonly #now: () => number;
  #trouble: Trouble | null = null;
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
    if (trouble !== null && trouble.tries !== this.#trouble?.tries) this.#logAttempt(trouble, state === 'waiting');
    this.#trouble = trouble;
    this.#count(producer.epoch, lastSeq, lastSeq - waiting);
    this.#update();
  }

  linkChanged(link: CommandLink): void {
    this.#waiting = link.state === 'waiting' ? link : null;
    if (link.state === 'waiting') this.#commands.debug(`failed: ${reason(link.message)}`);
    else this.#commands[this.#wasConnected && link.state === 'connected' ? 'debug' : 'info'](link.state);
    if (link.state === 'connected') this.#wasConnected = true;
    if (link.state === 'fenced' || link.state === 'stopped') this.#isOver = true;
    if (!this.#isOver) this.#update();
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

  #logAttempt({ tries, message, retryAt }: Trouble, isWaiting: boolean): void {
    const next = isWaiting && retryAt !== null ? `in ${formatDuration(retryAt - this.#now())}` : 'now';
    this.#outbox.debug(`attempt ${tries} failed: ${reason(message)}; next one ${next}`);
  }

  #count(epoch: number, lastSeq: number, acknowledged: number): void {
    const before = this.#acknowledged;
    const isSameEpoch = epoch === before.epoch;
    if (this.#outage !== null && isSameEpoch) this.#outage.sent += Math.max(0, acknowledged - before.seq);
    if (this.#outage?.over && !isSameEpoch) this.#outage.over.upToSeq = lastSeq;
    this.#acknowledged = { epoch, seq: isSameEpoch ? Math.max(before.seq, acknowledged) : acknowledged };
    this.#lastSeq = lastSeq;
  }

  #update(): void {
    const kind = (this.#trouble?.kind ?? this.#waiting?.cause ?? null) as Kind | null;
    if (kind !== null) this.#startOutage(kind, this.#trouble?.message ?? this.#waiting?.message ?? '');
    else if (this.#outage !== null) this.#endOutage(this.#outage);
  }

  #startOutage(kind: Kind, message: string): void {
    const known = this.#outage;
    this.#outage = { since: this.#now(), sent: 0, ...known, kind, over: null };
    if (known?.kind === kind) return;
    const trouble = formatTrouble({ kind, message });
    this.#outbox.warn(`${trouble}; ${this.#meanwhile}, and its events are sent later`);
  }

  #endOutage(outage: Outage): void {
    outage.over ??= { at: this.#now(), upToSeq: this.#lastSeq };
    if (this.#acknowledged.seq < outage.over.upToSeq) return;
    this.#outage = null;
    const records = outage.sent === 1 ? 'record' : 'records';
    this.#outbox.info(
      `reconnected after ${formatDuration(outage.over.at - outage.since)}, ${outage.sent} ${records} sent`,
    );
  }
}

function reason(message: string): string {
  return truncateText(message, MAX_REASON);
}

/**
 * Reports in the terminal that the dashboard can't be reached or refuses the token, and when all agents are connected again.
 * Each kind of trouble is reported once for all agents.
 */
export class TroubleNotices {
  readonly #meanwhile: string;
  readonly #tokenAdvice: string;
  /** Outboxes and command streams are separate entries, because the server may refuse only one. */
  readonly #troubled = new Map<string, string>();

  /**
   * @param meanwhile what happens to the agents' work
   * @param tokenAdvice what to do when the token is refused
   */
  constructor(meanwhile: string, tokenAdvice: string) {
    this.#meanwhile = meanwhile;
    this.#tokenAdvice = tokenAdvice;
  }

  status(agentId: string, { trouble, state, waiting }: OutboxStatus): void {
    // A command that is stopping need not report trouble.
    if (state === 'stopped') return;
    const isBehind = trouble === null && waiting > 0 && state !== 'idle';
    if (!isBehind) this.#report(`outbox of ${agentId}`, trouble);
  }

  /** Reports refused tokens only: the outbox reports an unreachable dashboard. */
  link(agentId: string, link: CommandLink): void {
    const channel = `commands of ${agentId}`;
    if (link.state === 'connected') this.#report(channel, null);
    else if (link.state === 'waiting' && link.cause === 'unauthorized') {
      this.#report(channel, { kind: link.cause, message: link.message });
    }
  }

  #report(channel: string, trouble: Pick<Trouble, 'kind' | 'message'> | null): void {
    const kind = trouble?.kind;
    if (kind === this.#troubled.get(channel)) return;
    const isKnown = [...this.#troubled.values()].some((known) => known === kind);
    if (trouble === null) this.#troubled.delete(channel);
    else this.#troubled.set(channel, trouble.kind);
    // A fenced runner reports its fence when it ends.
    if (trouble !== null && !isKnown && kind !== 'fenced') {
      const advice: Partial<Record<Trouble['kind'], string>> = {
        unauthorized: `; ${this.#tokenAdvice}`,
        unavailable: '; start it, or set INTERLUDE_URL',
      };
      const next = advice[trouble.kind] ?? '';
      process.stderr.write(`interlude: ${formatTrouble(trouble)}${next}; ${this.#meanwhile}\n`);
    }
    if (this.#troubled.size === 0) process.stderr.write('interlude: reconnected to the dashboard\n');
  }
}
