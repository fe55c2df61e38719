/**
 * What a full outbox takes and what it drops. Pure: the store asks before it writes.
 *
 * Log lines go first: they are refused from nine tenths of the bound on, so that what an agent said and did still finds
 * room when its logging has filled the disk. At the bound everything is refused. Refused is always the newest: what
 * already has a `seq` may be under way and keeps it.
 *
 * Ordering: a refused record leaves a `lost` record at its place. As long as nothing else follows, further refused ones
 * of the same agent and session are counted into that record, so a long outage costs one row and not one per drop.
 * Failure: `lost` records are let in beyond the bound; they are what keeps a drop from being silent.
 */

export interface Bound {
  maxRows: number;
  maxBytes: number;
}

/** A record on its way into the file: its JSON without `seq`. */
export interface Candidate {
  kind: string;
  agentId: string;
  sessionId: string | undefined;
  occurredAt: number;
  body: string;
  bytes: number;
  /** It tells of a failure that wants a person's look: a log line, but no mere one. */
  isFailure?: boolean;
}

export interface Fill {
  rows: number;
  bytes: number;
}

export type Verdict = 'take' | 'drop';

/** Log lines are dropped from this share of the bound on. */
const LOG_SHARE = 0.9;

export function admit(candidate: Pick<Candidate, 'kind' | 'bytes' | 'isFailure'>, fill: Fill, bound: Bound): Verdict {
  if (candidate.kind === 'lost') return 'take';
  const share = candidate.kind === 'log' && candidate.isFailure !== true ? LOG_SHARE : 1;
  const fits = fill.rows + 1 <= bound.maxRows * share && fill.bytes + candidate.bytes <= bound.maxBytes * share;
  return fits ? 'take' : 'drop';
}

export type LostReason = 'outbox-full' | 'outbox-corrupt' | 'record-too-large' | 'refused-by-server' | 'lost-by-server';

/** The JSON, without `seq`, of the record that declares a loss. */
export function lostBody(
  of: { agentId: string; sessionId?: string | undefined; occurredAt: number },
  count: number,
  reason: LostReason,
): string {
  return JSON.stringify({
    kind: 'lost',
    agentId: of.agentId,
    sessionId: of.sessionId,
    occurredAt: of.occurredAt,
    lost: { count, reason },
  });
}
