import { SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import type { Reader } from '@/db/reader';
import { type RowSweep, withinBytes } from '@/db/row-sweep';
import { columnText } from '@/db/table-rows';
import { usedBytes } from '@/db/used-bytes';
import type { WriteTransaction } from '@/db/writes';
import { batchingReader, findCut, type Limit, removeOldTurns } from './remove-turns';
import type { HistoryRetention } from './retention-settings';

/**
 * Positions up to which history is removed: of turns, by the state of their session; `elsewhere`: of rows without a
 * turn.
 */
export type Limits = Readonly<Record<SessionState, Limit> & { elsewhere: number }>;

const NOTHING: Limit = { position: 0, before: 0 };

/** Runs a slice of work, then pauses. */
export type RunSlice = (slice: () => Promise<void>) => Promise<void>;

const SESSIONS_AT_ONCE = 500;
/** Younger history stays even if the database is too large, because an operator may be reading it. */
const MIN_AGE_MS = 60 * 60_000;
/** A database over the size limit loses 1/PARTS of its events per step, at most EVENTS_AT_ONCE. */
const PARTS = 20;
const EVENTS_AT_ONCE = 20_000;
export async function limitsByAge(
  { reader }: Pick<Database, 'reader'>,
  retention: HistoryRetention,
  now: number,
): Promise<Limits> {
  const known = new Map<number, Promise<Limit>>();
  const limitOf = (ageMs: number) => {
    const limit = known.get(ageMs) ?? olderThan(reader, now - ageMs);
    known.set(ageMs, limit);
    return limit;
  };
  const limits = everywhere(NOTHING, (await limitOf(retention.elsewhereMs)).position);
  for (const state of SESSION_STATES) limits[state] = await limitOf(retention.maxAgeMs[state]);
  return limits;
}

async function olderThan(reader: Database['reader'], before: number): Promise<Limit> {
  return Number.isFinite(before) ? { position: await positionAt(reader, before), before } : NOTHING;
}

function everywhere(limit: Limit, elsewhere: number): Record<SessionState, Limit> & { elsewhere: number } {
  const ofStates = Object.fromEntries(SESSION_STATES.map((state) => [state, limit])) as Record<SessionState, Limit>;
  return { ...ofStates, elsewhere };
}

/**
 * Removes the oldest history step by step until the database, without its logs, fits the size limit. Steps count
 * existing events, since open history may be much older than the rest.
 *
 * @returns false if the database is still too large and nothing more can be removed
 */
export async function removeBySize(
  { reader }: Pick<Database, 'reader'>,
  { maxBytes, alwaysKept }: HistoryRetention,
  now: number,
  remove: (limits: Limits) => Promise<void>,
): Promise<boolean> {
  if (maxBytes === Number.POSITIVE_INFINITY) return true;
  const isSmall = async () => ((await usedBytes(reader)) ?? 0) <= maxBytes;
  if (await isSmall()) return true;
  const most = await olderThan(reader, now - MIN_AGE_MS);
  // Limited, so that a libSQL server responds within seconds.
  const { rows } = await reader.execute(
    `SELECT count(*) AS count FROM (SELECT 1 FROM events LIMIT ${PARTS * EVENTS_AT_ONCE})`,
  );
  const step = Math.floor(Number(rows[0]?.count) / PARTS);
  for (let position = 0; position < most.position; ) {
    const { rows: ahead } = await reader.execute({
      sql: 'SELECT position FROM events WHERE position > ? ORDER BY position LIMIT 1 OFFSET ?',
      args: [position, step],
    });
    position = Math.min(most.position, Number(ahead[0]?.position ?? most.position));
    const limits = everywhere({ ...most, position }, position);
    for (const state of alwaysKept) limits[state] = NOTHING;
    await remove(limits);
    if (await isSmall()) return true;
  }
  return false;
}

/**
 * Removes each session's history up to the limit of its state.
 *
 * Failure: a session that fails is skipped, see RowSweep. The next call continues.
 */
export async function removeHistory(
  database: Database,
  rows: RowSweep,
  limits: Limits,
  now: number,
  paced: RunSlice,
): Promise<void> {
  const most = Math.max(...SESSION_STATES.map((state) => limits[state].position));
  for (let after = 0; most > 0; ) {
    const { rows: sessions } = await database.reader.execute({
      sql: `SELECT number, id, state, (SELECT position FROM events WHERE session_id = sessions.id ORDER BY position LIMIT 1) AS first
        FROM sessions WHERE number > ? ORDER BY number LIMIT ${SESSIONS_AT_ONCE}`,
      args: [after],
    });
    for (const { id, state, first } of sessions) {
      const limit = limits[state as SessionState];
      if (first === null || Number(first) > limit.position) continue;
      await removeOf(database, rows, String(id), limit, now, paced);
    }
    const last = sessions.at(-1);
    if (last === undefined) return;
    after = Number(last.number);
  }
}

async function removeOf(
  { reader, writes }: Database,
  rows: RowSweep,
  sessionId: string,
  limit: Limit,
  now: number,
  paced: RunSlice,
): Promise<void> {
  await rows.run({
    kind: 'old turns of session',
    due: { table: 'sessions', key: 'id', where: 'id = ?1', args: [sessionId] },
    work: async ({ except }) => {
      if (except.includes(sessionId)) return 0;
      let removed = 0;
      await paced(async () => {
        // Looks for a cut before queueing a write.
        if ((await findCut(batchingReader(reader), sessionId, limit)) === null) return;
        if (await writes.run((transaction) => removeOldTurns(transaction, sessionId, limit, now))) removed = 1;
      });
      if (removed > 0) return removed;
      const { rows: gone } = await reader.execute(goneEvents(sessionId, 0, 1));
      for (let after: number | null = gone.length === 0 ? null : 0; after !== null; ) {
        const from: number = after;
        // Ends the loop if the pacer skips this slice, because retention is stopping.
        after = null;
        await paced(async () => {
          after = await writes.run((transaction) => removeOldEvents(transaction, sessionId, from));
        });
      }
      return 0;
    },
  });
}

/**
 * Finds the newest position up to which everything was received before a time, by binary search: positions follow the
 * server's clock.
 *
 * @param before epoch milliseconds on the server's clock
 * @returns 0 if there is none
 */
export async function positionAt(reader: Pick<Reader, 'execute'>, before: number): Promise<number> {
  const { rows } = await reader.execute('SELECT max(position) AS position FROM events');
  let [low, high] = [0, Number(rows[0]?.position ?? 0)];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { rows: next } = await reader.execute({
      sql: 'SELECT position, received_at FROM events WHERE position > ? ORDER BY position LIMIT 1',
      args: [middle],
    });
    const [event] = next;
    if (event === undefined || Number(event.received_at) >= before) high = middle;
    else low = Number(event.position);
  }
  return low;
}

