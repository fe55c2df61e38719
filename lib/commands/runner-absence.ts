import type { Reader } from '@/db/reader';
import { choiceArgs, EVERY_ROW, isChosen, type RowChoice } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/write-queue';
import { appendFacts } from '@/lib/ingest/append-facts';
import { type AgUiEvent, CUSTOM, type RunnerAwayValue } from '@/lib/protocol/ag-ui';
import { RUNNER_GRACE_MS } from '@/lib/protocol/limits';
import { takePosition } from './take-position';

/**
 * What a runner's absence means for its agent's sessions: those in which something is under way say that it has gone,
 * and say that it is back.
 *
 * Ordering: told in the sessions' own logs, so that transcript, session list and every client say the same.
 * Failure: what is to be told, and when, stands in the runner's row. It survives any server, and of two servers one
 * tells it.
 */

/** Most sessions of one transaction. */
const MAX_TOLD = 50;
/** A batch that the runner sent with its last breath may be stored a moment after its stream was seen to end. */
const LAST_BREATH_MS = 1_000;

const UNDER_WAY = `agent_id = ?1 AND state <> 'done' AND memory->>'$.fold.ended' IS NULL
  AND (body->>'$.openTurnId' IS NOT NULL OR body->>'$.runningTaskCount' > 0 OR body->>'$.pendingRequestCount' > 0)`;
const SEEN_AT = `ifnull(memory->>'$.fold.seenAt', last_event_at)`;
/** What was said before it is at most this: by it and not by a clock it is told what was said since. */
const SEEN_POSITION = `ifnull(memory->>'$.fold.seenPosition', 0)`;

interface Missed {
  /** Nobody is there now. */
  isAway: boolean;
  /** Where in the server's order it was missed. */
  lostPosition: number;
  /** Where the process that is there, or was there last, first connected. */
  camePosition: number;
}

const DUE = `tell_at <= ?1 AND ${isChosen('agent_id', 2)}`;

/** @returns the agents whose runner has been missed for long enough */
export async function missedRunners(reader: Reader, now: number, except: readonly string[]): Promise<string[]> {
  const args = [now, ...choiceArgs({ only: null, except })];
  const { rows } = await reader.execute({ sql: `SELECT agent_id FROM runners WHERE ${DUE} LIMIT 100`, args });
  return rows.map((row) => String(row.agent_id));
}

/**
 * Tells the sessions of one runner that has been missed for long enough: those nobody has spoken of since.
 *
 * @param runners of which agents
 * @param sessions which of their sessions
 * @returns how many runners there was something to do for, at most one: then call again
 */
export async function tellAbsence(
  transaction: WriteTransaction,
  now: number,
  runners: RowChoice = EVERY_ROW,
  sessions: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute({
    // What an agent says may be anything: as JSON it is text, and no number that is too large to be read.
    sql: `SELECT r.agent_id, r.alive_until, r.lost_at, r.lost_position, r.came_at, r.came_position,
            (SELECT body->'$.status.agentGoesOn' FROM agents WHERE id = r.agent_id) AS goes_on
          FROM runners AS r WHERE ${DUE} ORDER BY tell_at LIMIT 1`,
    args: [now, ...choiceArgs(runners)],
  });
  const [runner] = rows;
  if (runner === undefined) return 0;
  const agentId = String(runner.agent_id);
  const lostAt = Number(runner.lost_at ?? now);
  // One that was missed before positions were noted: nobody has spoken for it since.
  const lostPosition = Number(runner.lost_position ?? Number.MAX_SAFE_INTEGER);
  const missed = await transaction.execute({
    sql: `SELECT id, ${SEEN_AT} AS seen_at FROM sessions WHERE ${UNDER_WAY} AND memory->>'$.fold.away' IS NULL
          AND (${SEEN_POSITION} < ?2 OR ${SEEN_AT} BETWEEN ?3 AND ?4) AND ${isChosen('id', 5)}
          ORDER BY id LIMIT ${MAX_TOLD}`,
    args: [agentId, lostPosition, lostAt, lostAt + LAST_BREATH_MS, ...choiceArgs(sessions)],
  });
  if (missed.rows.length === 0) {
    // of one session there is nothing to be said of all
    if (sessions.only !== null) return 0;
    const camePosition = Number(runner.came_position ?? 0);
    const cameAt = Number(runner.came_at ?? 0);
    const settled = { isAway: runner.alive_until === null, lostPosition, camePosition };
    await settle(transaction, agentId, settled, cameAt, now);
    return 1;
  }
  await appendFacts(
    transaction,
    now,
    missed.rows.map((row) => {
      const value: RunnerAwayValue = {
        since: lostAt,
        ...(runner.lost_position === null ? {} : { since_position: lostPosition }),
        last_heard_at: Number(row.seen_at),
        agent_goes_on: runner.goes_on === 'true',
      };
      return { agentId, sessionId: String(row.id), event: { type: 'CUSTOM', name: CUSTOM.runnerAway, value } };
    }),
  );
  return 1;
}

