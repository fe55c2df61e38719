import { type IngestResponse, SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { laterPosition, positionFromNumber } from '@interlude/protocol/position';
import { reachesAgent } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { truncateText } from '@interlude/protocol/text';
import { isInputError } from '@/db/database-error';
import type { WriteTransaction } from '@/db/writes';
import { yieldToLoop } from '@/db/yield-to-loop';
import { appendBatch } from '@/lib/server/event-log/append-batch';
import type { BatchScope } from '@/lib/server/event-log/batch-scope';
import { commitProducer } from '@/lib/server/event-log/producer-state';
import { type BatchState, readBatchState, readQuarantined } from '@/lib/server/event-log/read-batch-state';
import { collectScope } from './collect-scope';
import { planBatch } from './plan-batch';
import { type AliasedBatch, type AliasedIds, renameSessions, resolveAliases, storeAliases } from './session-aliases';
import type { Opening } from './stamp-requests';
import { rejection, type ValidatedRecord } from './validate-record';

export type CommitOutcome =
  /** `sessionByAlias`: ids of sessions that the sender knows by an alias. */
  | { kind: 'answered'; answer: IngestResponse; openings: Opening[]; sessionByAlias: AliasedIds }
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; currentEpoch: number }
  | { kind: 'ahead'; currentEpoch: number | null }
  /** The outbox belongs to an agent outside the sender's scope. */
  | { kind: 'foreign' };

export interface Batch extends AliasedBatch {
  receivedAt: number;
}

/**
 * Checks the producer, then writes rows and read models in the caller's transaction: one read, one plan, one write.
 *
 * Ordering: a record is appended only as the next `seq` of its producer, and rows take positions in `seq` order.
 * Failure: an outcome other than `answered` has written nothing.
 *
 * @param gaps number of batches of this producer refused for a gap since its row was last written
 */
export async function commitBatch(transaction: WriteTransaction, sent: Batch, gaps: number): Promise<CommitOutcome> {
  const found = await readBatchState(transaction, sent.scope);
  const sessionByAlias = resolveAliases(sent, found);
  const { records, scope } = await renameSessions(sent, sessionByAlias);
  // Reads twice for a new session even if nothing was renamed: the response time must not reveal that an id is in use.
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
  if (outcome.kind !== 'appended') return outcome;
  const { lastSeq } = outcome;
  const newRecords = outcome.newIndexes.map((index) => records[index] as ValidatedRecord);
  const duplicates = records.length - newRecords.length;
  const before = state.producer ?? NEW_PRODUCER;
  const counts = { lastSeq, duplicates: before.duplicates + duplicates, gaps: before.gaps + gaps };
  const producer = { ...before, ...source, ...counts };
  const { rows, rejected, openings } = await planBatch(state, source, producer, newRecords, receivedAt);
  // Request digests cover the positions, so these must be final.
  if (openings.length > 0) transaction.fixPositions();
  // The server uses positions as seq numbers.
  if (isServer) rows.position = Math.max(rows.position, lastSeq);
  await storeAliases(transaction, sessionByAlias, found);
  await appendBatch(transaction, rows);
  const accepted = newRecords.length - rejected.length;
  // The counter would reveal to a scoped runner how busy other agents are.
  const isOwn = rows.position > state.position || reach.kind === 'everything';
  const position = positionFromNumber(isOwn ? rows.position : 0);
  const response = { ackedSeq: lastSeq, accepted, duplicates, rejected, position };
  return { kind: 'answered', answer: response, openings, sessionByAlias };
}

function beginsSession({ scope }: Batch, { sessions }: BatchState): boolean {
  return [...scope.sessionIds].some((id) => !sessions.has(id));
}

/** Touches the keys of all rows that were read. The plan stays valid while no other transaction touches these keys. */
function touchAll(transaction: WriteTransaction, scope: BatchScope, state: BatchState): void {
  if (scope.producerId !== SERVER_PRODUCER_ID) transaction.touch(`producer:${scope.producerId}`);
  for (const id of [...scope.agentIds, ...state.agents.keys()]) transaction.touch(`agent:${id}`);
  for (const { summary } of state.sessions.values()) transaction.touch(`agent:${summary.agentId}`);
  for (const id of scope.sessionIds) if (!state.sessions.has(id)) transaction.touch(`session:${id}`);
}

