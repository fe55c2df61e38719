import { HOOK_FATAL } from '@interlude/protocol/signals';
import type { Row } from '@libsql/client';
import type { Writes, WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { FailureTally } from '@/lib/server/ingest/batch-sessions';
import { NO_FAILURES } from '@/lib/server/ingest/batch-sessions';
import type { AgentFact } from '@/lib/server/ingest/facts';

/**
 * People have looked at the failures around agents, of each agent up to a position.
 *
 * Ordering: the agents' sessions are unmarked first, then the failures are marked, of each agent the oldest first, and
 * with the last of them the agents count what is left. So what is seen of an agent is older than all that is not.
 * Failure: there may be any number of both, so it takes as many transactions as it needs, and others write in between.
 * Whatever ends it half-way, the newest failures are unseen still, and the same again does the rest.
 */

/** Most sessions that one transaction counts anew, and most failures that it marks. */
const MOST_SESSIONS = 50;
const MOST_FAILURES = 2_000;

interface Look {
  /** As its column has it. */
  agentId: string;
  upTo: number;
  /** Its sessions up to this number are counted anew. */
  countedTo: number;
}

interface MarkedSession {
  id: string;
  number: number;
}

/**
 * @param upTo by agent, as its column has it
 * @returns how many failures of each agent were seen only now; the same again changes nothing
 */
export async function seeFailures(
  writes: Writes,
  upTo: ReadonlyMap<string, number>,
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const seen = new Map<string, number>();
  let looks = [...upTo].map(([agentId, at]): Look => ({ agentId, upTo: at, countedTo: 0 }));
  while (looks.length > 0) {
    const asked = looks;
    const keys = asked.map(({ agentId }) => `agent:${agentId}` as const);
    const { left, marked } = await writes.run((transaction) => seeSome(transaction, asked, now), { keys });
    for (const agentId of marked) seen.set(agentId, (seen.get(agentId) ?? 0) + 1);
    looks = left;
  }
  return seen;
}

/** @returns what is left to do, and the agent of each failure that was marked */
async function seeSome(
  transaction: WriteTransaction,
  looks: readonly Look[],
  now: number,
): Promise<{ left: Look[]; marked: string[] }> {
  const open = await unseenOf(transaction, looks);
  const facts: AgentFact[] = [];
  const found = await each(transaction, open, MARKED, ({ agentId, countedTo }) => [agentId, countedTo]);
  const { left, taken } = takeSome(open, found);
  const around = await each(transaction, taken, UNSEEN, ({ agentId, upTo, sessions }) => [
    ...[HOOK_FATAL, agentId, upTo],
    JSON.stringify(sessions.map(({ id }) => id)),
  ]);
  for (const [at, { agentId, upTo, sessions }] of taken.entries()) {
    const unseen = new Map((around[at] ?? []).map((row) => [textOrNull(row.session_id), tallyOf(row)]));
    facts.push({ kind: 'marks-seen', agentId, upTo, unseen, sessionIds: sessions.map(({ id }) => id) });
  }
  if (left.length > 0) {
    await appendFacts(transaction, now, facts);
    return { left, marked: [] };
  }
  const wanted = JSON.stringify(open.map(({ agentId, upTo }) => [agentId, upTo]));
  const { rows } = await transaction.execute({ sql: MARK, args: [wanted, now, MOST_FAILURES] });
  const rest = await unseenOf(transaction, open);
  const done = open.filter((look) => !rest.includes(look));
  const counts = await each(transaction, done, LEFT, ({ agentId, upTo }) => [HOOK_FATAL, agentId, upTo]);
  for (const [at, { agentId }] of done.entries()) {
    facts.push({ kind: 'failures-seen', agentId, left: tallyOf(counts[at]?.[0]) });
  }
  await appendFacts(transaction, now, facts);
  return {
    left: rest.map((look) => ({ ...look, countedTo: Number.MAX_SAFE_INTEGER })),
    marked: rows.map(({ agent_id }) => String(agent_id)),
  };
}

/** Those of which something is still unseen. */
async function unseenOf(transaction: WriteTransaction, looks: readonly Look[]): Promise<Look[]> {
  const newest = await each(transaction, looks, NEWEST, ({ agentId, upTo }) => [agentId, upTo]);
  return looks.filter((_, at) => newest[at]?.[0]?.seen_at === null);
}

/** Takes the first of the sessions that were found. */
function takeSome(looks: readonly Look[], found: readonly Row[][]) {
  const left: Look[] = [];
  const taken: (Look & { sessions: MarkedSession[] })[] = [];
  let room = MOST_SESSIONS;
  let isMore = false;
  for (const [at, look] of looks.entries()) {
    const rows = (found[at] ?? []).map(({ id, number }) => ({ id: String(id), number: Number(number) }));
    const sessions = rows.slice(0, room);
    room -= sessions.length;
    isMore ||= rows.length > sessions.length;
    if (sessions.length > 0) taken.push({ ...look, sessions });
    left.push({ ...look, countedTo: sessions.at(-1)?.number ?? look.countedTo });
  }
  return { left: isMore ? left : [], taken };
}

/** One statement for each of some, in one round trip. @returns the rows of each */
async function each<T>(
  transaction: WriteTransaction,
  of: readonly T[],
  sql: string,
  argsOf: (one: T) => (string | number)[],
): Promise<Row[][]> {
  if (of.length === 0) return [];
  const results = await transaction.batch(of.map((one) => ({ sql, args: argsOf(one) })));
  return results.map(({ rows }) => rows);
}

function tallyOf(row: Row | undefined): FailureTally {
  return row === undefined ? NO_FAILURES : { all: Number(row.failures), other: Number(row.other ?? 0) };
}

function textOrNull(value: unknown): string | null {
  return value === null ? null : String(value);
}

const FAILURES = 'insights INDEXED BY insights_by_agent';

/** If the newest is seen, so are those before it. */
const NEWEST = `SELECT seen_at FROM ${FAILURES} WHERE agent_id = ? AND is_failure = 1 AND position <= ?
  ORDER BY position DESC LIMIT 1`;

const MARKED = `SELECT id, number FROM sessions INDEXED BY sessions_with_insights
  WHERE agent_id = ? AND insight_count > 0 AND number > ? ORDER BY number LIMIT ${MOST_SESSIONS + 1}`;

const TALLY = 'count(*) AS failures, sum(signal <> ?1) AS other';
const LATER = 'agent_id = ?2 AND is_failure = 1 AND position > ?3 AND seen_at IS NULL';

/** Counted in the database: there may be tens of thousands, of as many sessions. */
const UNSEEN = `SELECT session_id, ${TALLY} FROM ${FAILURES}
  WHERE ${LATER} AND (session_id IS NULL OR session_id IN (SELECT value FROM json_each(?4))) GROUP BY session_id`;
const LEFT = `SELECT ${TALLY} FROM ${FAILURES} WHERE ${LATER}`;

/** Those that are seen are not looked through again: they all come before the others. */
const MARK = `UPDATE insights SET seen_at = ?2 WHERE position IN (
    SELECT one.position FROM json_each(?1) AS wanted CROSS JOIN insights AS one INDEXED BY insights_by_agent
      ON one.agent_id = wanted.value->>0 AND one.is_failure = 1 AND one.position <= wanted.value->>1
        AND one.position > ifnull((SELECT seen.position FROM insights AS seen INDEXED BY insights_by_agent
          WHERE seen.agent_id = wanted.value->>0 AND seen.is_failure = 1 AND seen.position <= wanted.value->>1
            AND seen.seen_at IS NOT NULL ORDER BY seen.position DESC LIMIT 1), -1)
    ORDER BY wanted.key, one.position LIMIT ?3) RETURNING agent_id`;