/** Maximum events and bytes per transaction, for which ingest may have to wait. */
const EVENTS_PER_SLICE = 500;
const EVENT_BYTES_PER_SLICE = 8 * 1024 * 1024;

/**
 * Removes a slice of events before a session's cut. Keeps events that a later turn shows, such as a message that waited
 * for that turn, and events of tasks that still exist.
 *
 * @param after result of the last call; 0 at first
 * @returns the position reached; null once nothing is left
 */
export async function removeOldEvents(
  transaction: WriteTransaction,
  sessionId: string,
  after: number,
): Promise<number | null> {
  const { rows } = await transaction.execute(goneEvents(sessionId, after, EVENTS_PER_SLICE));
  const gone = withinBytes(rows, EVENT_BYTES_PER_SLICE).map(({ position }) => Number(position));
  if (gone.length === 0) return null;
  await transaction.execute({
    sql: 'DELETE FROM events WHERE position IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(gone)],
  });
  return gone.at(-1) ?? null;
}

/** Selects events that are no longer shown, oldest first. */
function goneEvents(sessionId: string, after: number, limit: number) {
  return {
    sql: `SELECT position, octet_length(payload) AS size FROM events AS e WHERE session_id = ?1 AND position > ?2
        AND position <= (SELECT removed_up_to FROM sessions WHERE id = ?1)
        AND CASE
          WHEN name = 'task:output' THEN NOT EXISTS (
            SELECT 1 FROM tasks WHERE session_id = ?1 AND position = CAST(e.entity_id AS INTEGER))
          WHEN turn_id LIKE 'task:%' THEN NOT EXISTS (
            SELECT 1 FROM tasks WHERE session_id = ?1 AND id = substr(e.turn_id, 6))
          WHEN turn_id IS NULL THEN true
          ELSE NOT EXISTS (SELECT 1 FROM turns WHERE session_id = ?1 AND id = e.turn_id)
        END
      ORDER BY position LIMIT ${limit}`,
    args: [columnText(sessionId), after],
  } satisfies InStatement;
}
