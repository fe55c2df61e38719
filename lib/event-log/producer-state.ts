import type { ProducerRef } from '@/lib/protocol/envelope';

/**
 * What makes ingest exactly-once: of each producer the server remembers its newest epoch and, within that, the last
 * sequence number on disk.
 *
 * Ordering: a record is taken only as the very next one of its epoch, so the log holds a producer's records in `seq`
 * order and without holes.
 * Failure: an answer that was lost costs nothing, because the records come again and are known. An epoch is fenced for
 * good once a newer one has written: a runner that woke up late can't write into its successor's sequence.
 */
export interface ProducerState {
  epoch: number;
  /** 0 before the first record of the epoch. */
  lastSeq: number;
}

export type ProducerOutcome =
  | {
      kind: 'appended';
      state: ProducerState;
      /** Which records of the batch are new, as indexes into it, in `seq` order. */
      fresh: number[];
      duplicates: number;
    }
  /** Everything was on disk already. */
  | { kind: 'duplicate'; state: ProducerState; duplicates: number }
  /** The batch begins beyond the next record; nothing of it may be taken. */
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; currentEpoch: number };

type EpochRelation = 'first' | 'newer' | 'same' | 'older';
type SeqRelation = 'beyond' | 'within';

/** Every epoch × every beginning of a batch. */
const TABLE: Record<EpochRelation, Record<SeqRelation, 'take' | 'gap' | 'fenced'>> = {
  first: { within: 'take', beyond: 'gap' },
  newer: { within: 'take', beyond: 'gap' },
  same: { within: 'take', beyond: 'gap' },
  older: { within: 'fenced', beyond: 'fenced' },
};

/**
 * Decides about a batch. The one place that moves a producer's state; who calls it writes the state it returns in the
 * transaction that writes the records.
 *
 * @param seqs the batch's sequence numbers, at least one, without a hole (repeats are allowed)
 */
export function commitProducer(stored: ProducerState | null, producer: ProducerRef, seqs: number[]): ProducerOutcome {
  const relation = relationOf(stored, producer);
  const before = stored !== null && relation === 'same' ? stored.lastSeq : 0;
  const first = seqs[0] ?? 0;
  switch (TABLE[relation][first > before + 1 ? 'beyond' : 'within']) {
    case 'fenced':
      return { kind: 'fenced', currentEpoch: stored?.epoch ?? producer.epoch };
    case 'gap':
      return { kind: 'gap', expectedSeq: before + 1 };
    case 'take': {
      const fresh: number[] = [];
      let lastSeq = before;
      for (const [index, seq] of seqs.entries()) {
        if (seq !== lastSeq + 1) continue;
        fresh.push(index);
        lastSeq = seq;
      }
      const state = { epoch: producer.epoch, lastSeq };
      const duplicates = seqs.length - fresh.length;
      return fresh.length === 0
        ? { kind: 'duplicate', state, duplicates }
        : { kind: 'appended', state, fresh, duplicates };
    }
  }
}

function relationOf(stored: ProducerState | null, producer: ProducerRef): EpochRelation {
  if (stored === null) return 'first';
  if (producer.epoch === stored.epoch) return 'same';
  return producer.epoch > stored.epoch ? 'newer' : 'older';
}
