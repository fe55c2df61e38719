import { type IngestAnswer, SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { positionFromNumber } from '@interlude/protocol/position';
import { reachesAgent } from '@interlude/protocol/scope';
import type { WriteTransaction } from '@/db/writes';
import { appendBatch } from '@/lib/server/event-log/append-batch';
import type { BatchScope } from '@/lib/server/event-log/batch-scope';
import { commitProducer } from '@/lib/server/event-log/producer-state';
import { type BatchState, readBatchState, readQuarantined } from '@/lib/server/event-log/read-batch-state';
import { type JudgedRecord, planBatch } from './plan-batch';
import { type AliasedBatch, type AliasedIds, aliasedIn, renamed, storeAliases } from './session-aliases';
import type { Opening } from './stamp-requests';

export type CommitOutcome =
  /** `sessionByAlias`: the ids of sessions that the sender knows by an alias. */
  | { kind: 'answered'; answer: IngestAnswer; openings: Opening[]; sessionByAlias: AliasedIds }
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; currentEpoch: number }
  | { kind: 'ahead'; currentEpoch: number | null }
  /** The outbox is of an agent that the sender may not speak for. */
  | { kind: 'foreign' };

export interface Batch extends AliasedBatch {
  receivedAt: number;
}

/**
 * Checks the producer and writes rows and read models in the transaction it is given: reads once, decides, writes once.
 * @param gaps how often this producer has been refused for a gap since its row was last written
 */
export async function commitBatch(transaction: WriteTransaction, sent: Batch, gaps: number): Promise<CommitOutcome> {
  const found = await readBatchState(transaction, sent.scope);
  const sessionByAlias = aliasedIn(sent, found);
  const { records, scope } = await renamed(sent, sessionByAlias);
  // Also if nothing was renamed: the response time would reveal whether an id is in use.
  const isReadAgain = sessionByAlias.size > 0 || (sent.aliasSecret !== null && beginsSession(sent, found));
  const state = isReadAgain ? await readBatchState(transaction, scope) : found;
  touchAll(transaction, scope, state);
  const { source, reach, receivedAt } = sent;
  const owner = state.producer?.agentId ?? null;
  if (owner !== null && !reachesAgent(reach, owner)) return { kind: 'foreign' };
  await readQuarantined(transaction, scope, state);
  const seqs = records.map(({ raw }) => raw.seq);
  const isServer = source.id === SERVER_PRODUCER_ID;
  const stored = isServer ? { epoch: source.epoch, lastSeq: (seqs[0] ?? 1) - 1 } : state.producer;
  const outcome = commitProducer(stored, source, seqs, receivedAt);
  if (outcome.kind !== 'taken') return outcome;
  const { lastSeq } = outcome;
  const fresh = outcome.fresh.map((index) => records[index] as JudgedRecord);
  const duplicates = records.length - fresh.length;
  const before = state.producer ?? NEW_PRODUCER;
  const counts = { lastSeq, duplicates: before.duplicates + duplicates, gaps: before.gaps + gaps };
  const producer = { ...before, ...source, ...counts };
  const { rows, rejected, openings } = await planBatch(state, source, producer, fresh, receivedAt);
  // their digests are over the positions at which they were opened
  if (openings.length > 0) transaction.fixPositions();
  // its numbers are positions
  if (isServer) rows.position = Math.max(rows.position, lastSeq);
  await storeAliases(transaction, sessionByAlias, found);
  await appendBatch(transaction, rows);
  const accepted = fresh.length - rejected.length;
  // The counter, had nothing of this taken a position, would tell a runner with a scope how busy others are.
  const isOwn = rows.position > state.position || reach.kind === 'everything';
  const own = isOwn ? rows.position : NOTHING_NEW;
  const position = positionFromNumber(own);
  const answer = { ackedSeq: lastSeq, accepted, duplicates, rejected, position };
  return { kind: 'answered', answer, openings, sessionByAlias };
}

function beginsSession({ scope }: Batch, { sessions }: BatchState): boolean {
  return [...scope.sessionIds].some((id) => !sessions.has(id));
}

/** All that was read is under these keys: what is planned from it stands as long as nobody touches them. */
function touchAll(transaction: WriteTransaction, scope: BatchScope, state: BatchState): void {
  if (scope.producerId !== SERVER_PRODUCER_ID) transaction.touch(`producer:${scope.producerId}`);
  for (const id of [...scope.agentIds, ...state.agents.keys()]) transaction.touch(`agent:${id}`);
  for (const { summary } of state.sessions.values()) transaction.touch(`agent:${summary.agentId}`);
  for (const id of scope.sessionIds) if (!state.sessions.has(id)) transaction.touch(`session:${id}`);
}

/** Before everything. */
const NOTHING_NEW = 0;

const NONE = { accepted: 0, duplicates: 0, gaps: 0, rejected: 0, lost: 0 };
const NEW_PRODUCER = { ...NONE, agentId: null, clockSkewMs: null, lastSeenAt: 0 };
