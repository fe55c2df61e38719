import { cutText } from '@interlude/protocol/cut-text';
import { type IngestAnswer, SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { laterPosition, positionFromNumber } from '@interlude/protocol/position';
import { reachesAgent } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { isInputsFault } from '@/db/database-error';
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
  const sessionByAlias = resolveAliases(sent, found);
  const { records, scope } = await renameSessions(sent, sessionByAlias);
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
  const fresh = outcome.fresh.map((index) => records[index] as ValidatedRecord);
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

/** Finding a refused record takes a few tries: beyond this many, the rest of a part is set aside with them. */
const MOST_FOUND = 32;
/** How much is kept of a record that is refused even in quarantine, because it is larger than a row may be. */
const KEPT_LENGTH = 256 * 1024;
const MESSAGE = 'The database refuses to hold this record. What caused it is in the server’s own log.';

type Commit = (transaction: WriteTransaction, batch: Batch, gaps: number) => Promise<CommitOutcome>;

/** Whether the records are at fault: they would be refused, or fail our own code, every time. */
export function isRefusal(error: unknown): boolean {
  return !(error instanceof AppError) && isInputsFault(error);
}

/**
 * Commits a batch that was refused as a whole, part by part: a record that is refused by itself goes into quarantine as
 * `not_storable`, and the others are taken as usual.
 *
 * Ordering: parts are committed in `seq` order.
 * Failure: each try is behind a savepoint of the one transaction it is given, so all of it happens or nothing. An error
 * that is not a refusal ends it all.
 *
 * @param commit takes a part, or throws
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
    if (records.length > 1 && found < MOST_FOUND) {
      const middle = records.length >> 1;
      const first = await part(await partOf(some, records.slice(0, middle)), gapCount);
      if (first.kind !== 'answered') return first;
      return joined(first, await part(await partOf(some, records.slice(middle)), 0));
    }
    found += records.length;
    const aside = await attempt(await partOf(some, records.map(setAside)), gapCount);
    return aside ?? commit(transaction, await partOf(some, records.map(beginningOf)), gapCount);
  }

  /** @returns null if it was refused, and undone */
  async function attempt(some: Batch, gapCount: number): Promise<CommitOutcome | null> {
    // others go first: a search like this can wait
    await yieldToLoop();
    await transaction.execute('SAVEPOINT apart');
    try {
      const outcome = await commit(transaction, some, gapCount);
      await transaction.execute('RELEASE apart');
      return outcome;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (some.records.length === 1) serverLog('warn', 'a record is refused by the database', { error });
      await transaction.execute('ROLLBACK TO apart');
      await transaction.execute('RELEASE apart');
      return null;
    }
  }
}

async function partOf(batch: Batch, records: readonly ValidatedRecord[]): Promise<Batch> {
  return { ...batch, records, scope: await collectScope(batch.source, records) };
}

function setAside({ raw, validation }: ValidatedRecord): ValidatedRecord & { validation: { isValid: false } } {
  return { raw, validation: validation.isValid ? rejection(raw, 'not_storable', MESSAGE) : validation };
}

/** The beginning of the record's JSON, without an owner, for a database that can't hold it whole or where it belongs. */
function beginningOf(record: ValidatedRecord): ValidatedRecord {
  const { raw, validation } = setAside(record);
  const json = JSON.stringify(raw);
  const kept = { seq: raw.seq, length: json.length, beginning: cutText(json, KEPT_LENGTH) };
  return { raw: kept, validation: { ...validation, agentId: null, sessionId: null } };
}

function joined(first: CommitOutcome & { kind: 'answered' }, second: CommitOutcome): CommitOutcome {
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
