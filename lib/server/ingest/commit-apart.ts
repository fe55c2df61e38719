import { AppError } from '@interlude/protocol/errors';
import { laterPosition } from '@interlude/protocol/position';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { truncateText } from '@interlude/protocol/text';
import { isInputsFault } from '@/db/database-error';
import { nextTurn } from '@/db/next-turn';
import type { WriteTransaction } from '@/db/writes';
import type { Batch, CommitOutcome } from './commit-batch';
import { rejection } from './judge-record';
import type { JudgedRecord } from './plan-batch';
import { scopeOf } from './scope-of';

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
export async function commitApart(
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
    await nextTurn();
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

async function partOf(batch: Batch, records: readonly JudgedRecord[]): Promise<Batch> {
  return { ...batch, records, scope: await scopeOf(batch.source, records) };
}

function setAside({ raw, judgement }: JudgedRecord): JudgedRecord & { judgement: { taken: false } } {
  return { raw, judgement: judgement.taken ? rejection(raw, 'not_storable', MESSAGE) : judgement };
}

/** The beginning of the record's JSON, without an owner, for a database that can't hold it whole or where it belongs. */
function beginningOf(record: JudgedRecord): JudgedRecord {
  const { raw, judgement } = setAside(record);
  const json = JSON.stringify(raw);
  const kept = { seq: raw.seq, length: json.length, beginning: truncateText(json, KEPT_LENGTH) };
  return { raw: kept, judgement: { ...judgement, agentId: null, sessionId: null } };
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
