import { SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import type { Database } from '@/db/client';
import type { RowSweep } from '@/db/row-sweep';
import { askingOf, findCut, type Limit } from './find-cut';
import { positionAt } from './position-at';
import { goneEvents, removeOldEvents } from './remove-events';
import { removeOldTurns } from './remove-turns';
import type { HistoryRetention } from './retention-settings';
import { usedBytes } from './used-bytes';

/** What may go: of the turns by the state of their session, and up to which position of what belongs to no turn. */
export type Limits = Readonly<Record<SessionState, Limit> & { elsewhere: number }>;

const NOTHING: Limit = { position: 0, before: 0 };

/** Where a slice of work gets its turn, and others theirs. */
export type Paced = (slice: () => Promise<void>) => Promise<void>;

/** Sessions that are looked at together. */
const SESSIONS_AT_ONCE = 500;
/** Whatever the size: an operator may still be reading it. */
const LEAST_AGE_MS = 60 * 60_000;
/** Of a database that is too large, this part of all events goes at once, of many no more than this. */
const PARTS = 20;
const EVENTS_AT_ONCE = 20_000;

/** What is too old by a time. */
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
 * Removes the oldest of everything, and step by step more of it, while the database is too large without its logs, which
 * have a limit of their own. Steps are counted in events that are there: what has to stay may be far older than the rest.
 *
 * @returns false if it is too large still, and nothing more can go
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
  const most = await olderThan(reader, now - LEAST_AGE_MS);
  // a server answers within seconds, however many there are
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
 * Removes, session by session, what stands in front of the limit of its state.
 *
 * Failure: a session that can't be worked on is left alone, see RowSweep. What was not done is found at the next call.
 */
export async function removeHistory(
  database: Database,
  rows: RowSweep,
  limits: Limits,
  now: number,
  paced: Paced,
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
  paced: Paced,
): Promise<void> {
  await rows.run({
    kind: 'the old turns of the session',
    due: { table: 'sessions', key: 'id', where: 'id = ?1', args: [sessionId] },
    work: async ({ except }) => {
      if (except.includes(sessionId)) return 0;
      let removed = 0;
      await paced(async () => {
        // nobody waits for a look that finds nothing
        if ((await findCut(askingOf(reader), sessionId, limit)) === null) return;
        if (await writes.run((transaction) => removeOldTurns(transaction, sessionId, limit, now))) removed = 1;
      });
      if (removed > 0) return removed;
      const { rows: gone } = await reader.execute(goneEvents(sessionId, 0, 1));
      for (let after: number | null = gone.length === 0 ? null : 0; after !== null; ) {
        const from: number = after;
        // a slice that is not done any more was the last
        after = null;
        await paced(async () => {
          after = await writes.run((transaction) => removeOldEvents(transaction, sessionId, from));
        });
      }
      return 0;
    },
  });
}
