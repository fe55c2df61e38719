import type { WriteTransaction } from '@/db/write-queue';
import { appendBatch } from '@/lib/event-log/append-batch';
import type { BatchScope } from '@/lib/event-log/batch-scope';
import { commitProducer } from '@/lib/event-log/producer-state';
import { type BatchState, readBatchState } from '@/lib/event-log/read-batch-state';
import type { IngestAnswer, ProducerRef } from '@/lib/protocol/envelope';
import { positionFromNumber } from '@/lib/protocol/position';
import type { ProducerSummary } from '@/lib/protocol/read-models';
import { type JudgedRecord, planBatch } from './plan-batch';
import type { Opening } from './stamp-requests';

export type CommitOutcome =
  | { kind: 'answered'; answer: IngestAnswer; openings: Opening[] }
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; currentEpoch: number };

export interface Batch {
  source: ProducerRef;
  records: JudgedRecord[];
  scope: BatchScope;
  receivedAt: number;
}

/**
 * Producer check, rows and read models in the one transaction it is given: read once, decide, write once.
 * @param gaps how often this producer was refused for a gap since its row was last written
 */
export async function commitBatch(transaction: WriteTransaction, batch: Batch, gaps: number): Promise<CommitOutcome> {
  const { source, records, receivedAt } = batch;
  const state = await readBatchState(transaction, batch.scope);
  const outcome = commitProducer(
    state.producer,
    source,
    records.map(({ raw }) => raw.seq),
  );
  if (outcome.kind === 'gap' || outcome.kind === 'fenced') return outcome;
  const { lastSeq } = outcome.state;
  const producer = advance(state.producer, source, { lastSeq, duplicates: outcome.duplicates, gaps });
  const fresh = outcome.kind === 'appended' ? outcome.fresh.map((index) => records[index] as JudgedRecord) : [];
  const { rows, rejected, openings } = await planBatch(state, source, producer, fresh, receivedAt);
  await appendBatch(transaction, rows);
  const accepted = fresh.length - rejected.length;
  const position = positionFromNumber(rows.position);
  return {
    kind: 'answered',
    answer: { ackedSeq: lastSeq, accepted, duplicates: outcome.duplicates, rejected, position },
    openings,
  };
}

function advance(
  stored: BatchState['producer'],
  source: ProducerRef,
  { lastSeq, duplicates, gaps }: { lastSeq: number; duplicates: number; gaps: number },
): ProducerSummary {
  return {
    ...(stored ?? { agentId: null, accepted: 0, rejected: 0, lost: 0, clockSkewMs: null, lastSeenAt: 0 }),
    id: source.id,
    epoch: source.epoch,
    lastSeq,
    duplicates: (stored?.duplicates ?? 0) + duplicates,
    gaps: (stored?.gaps ?? 0) + gaps,
  };
}
