import type { ProducerRef } from '@interlude/protocol/envelope';

interface ProducerState {
  epoch: number;
  /** 0 before the first record of the epoch. */
  lastSeq: number;
}

type ProducerOutcome =
  | {
      kind: 'appended';
      lastSeq: number;
      /** Indexes of the new records in `seq` order. The others are already on disk. */
      newIndexes: number[];
    }
  /** The batch starts beyond the next record. The caller must store none of its records. */
  | { kind: 'gap'; expectedSeq: number }
  /** A newer epoch has already written. */
  | { kind: 'fenced'; currentEpoch: number }
  /** The epoch is new and ahead of the server's clock. */
  | { kind: 'ahead'; currentEpoch: number | null };

/**
 * Milliseconds that a new epoch may be ahead of the server's clock. An epoch is the creation time of an outbox. One
 * that is ahead fences every outbox created before that time. An unsynchronized clock drifts by a minute within weeks.
 */
const MAX_AHEAD_MS = 60_000;

/**
 * Decides which records of a batch are new. The only code that advances a producer; the caller stores `lastSeq` in the
 * transaction that stores the records. Ingest is exactly-once because each producer's newest epoch and its last
 * sequence number are on disk.
 *
 * ```
 *  stored (epoch 7, lastSeq 41)
 *    batch (7, 40 41 42 43)   →  appends 42 43, counts 40 41 as duplicates
 *    batch (7, 43 44)         →  gap, expected 42
 *    batch (6, …)             →  fenced by epoch 7
 *    batch (8, 1 2)           →  appends 1 2; epoch 7 is fenced from now on
 * ```
 *
 * Ordering: a record is appended only as the next one of its epoch, so the log holds a producer's records in `seq`
 * order without gaps.
 * Failure: a lost response does no harm, since resent records are recognized. Once a newer epoch has written, older
 * ones are fenced for good, so a runner that wakes up late can't write into its successor's sequence.
 *
 * @param seqs at least one, without gaps; repeats are allowed
 * @param now epoch milliseconds
 */
export function commitProducer(
  stored: ProducerState | null,
  producer: ProducerRef,
  seqs: number[],
  now: number,
): ProducerOutcome {
  if (stored !== null && producer.epoch < stored.epoch) return { kind: 'fenced', currentEpoch: stored.epoch };
  // Earlier versions accepted epochs up to a day ahead. Those epochs stay valid once they have written.
  if (producer.epoch > Math.max(now + MAX_AHEAD_MS, stored?.epoch ?? 0)) {
    return { kind: 'ahead', currentEpoch: stored?.epoch ?? null };
  }
  let lastSeq = stored !== null && producer.epoch === stored.epoch ? stored.lastSeq : 0;
  if ((seqs[0] ?? 0) > lastSeq + 1) return { kind: 'gap', expectedSeq: lastSeq + 1 };
  const newIndexes: number[] = [];
  for (const [index, seq] of seqs.entries()) {
    if (seq !== lastSeq + 1) continue;
    newIndexes.push(index);
    lastSeq = seq;
  }
  return { kind: 'appended', lastSeq, newIndexes };
}
