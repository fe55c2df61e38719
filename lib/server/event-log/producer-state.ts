import type { ProducerRef } from '@interlude/protocol/envelope';

/**
 * What makes ingest exactly-once: for each producer the server remembers its newest epoch and, within that, the last
 * sequence number on disk.
 *
 * Ordering: a record is taken only as the very next one of its epoch, so the log holds a producer's records in `seq`
 * order and without holes.
 * Failure: a lost answer costs nothing, because the records come again and are recognised. An epoch is fenced for good
 * once a newer one has written: a runner that wakes up late can't write into its successor's sequence.
 */
interface ProducerState {
  epoch: number;
  /** 0 before the first record of the epoch. */
  lastSeq: number;
}

type ProducerOutcome =
  | {
      kind: 'taken';
      lastSeq: number;
      /** The new records, as indexes into the batch, in `seq` order. The others are on disk already. */
      fresh: number[];
    }
  /** The batch begins beyond the next record; nothing of it may be taken. */
  | { kind: 'gap'; expectedSeq: number }
  /** A newer epoch has written. */
  | { kind: 'fenced'; currentEpoch: number }
  /** An epoch that has not written yet, and lies ahead of the clock. */
  | { kind: 'ahead'; currentEpoch: number | null };

/**
 * How far a new epoch may lie ahead of the server's clock. An epoch is the time at which an outbox was made, and one that
 * is ahead fences every outbox made before that time comes. A clock that nothing sets is off by a minute within weeks.
 */
const MAX_AHEAD_MS = 60_000;

/**
 * Decides about a batch. The only place that moves a producer's state; the caller writes `lastSeq` in the transaction
 * that writes the records.
 *
 * @param seqs the batch's sequence numbers, at least one, without a hole (repeats are allowed)
 * @param now epoch milliseconds
 */
export function commitProducer(
  stored: ProducerState | null,
  producer: ProducerRef,
  seqs: number[],
  now: number,
): ProducerOutcome {
  if (stored !== null && producer.epoch < stored.epoch) return { kind: 'fenced', currentEpoch: stored.epoch };
  // an earlier version let epochs lie a day ahead: those that wrote go on
  if (producer.epoch > Math.max(now + MAX_AHEAD_MS, stored?.epoch ?? 0)) {
    return { kind: 'ahead', currentEpoch: stored?.epoch ?? null };
  }
  let lastSeq = stored !== null && producer.epoch === stored.epoch ? stored.lastSeq : 0;
  if ((seqs[0] ?? 0) > lastSeq + 1) return { kind: 'gap', expectedSeq: lastSeq + 1 };
  const fresh: number[] = [];
  for (const [index, seq] of seqs.entries()) {
    if (seq !== lastSeq + 1) continue;
    fresh.push(index);
    lastSeq = seq;
  }
  return { kind: 'taken', lastSeq, fresh };
}
