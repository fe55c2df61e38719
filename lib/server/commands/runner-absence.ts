import { CUSTOM, type RunnerAwayValue } from '@interlude/protocol/ag-ui';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import { LEAST_SILENCE_MS, MISSED_REPORTS, RUNNER_GRACE_MS, SILENT_MS } from '@interlude/protocol/limits';
import { isLost, isUnderWay } from '@interlude/protocol/session-standing';
import type { Row } from '@libsql/client';
import { AGENT_ROW } from '@/db/read-model-rows';
import { choiceArgs, type DueRows, EVERY_ROW, isChosen, type RowChoice, selectDue } from '@/db/row-sweep';
import { runners, sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { EventFact } from '@/lib/server/ingest/facts';
import { takePosition } from './take-position';

/**
 * What it means for an agent's sessions that its runner is gone, or that an agent without one is silent: nothing is
 * known of them any more until they are heard of again. Where something was under way, the transcript says so.
 *
 * Ordering: told in the sessions' own logs, so that transcript, session list and every client say the same.
 * Failure: what has to be told, and when, is in the runner's row. It survives any server, and only one of two servers
 * tells it.
 */

/** Most sessions of one transaction. */
const MAX_TOLD = 50;
/** A runner's last batch may be stored a moment after its stream was seen to end. */
const LAST_BREATH_MS = 1_000;

const MISSABLE = 'agent_id = ?1 AND NOT has_ended AND NOT is_away';
const SEEN_AT = 'ifnull(seen_at, last_event_at)';

const RUNNER = shapeOf(runners);
const AWAY = shapeOf(sessions, 'id', 'state', 'body');

/** Nothing has come from it since the runner was missed, or only a last breath. */
const MISSED = `(seen_position < ?2 OR ${SEEN_AT} BETWEEN ?3 AND ?4)`;

/** The runners that have been missed for long enough. */
export function missedRunners(now: number): DueRows {
  return { table: 'runners', key: 'agent_id', where: 'absence_due_at <= ?1', args: [now], order: 'absence_due_at' };
}

/**
 * Tells the sessions of one runner that has been missed for long enough, except those that a record has come from
 * since.
 *
 * @param whose of which agents
 * @param which of their sessions
 * @returns how many runners were dealt with, at most one; call again until it is 0
 */
export async function tellAbsence(
  transaction: WriteTransaction,
  now: number,
  whose: RowChoice = EVERY_ROW,
  which: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = await transaction.execute(selectDue(missedRunners(now), whose, '*', 1));
  const runner = RUNNER.first(due);
  if (runner === undefined) return 0;
  const { agentId, missedAt, missedPosition, firstConnectedAt, firstConnectedPosition } = runner;
  // it may just be coming back
  transaction.touch(`agent:${agentId}`);
  const since = missedAt ?? now;
  // no position was noted when it was missed: nothing has come from it since
  const lastPosition = missedPosition ?? Number.MAX_SAFE_INTEGER;
  const isAway = runner.aliveUntil === null;
  const known = [agentId, lastPosition, since, since + LAST_BREATH_MS];
  const [missed, others, agents] = await transaction.batch([
    {
      sql: `SELECT id, state, body, ${SEEN_AT} AS seen_at FROM sessions WHERE ${MISSABLE} AND ${MISSED}
            AND ${isChosen('id', 5)} ORDER BY id LIMIT ${MAX_TOLD}`,
      args: [...known, ...choiceArgs(which)],
    },
    {
      sql: `SELECT 1 FROM sessions WHERE ${MISSABLE} AND NOT (${MISSED} AND ${isChosen('id', 5)})
            AND (?7 OR (?8 > ?2 AND seen_position < ?8)) LIMIT 1`,
      args: [...known, ...choiceArgs(which), isAway ? 1 : 0, firstConnectedPosition],
    },
    { sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, args: [agentId] },
  ]);
  const rows = missed?.rows ?? [];
  const goesOn = readAgentStatus(AGENT_ROW.first(agents)?.body.status ?? null).agentGoesOn === true;
  const position = missedPosition === null ? {} : { since_position: missedPosition };
  const facts = rows.map((row) => awayFact(agentId, row, { since, ...position, agent_goes_on: goesOn }));
  await appendFacts(transaction, now, facts);
  // a single session says nothing about all of them
  if (which.only !== null) return rows.length;
  if (rows.length === MAX_TOLD) return 1;
  const again = (others?.rows.length ?? 0) > 0;
  const at = isAway ? now : firstConnectedAt;
  await settle(transaction, agentId, again ? { at, position: isAway ? null : firstConnectedPosition } : null);
  return 1;
}

/** @param row of a session, with `seen_at` */
function awayFact(agentId: string, row: Row, about: Omit<RunnerAwayValue, 'last_heard_at' | 'at_rest'>): EventFact {
  const { id: sessionId, body } = AWAY.read(row);
  const rest = isUnderWay(body) ? {} : { at_rest: true };
  const value: RunnerAwayValue = { ...about, last_heard_at: Number(row.seen_at), ...rest };
  return { agentId, sessionId, event: { type: 'CUSTOM', name: CUSTOM.runnerAway, value } };
}

/** An agent's sessions that may have to be told. */
export function openSessions(agentId: string): DueRows {
  return { table: 'sessions', key: 'id', where: 'agent_id = ?1 AND NOT has_ended', args: [agentId] };
}

/** The agent promised a report interval, and not through a runner that is over. */
const HAS_PROMISED = `(reports_every_ms IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM runners WHERE agent_id = agents.id AND is_over AND runner_id = agents.reported_by))`;
/** Sessions whose end is still to be reported: as `isUnderWay`, or at work by another rule. */
const IS_AT_WORK = `(state IN ('working', 'needs-input', 'waiting-on-background') OR body->>'$.openTurnId' IS NOT NULL
  OR body->>'$.runningTaskCount' > 0 OR body->>'$.pendingRequestCount' > 0)`;

/**
 * Agents that have sent nothing for longer than they promised, or may. Those with a runner are looked at only once.
 */
export function silentAgents(now: number): DueRows {
  return {
    table: 'agents',
    key: 'id',
    where: `NOT is_silent AND last_seen_at <= ?1
      AND last_seen_at + iif(${HAS_PROMISED}, max(?3, ${MISSED_REPORTS} * reports_every_ms), ${SILENT_MS}) <= ?2`,
    args: [now - LEAST_SILENCE_MS, now, LEAST_SILENCE_MS],
    order: 'last_seen_at',
  };
}

/**
 * Tells the sessions of one silent agent that nothing is heard of it. Without a promised interval, silence is normal for an
 * idle session, which keeps its state. With a runner it is not silent as long as the
 * runner's stream lasts, whose end is told by `tellAbsence`.
 *
 * @param whose of which agents
 * @param which of their sessions
 * @returns how many agents were dealt with, at most one; call again until it is 0
 */
export async function tellSilence(
  transaction: WriteTransaction,
  now: number,
  whose: RowChoice = EVERY_ROW,
  which: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = await transaction.execute(
    selectDue(silentAgents(now), whose, `id, last_seen_at, ${HAS_PROMISED} AS has_promised`, 1),
  );
  const [agent] = due.rows;
  if (agent === undefined) return 0;
  const agentId = String(agent.id);
  transaction.touch(`agent:${agentId}`);
  const { rows } = await transaction.execute({
    sql: `SELECT id, state, body, ${SEEN_AT} AS seen_at FROM sessions WHERE ${MISSABLE} AND ${isChosen('id', 2)}
            AND (?4 OR ${IS_AT_WORK}) AND NOT EXISTS (SELECT 1 FROM runners WHERE agent_id = ?1 AND NOT is_over) ORDER BY id LIMIT ${MAX_TOLD}`,
    args: [agentId, ...choiceArgs(which), agent.has_promised ?? 0],
  });
  const about = { since: Number(agent.last_seen_at), agent_goes_on: false, is_silent: true };
  await appendFacts(
    transaction,
    now,
    rows.map((row) => awayFact(agentId, row, about)),
  );
  if (rows.length > 0) return 1;
  // a single session says nothing about all of them
  if (which.only !== null) return 0;
  await transaction.execute({ sql: 'UPDATE agents SET is_silent = 1 WHERE id = ?', args: [agentId] });
  return 1;
}

/**
 * All are told. Sessions that were spoken of since, while nobody listened for them, are looked at once more; so are
 * those of a runner that came and went while there was still to be told of the one before it.
 *
 * @param again when and where those were missed, a position of null being this one; null if there are none
 */
async function settle(
  transaction: WriteTransaction,
  agentId: string,
  again: { at: number; position: number | null } | null,
): Promise<void> {
  if (again === null) {
    await transaction.execute({ sql: 'UPDATE runners SET absence_due_at = NULL WHERE agent_id = ?', args: [agentId] });
    return;
  }
  const position = again.position ?? (await takePosition(transaction));
  await transaction.execute({
    sql: 'UPDATE runners SET missed_at = ?, missed_position = ?, absence_due_at = ? WHERE agent_id = ?',
    args: [again.at, position, again.at + RUNNER_GRACE_MS, agentId],
  });
}

/**
 * The process that was missed is back: it goes on with everything it had.
 *
 * @param firstConnectedPosition where it first connected: what was missed until then it never had, and takes up by
 *   speaking of it
 */
export async function tellReturn(
  transaction: WriteTransaction,
  agentId: string,
  firstConnectedPosition: number | null,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT id, state, body FROM sessions WHERE agent_id = ?1 AND NOT has_ended AND is_away
            AND (?2 IS NULL OR ifnull(away_position, ?2 + 1) > ?2)`,
    args: [agentId, firstConnectedPosition],
  });
  const events = rows.map((row) => {
    const { id, state, body } = AWAY.read(row);
    const rest = isUnderWay(body) || isLost({ state, evidence: body.evidence }) ? {} : { at_rest: true };
    const value = { away_since: body.away?.since ?? now, ...rest };
    return { agentId, sessionId: id, event: { type: 'CUSTOM', name: CUSTOM.runnerBack, value } as const };
  });
  for (let at = 0; at < events.length; at += MAX_TOLD) {
    await appendFacts(transaction, now, events.slice(at, at + MAX_TOLD));
  }
}
