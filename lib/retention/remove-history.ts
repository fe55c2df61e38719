import type { Database } from '@/db/client';
import type { RowSweep } from '@/db/row-sweep';
import { SESSION_STATES, type SessionState } from '@/lib/protocol/agent-state';
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
/** Of a database that is too large, this part of all positions goes at once, and twice as much where none could. */
const FIRST_PART = 1 / 20;

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
 * Removes the oldest of everything while the database is too large without its logs, which have a limit of their own.
 * @returns false if it is too large still, and nothing more can go
 */
export async function removeBySize(
  { reader }: Pick<Database, 'reader'>,
  { maxBytes, alwaysKept }: HistoryRetention,
  now: number,
  remove: (limits: Limits) => Promise<number>,
): Promise<boolean> {
  if (maxBytes === Number.POSITIVE_INFINITY) return true;
  for (let part = FIRST_PART; ; ) {
    const bytes = await usedBytes(reader);
    if (bytes === null || bytes <= maxBytes) return true;
    const { rows } = await reader.execute('SELECT min(position) AS oldest, max(position) AS newest FROM events');
    const [oldest, newest] = [Number(rows[0]?.oldest ?? 0), Number(rows[0]?.newest ?? 0)];
    const most = await olderThan(reader, now - LEAST_AGE_MS);
    const position = Math.min(most.position, oldest + Math.ceil((newest - oldest) * part));
    const limits = everywhere({ ...most, position }, position);
    for (const state of alwaysKept) limits[state] = NOTHING;
    const removed = await remove(limits);
    if (removed > 0) continue;
    if (position === most.position || part >= 1) return false;
    part *= 2;
  }
}

/**
 * Removes, session by session, what stands in front of the limit of its state.
 *
 * Failure: a session that can't be worked on is left alone, see RowSweep. What was not done is found at the next call.
 *
 * @returns how many sessions something was removed of
 */
export async function removeHistory(
  database: Database,
  rows: RowSweep,
  limits: Limits,
  now: number,
  paced: Paced,
): Promise<number> {
  let count = 0;
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
      if (await removeOf(database, rows, String(id), limit, now, paced)) count += 1;
    }
    const last = sessions.at(-1);
    if (last === undefined) return count;
    after = Number(last.number);
  }
  return count;
}

async function removeOf(
  { reader, writes }: Database,
  rows: RowSweep,
  sessionId: string,
  limit: Limit,
  now: number,
  paced: Paced,
): Promise<boolean> {
  let isAny = false;
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
      isAny ||= removed > 0;
      if (removed > 0) return removed;
      const { rows: gone } = await reader.execute(goneEvents(sessionId, 0, 1));
      for (let after: number | null = gone.length === 0 ? null : 0; after !== null; ) {
        const from: number = after;
        // a slice that is not done any more was the last
        after = null;
        await paced(async () => {
          after = await writes.run((transaction) => removeOldEvents(transaction, sessionId, from));
          isAny = true;
        });
      }
      return 0;
    },
  });
  return isAny;
}