/** @returns sessions of an agent in which something is under way: those that may have to be told */
export async function sessionsUnderWay(reader: Reader, agentId: string, except: readonly string[]): Promise<string[]> {
  const { rows } = await reader.execute({
    sql: `SELECT id FROM sessions WHERE agent_id = ?1 AND state <> 'done' AND ${isChosen('id', 2)}`,
    args: [agentId, ...choiceArgs({ only: null, except })],
  });
  return rows.map((row) => String(row.id));
}

/**
 * All are told. Sessions that were spoken of since, while nobody listened for them, are looked at once more; so are
 * those of a runner that came and went while there was still to be told of the one before it.
 */
async function settle(
  transaction: WriteTransaction,
  agentId: string,
  { isAway, lostPosition, camePosition }: Missed,
  cameAt: number,
  now: number,
): Promise<void> {
  const since = isAway ? now : cameAt;
  const { rows } = await transaction.execute({
    sql: `SELECT 1 FROM sessions WHERE ${UNDER_WAY} AND memory->>'$.fold.away' IS NULL
          AND (?2 OR (?3 > ?4 AND ${SEEN_POSITION} < ?3)) LIMIT 1`,
    args: [agentId, isAway ? 1 : 0, camePosition, lostPosition],
  });
  if (rows.length === 0) {
    await transaction.execute({ sql: 'UPDATE runners SET tell_at = NULL WHERE agent_id = ?', args: [agentId] });
    return;
  }
  const position = isAway ? await takePosition(transaction) : camePosition;
  await transaction.execute({
    sql: 'UPDATE runners SET lost_at = ?, lost_position = ?, tell_at = ? WHERE agent_id = ?',
    args: [since, position, since + RUNNER_GRACE_MS, agentId],
  });
}

/**
 * The very process that was missed is there again: it goes on with all it had.
 *
 * @param camePosition where it first connected: what was missed until then it never had, and takes up by speaking of it
 */
export async function tellReturn(
  transaction: WriteTransaction,
  agentId: string,
  camePosition: number | null,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT id, body->>'$.away.since' AS since FROM sessions
          WHERE agent_id = ?1 AND state IN ('failed', 'waiting') AND memory->>'$.fold.away' IS NOT NULL
            AND (?2 IS NULL OR ifnull(memory->>'$.fold.awayPosition', ?2 + 1) > ?2)`,
    args: [agentId, camePosition],
  });
  const events = rows.map((row) => {
    const value = { away_since: Number(row.since ?? now) };
    const event: AgUiEvent = { type: 'CUSTOM', name: CUSTOM.runnerBack, value };
    return { agentId, sessionId: String(row.id), event };
  });
  for (let at = 0; at < events.length; at += MAX_TOLD) {
    await appendFacts(transaction, now, events.slice(at, at + MAX_TOLD));
  }
}