const NONE = { accepted: 0, duplicates: 0, gaps: 0, rejected: 0, lost: 0 };
const NEW_PRODUCER = { ...NONE, agentId: null, clockSkewMs: null, lastSeenAt: 0 };

/**
 * Maximum tries. Bisecting finds a refused record in a few tries; beyond this limit, the remaining part is quarantined
 * with it.
 */
const MAX_FOUND = 32;
/** Length of the excerpt to keep of a record that is too large even for a quarantine row. */
const KEPT_LENGTH = 256 * 1024;
const MESSAGE = 'The database can’t store this record. See the server’s log for the cause.';

type Commit = typeof commitBatch;

/** True if the records are at fault: on each retry, the database would refuse them, or our own code would throw. */
export function isRefusal(error: unknown): boolean {
  return !(error instanceof AppError) && isInputError(error);
}

/**
 * Commits a batch that was refused as a whole by bisecting it. A record that is refused alone is quarantined as
 * `not_storable`; the others are stored.
 *
 * Ordering: parts are committed in `seq` order.
 * Failure: each try runs behind a savepoint of the caller's transaction, so the batch is stored whole or not at all. An error that
 * is not a refusal aborts everything.
 */
export async function commitInParts(
  transaction: WriteTransaction,
  batch: Batch,
  gaps: number,
  commit: Commit,
): Promise<CommitOutcome> {
  let found = 0;
  return part(batch, gaps);

  async function part(some: Batch, gapCount: number): Promise<CommitOutcome> {
    const { records } = some;
    const tried = await attempt(some, gapCount);
    if (tried !== null) return tried;
    if (records.length > 1 && found < MAX_FOUND) {
      const middle = records.length >> 1;
      const first = await part(await partOf(some, records.slice(0, middle)), gapCount);
      if (first.kind !== 'answered') return first;
      return mergeOutcomes(first, await part(await partOf(some, records.slice(middle)), 0));
    }
    found += records.length;
    const quarantined = await attempt(await partOf(some, records.map(asRejected)), gapCount);
    return quarantined ?? commit(transaction, await partOf(some, records.map(asExcerpt)), gapCount);
  }

  /** @returns null if the part was refused and rolled back */
  async function attempt(some: Batch, gapCount: number): Promise<CommitOutcome | null> {
    await yieldToLoop();
    await transaction.execute('SAVEPOINT part');
    try {
      const outcome = await commit(transaction, some, gapCount);
      await transaction.execute('RELEASE part');
      return outcome;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (some.records.length === 1) serverLog('warn', 'the database refused a record', { error });
      await transaction.execute('ROLLBACK TO part');
      await transaction.execute('RELEASE part');
      return null;
    }
  }
}

async function partOf(batch: Batch, records: readonly ValidatedRecord[]): Promise<Batch> {
  return { ...batch, records, scope: await collectScope(batch.source, records) };
}

function asRejected({ raw, validation }: ValidatedRecord): ValidatedRecord & { validation: { isValid: false } } {
  return { raw, validation: validation.isValid ? rejection(raw, 'not_storable', MESSAGE) : validation };
}

/**
 * Quarantines the start of the record's JSON without an owner, for a database that can't store the whole record or its
 * ids.
 */
function asExcerpt(record: ValidatedRecord): ValidatedRecord {
  const { raw, validation } = asRejected(record);
  const json = JSON.stringify(raw);
  const excerpt = { seq: raw.seq, length: json.length, beginning: truncateText(json, KEPT_LENGTH) };
  return { raw: excerpt, validation: { ...validation, agentId: null, sessionId: null } };
}

function mergeOutcomes(first: CommitOutcome & { kind: 'answered' }, second: CommitOutcome): CommitOutcome {
  if (second.kind !== 'answered') return second;
  const [a, b] = [first.answer, second.answer];
  return {
    kind: 'answered',
    openings: [...first.openings, ...second.openings],
    sessionByAlias: new Map([...first.sessionByAlias, ...second.sessionByAlias]),
    answer: {
      ackedSeq: Math.max(a.ackedSeq, b.ackedSeq),
      accepted: a.accepted + b.accepted,
      duplicates: a.duplicates + b.duplicates,
      rejected: [...a.rejected, ...b.rejected],
      position: laterPosition(a.position, b.position),
    },
  };
}
