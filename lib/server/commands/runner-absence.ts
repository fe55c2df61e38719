import type { RunnerAwayValue } from '@interlude/protocol/ag-ui';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { MIN_SILENCE_MS, MISSED_REPORTS, RUNNER_GRACE_MS, SILENT_MS } from '@interlude/protocol/limits';
import { hasOpenWork, wentSilent } from '@interlude/protocol/session-predicates';
import type { Row } from '@libsql/client';
import { AGENT_ROW } from '@/db/read-model-rows';
import { choiceArgs, type DueRows, EVERY_ROW, isChosen, type RowChoice, selectDue } from '@/db/row-sweep';
import { runners, sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { EventFact } from '@/lib/server/ingest/facts';
import { allocatePosition } from './queue-command';

/**
 * Marks the sessions of a missing runner, and of a silent agent without one, as away: their state is unknown until they
 * report again. The transcript shows the absence where work was in progress.
 *
 * Ordering: the change goes through the session's own log, so transcript, session list and clients agree.
 * Failure: the runner's row stores the due time, which outlives any server. Of two servers, only one marks the
 * sessions.
 */

/** Maximum sessions per transaction. */
const MAX_MARKED = 50;
/** Milliseconds after the end of a runner's stream during which its last batch may still be stored. */
const LAST_BATCH_MS = 1_000;

const MISSABLE = 'agent_id = ?1 AND NOT has_ended AND NOT is_away';
const SEEN_AT = 'ifnull(seen_at, last_event_at)';

const RUNNER = shapeOf(runners);
const AWAY = shapeOf(sessions, 'id', 'state', 'body');

/** Condition: no record since the runner was missed, except its last batch. */
const MISSED = `(seen_position < ?2 OR ${SEEN_AT} BETWEEN ?3 AND ?4)`;

/** Runners whose grace has expired. */
export function missedRunners(now: number): DueRows {
  return { table: 'runners', key: 'agent_id', where: 'absence_due_at <= ?1', args: [now], order: 'absence_due_at' };
}

/**
 * Marks the sessions of one missing runner, except those that have sent a record since.
 *
 * @param agentChoice limits the agents
 * @param sessionChoice limits their sessions
 * @returns the number of runners, at most one; call again until it is 0
 */
export async function markAbsent(
  transaction: WriteTransaction,
  now: number,
  agentChoice: RowChoice = EVERY_ROW,
  sessionChoice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = await transaction.execute(selectDue(missedRunners(now), agentChoice, '*', 1));
  const runner = RUNNER.first(due);
  if (runner === undefined) return 0;
  const { agentId, missedAt, missedPosition, firstConnectedAt, firstConnectedPosition } = runner;
  // The runner may be reconnecting.
  transaction.touch(`agent:${agentId}`);
  const since = missedAt ?? now;
  // Rows from earlier versions have no position.
  const lastPosition = missedPosition ?? Number.MAX_SAFE_INTEGER;
  const isAway = runner.aliveUntil === null;
  const known = [agentId, lastPosition, since, since + LAST_BATCH_MS];
  const [missed, others, agents] = await transaction.batch([
    {
      sql: `SELECT id, state, body, ${SEEN_AT} AS seen_at FROM sessions WHERE ${MISSABLE} AND ${MISSED}
            AND ${isChosen('id', 5)} ORDER BY id LIMIT ${MAX_MARKED}`,
      args: [...known, ...choiceArgs(sessionChoice)],
    },
    {
      sql: `SELECT 1 FROM sessions WHERE ${MISSABLE} AND NOT (${MISSED} AND ${isChosen('id', 5)})
            AND (?7 OR (?8 > ?2 AND seen_position < ?8)) LIMIT 1`,
      args: [...known, ...choiceArgs(sessionChoice), isAway ? 1 : 0, firstConnectedPosition],
    },
    { sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, args: [agentId] },
  ]);
  const rows = missed?.rows ?? [];
  const agentGoesOn = readAgentStatus(AGENT_ROW.first(agents)?.body.status ?? null).agentGoesOn === true;
  const position = missedPosition === null ? {} : { since_position: missedPosition };
  const facts = rows.map((row) => awayFact(agentId, row, { since, ...position, agent_goes_on: agentGoesOn }));
  await appendFacts(transaction, now, facts);
  // Other sessions may still need marking.
  if (sessionChoice.only !== null) return rows.length;
  if (rows.length === MAX_MARKED) return 1;
  const again = (others?.rows.length ?? 0) > 0;
  const at = isAway ? now : firstConnectedAt;
  await endAbsence(transaction, agentId, again ? { at, position: isAway ? null : firstConnectedPosition } : null);
  return 1;
}

function awayFact(agentId: string, row: Row, about: Omit<RunnerAwayValue, 'last_heard_at' | 'at_rest'>): EventFact {
  const { id: sessionId, body } = AWAY.read(row);
  const rest = hasOpenWork(body) ? {} : { at_rest: true };
  const value: RunnerAwayValue = { ...about, last_heard_at: Number(row.seen_at), ...rest };
  return { agentId, sessionId, event: { type: 'CUSTOM', name: CUSTOM.runnerAway, value } };
}

export function openSessions(agentId: string): DueRows {
  return { table: 'sessions', key: 'id', where: 'agent_id = ?1 AND NOT has_ended', args: [agentId] };
}

/** Condition: the agent promised a report interval, through a runner that has not ended. */
const HAS_PROMISED = `(reports_every_ms IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM runners WHERE agent_id = agents.id AND is_over AND runner_id = agents.reported_by))`;
/** `isUnderWay` in SQL, and the states that count as work. */
const IS_AT_WORK = `(state IN ('working', 'needs-input', 'waiting-on-background') OR body->>'$.openTurnId' IS NOT NULL
  OR body->>'$.runningTaskCount' > 0 OR body->>'$.pendingRequestCount' > 0)`;

/** Agents that sent nothing for longer than they promised or, without a promise, for SILENT_MS. */
export function silentAgents(now: number): DueRows {
  return {
    table: 'agents',
    key: 'id',
    where: `NOT is_silent AND last_seen_at <= ?1
      AND last_seen_at + iif(${HAS_PROMISED}, max(?3, ${MISSED_REPORTS} * reports_every_ms), ${SILENT_MS}) <= ?2`,
    args: [now - MIN_SILENCE_MS, now, MIN_SILENCE_MS],
    order: 'last_seen_at',
  };
}

/**
 * Marks the sessions of one silent agent. Without a promised interval, silence is normal for an idle session, which
 * keeps its state. While a runner is connected, its stream decides instead: see `markAbsent`.
 *
 * @param agentChoice limits the agents
 * @param sessionChoice limits their sessions
 * @returns the number of agents, at most one; call again until it is 0
 */
export async function markSilent(
  transaction: WriteTransaction,
  now: number,
  agentChoice: RowChoice = EVERY_ROW,
  sessionChoice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = await transaction.execute(
    selectDue(silentAgents(now), agentChoice, `id, last_seen_at, ${HAS_PROMISED} AS has_promised`, 1),
  );
  const [agent] = due.rows;
  if (agent === undefined) return 0;
  const agentId = String(agent.id);
  transaction.touch(`agent:${agentId}`);
  const { rows } = await transaction.execute({
    sql: `SELECT id, state, body, ${SEEN_AT} AS seen_at FROM sessions WHERE ${MISSABLE} AND ${isChosen('id', 2)}
            AND (?4 OR ${IS_AT_WORK}) AND NOT EXISTS (SELECT 1 FROM runners WHERE agent_id = ?1 AND NOT is_over) ORDER BY id LIMIT ${MAX_MARKED}`,
    args: [agentId, ...choiceArgs(sessionChoice), agent.has_promised ?? 0],
  });
  const about = { since: Number(agent.last_seen_at), agent_goes_on: false, is_silent: true };
  await appendFacts(
    transaction,
    now,
    rows.map((row) => awayFact(agentId, row, about)),
  );
  if (rows.length > 0) return 1;
  // Other sessions may still need marking.
  if (sessionChoice.only !== null) return 0;
  await transaction.execute({ sql: 'UPDATE agents SET is_silent = 1 WHERE id = ?', args: [agentId] });
  return 1;
}

/**
 * Ends an absence once all its sessions are marked. The next absence covers sessions that sent records meanwhile, and
 * sessions of a runner that came and went in between.
 *
 * @param again start of the next absence, with null for the current position; null if there is none
 */
async function endAbsence(
  transaction: WriteTransaction,
  agentId: string,
  again: { at: number; position: number | null } | null,
): Promise<void> {
  if (again === null) {
    await transaction.execute({ sql: 'UPDATE runners SET absence_due_at = NULL WHERE agent_id = ?', args: [agentId] });
    return;
  }
  const position = again.position ?? (await allocatePosition(transaction));
  await transaction.execute({
    sql: 'UPDATE runners SET missed_at = ?, missed_position = ?, absence_due_at = ? WHERE agent_id = ?',
    args: [again.at, position, again.at + RUNNER_GRACE_MS, agentId],
  });
}

/**
 * The missing process is back and resumes all its sessions.
 *
 * @param firstConnectedPosition sessions lost before this position belonged to another process; this one resumes them
 * by reporting them
 */
export async function markReturned(
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
    const rest = hasOpenWork(body) || wentSilent({ state, evidence: body.evidence }) ? {} : { at_rest: true };
    const value = { away_since: body.away?.since ?? now, ...rest };
    return { agentId, sessionId: id, event: { type: 'CUSTOM', name: CUSTOM.runnerBack, value } as const };
  });
  for (let index = 0; index < events.length; index += MAX_MARKED) {
    await appendFacts(transaction, now, events.slice(index, index + MAX_MARKED));
  }
}
