import { Pace } from '@/db/next-turn';
import type { WriteTransaction } from '@/db/write-queue';
import { appendBatch } from '@/lib/event-log/append-batch';
import { commitProducer } from '@/lib/event-log/producer-state';
import { type BatchScope, type BatchState, readBatchState } from '@/lib/event-log/read-batch-state';
import { saidKey } from '@/lib/event-log/said-rows';
import { obligationsTouchedBy } from '@/lib/projections/obligations';
import { endsEveryTask, wakesUnsaid } from '@/lib/projections/tasks';
import type { IngestAnswer, ProducerRef } from '@/lib/protocol/envelope';
import { readInsight } from '@/lib/protocol/insight';
import { positionFromNumber } from '@/lib/protocol/position';
import type { ProducerSummary } from '@/lib/protocol/read-models';
import { isFailure } from '@/lib/protocol/signals';
import { type JudgedRecord, planBatch } from './plan-batch';
import { SnapshotRoom } from './snapshot-room';
import type { Opening } from './stamp-requests';
import { tasksSpokenOf } from './task-owners';

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

/** Everything a batch may touch, so that it is read in one go. However much that is, others get their turns meanwhile. */
export async function scopeOf(source: ProducerRef, records: readonly JudgedRecord[]): Promise<BatchScope> {
  const pace = new Pace();
  const sessionIds = new Set<string>();
  const agentIds = new Set<string>();
  const logAgentIds = new Set<string>();
  const openSessionsOf = new Set<string>();
  const taskIds: BatchScope['taskIds'] = [];
  const seenTasks = new Map<string, Set<string>>();
  const obligations = new Map<string, { messageIds: Set<string>; settles: boolean }>();
  const said = new Map<string, BatchScope['said'][number]>();
  const snapshots = new SnapshotRoom(null);
  const endedSessionIds = new Set<string>();
  const wokenSessionIds = new Set<string>();
  let allProducerSessions = false;
  await pace.each(records, ({ judgement }) => {
    const { agentId, sessionId } = judgement.taken ? idsOf(judgement.record) : judgement;
    if (agentId !== null) agentIds.add(agentId);
    if (sessionId !== null) sessionIds.add(sessionId);
    if (!judgement.taken) return;
    const { record } = judgement;
    if (record.kind === 'failures-seen') for (const id of record.sessionIds) sessionIds.add(id);
    if (record.kind === 'lost' && sessionId === null) {
      allProducerSessions = true;
      openSessionsOf.add(record.agentId);
    }
    if (record.kind === 'log') {
      const insight = readInsight(record.log.insight);
      logAgentIds.add(record.agentId);
      if (insight?.session?.id) sessionIds.add(insight.session.id);
      else if (insight?.session === null && isFailure(insight, record.log.level)) openSessionsOf.add(record.agentId);
    }
    if (record.kind !== 'event') return;
    const entry = { position: '0', occurredAt: 0, receivedAt: 0, event: record.event };
    for (const { id, text } of snapshots.partsOf(record.sessionId, record.event)) {
      const key = saidKey(record.sessionId, id);
      // once, however often it is spoken of: its rows are told one after the other, each as they are read
      const length = Math.max(said.get(key)?.length ?? 0, text.length);
      said.set(key, { sessionId: record.sessionId, id, length });
    }
    const touched = obligationsTouchedBy([entry]);
    if (touched.settles || touched.messageIds.length > 0) {
      const known = obligations.get(record.sessionId) ?? { messageIds: new Set(), settles: false };
      obligations.set(record.sessionId, known);
      known.settles ||= touched.settles;
      for (const id of touched.messageIds) known.messageIds.add(id);
    }
    if (endsEveryTask([entry])) endedSessionIds.add(record.sessionId);
    if (wakesUnsaid([entry])) wokenSessionIds.add(record.sessionId);
    const spokenOf = tasksSpokenOf(record.event);
    if (spokenOf.length === 0) return;
    const session = `${JSON.stringify(record.agentId)} ${record.sessionId}`;
    const seen = seenTasks.get(session) ?? new Set<string>();
    seenTasks.set(session, seen);
    for (const { id: taskId, runId } of spokenOf) {
      const key = runId === null ? `=${taskId}` : JSON.stringify([taskId, runId]);
      if (!seen.has(key)) taskIds.push({ agentId: record.agentId, sessionId: record.sessionId, taskId, runId });
      seen.add(key);
    }
  });
  return {
    producerId: source.id,
    obligations: [...obligations].map(([sessionId, { messageIds, settles }]) => ({
      sessionId,
      messageIds: [...messageIds],
      settles,
    })),
    sessionIds: [...sessionIds],
    agentIds: [...agentIds],
    logAgentIds: [...logAgentIds],
    openSessionsOf: [...openSessionsOf],
    taskIds,
    said: [...said.values()],
    endedSessionIds: [...endedSessionIds],
    wokenSessionIds: [...wokenSessionIds],
    allProducerSessions,
  };
}

function idsOf(record: { agentId: string; sessionId?: unknown; kind: string }) {
  const sessionId = record.kind !== 'log' && typeof record.sessionId === 'string' ? record.sessionId : null;
  return { agentId: record.agentId, sessionId };
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
