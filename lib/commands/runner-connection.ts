import type { Row } from '@libsql/client';
import { columnText } from '@/db/column-text';
import type { Reader } from '@/db/reader';
import { choiceArgs, EVERY_ROW, isChosen, type RowChoice } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/write-queue';
import { appendFacts } from '@/lib/ingest/append-facts';
import { MISSED_REPORTS, RUNNER_AWAY_MS, RUNNER_GRACE_MS } from '@/lib/protocol/limits';
import { tellReturn } from './runner-absence';

/** When an agent was last seen is noted every 5 s only, so nothing shorter than this is a silence. */
const LEAST_SILENCE_MS = 15_000;

/**
 * Which runner an agent's commands go to.
 *
 * Ordering: of two runners of one agent the one that was started later wins, whichever connects first. Of two streams
 * of one runner the later wins.
 * Failure: a runner whose stream ended is away at once; one whose server died is away when its term runs out. What that
 * means for its sessions is told a grace later. @see runner-absence.ts
 */
export interface RunnerRef {
  id: string;
  /** When its process was started, on its own clock. */
  startedAt: number;
}

export type ConnectOutcome = { kind: 'connected' } | { kind: 'fenced'; by: RunnerRef };

interface RunnerRow extends RunnerRef {
  streamId: string;
  aliveUntil: number | null;
  lostAt: number | null;
  tellAt: number | null;
  /** When its process first connected. Null for one that did before that was noted. */
  cameAt: number | null;
  /** Where both stand in the server's order. */
  lostPosition: number | null;
  camePosition: number | null;
}

export async function readRunner(transaction: WriteTransaction, agentId: string): Promise<RunnerRow | null> {
  const { rows } = await transaction.execute({ sql: 'SELECT * FROM runners WHERE agent_id = ?', args: [agentId] });
  const [row] = rows;
  if (row === undefined) return null;
  return {
    id: String(row.runner_id),
    startedAt: Number(row.started_at),
    streamId: String(row.stream_id),
    aliveUntil: numberOrNull(row.alive_until),
    lostAt: numberOrNull(row.lost_at),
    tellAt: numberOrNull(row.tell_at),
    cameAt: numberOrNull(row.came_at),
    lostPosition: numberOrNull(row.lost_position),
    camePosition: numberOrNull(row.came_position),
  };
}

/** Whether `runner` has been taken over from. */
export function isOlder(runner: RunnerRef, stored: RunnerRef): boolean {
  if (runner.id === stored.id) return false;
  return runner.startedAt !== stored.startedAt ? runner.startedAt < stored.startedAt : runner.id < stored.id;
}

export async function connectRunner(
  transaction: WriteTransaction,
  agentId: string,
  runner: RunnerRef,
  streamId: string,
  now: number,
): Promise<ConnectOutcome> {
  const stored = await readRunner(transaction, agentId);
  // One that has gone fences nobody: where a clock was set back, the only runner there is would be shut out for ever.
  const isAlive = stored?.aliveUntil != null && stored.aliveUntil > now;
  if (stored !== null && isAlive && isOlder(runner, stored)) return { kind: 'fenced', by: stored };
  const isSame = stored === null || stored.id === runner.id || (isUnnamed(stored) && isUnnamed(runner));
  const position = await nextPosition(transaction);
  const { lostAt, lostPosition, tellAt } = absenceOf(stored, isSame, position, now);
  const cameAt = (isSame ? stored?.cameAt : null) ?? now;
  const camePosition = (isSame ? stored?.camePosition : null) ?? position;
  await transaction.execute({
    sql: `INSERT INTO runners (agent_id, runner_id, started_at, stream_id, alive_until, lost_at, lost_position, tell_at,
            came_at, came_position)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
          ON CONFLICT (agent_id) DO UPDATE SET runner_id = excluded.runner_id, started_at = excluded.started_at,
            stream_id = excluded.stream_id, alive_until = excluded.alive_until, lost_at = excluded.lost_at,
            lost_position = excluded.lost_position, tell_at = excluded.tell_at, came_at = excluded.came_at,
            came_position = excluded.came_position`,
    args: [
      agentId,
      columnText(runner.id),
      runner.startedAt,
      streamId,
      now + RUNNER_AWAY_MS,
      lostAt,
      lostPosition,
      tellAt,
      cameAt,
      camePosition,
    ],
  });
  if (isSame) await tellReturn(transaction, agentId, stored?.camePosition ?? null, now);
  // An agent is there as soon as its runner is, before it has said anything.
  await appendFacts(transaction, now, [{ kind: 'runner-connected', agentId, runnerId: runner.id }]);
  return { kind: 'connected' };
}

/** What is still to be told of who was there before. */
function absenceOf(
  before: RunnerRow | null,
  isSame: boolean,
  position: number,
  now: number,
): Pick<RunnerRow, 'lostAt' | 'lostPosition' | 'tellAt'> {
  const nothing = { lostAt: null, lostPosition: null, tellAt: null };
  if (before === null) return nothing;
  // Back within the grace, it has not gone. Who was there before it has, whatever becomes of its streams.
  if (isSame && before.aliveUntil === null && !isOfEarlier(before)) return nothing;
  if (isSame || (before.aliveUntil === null && before.lostAt !== null)) return before;
  // Another process has come: which sessions it takes up it says by speaking of them. The others are missed.
  // That was so before it came: what it is missed for itself comes later.
  return { lostAt: now, lostPosition: position, tellAt: now + RUNNER_GRACE_MS };
}

/** What is still to be told is of a process before this one. */
function isOfEarlier({ lostPosition, tellAt, camePosition }: RunnerRow): boolean {
  return tellAt !== null && lostPosition !== null && camePosition !== null && lostPosition <= camePosition;
}

/** The one that whoever asks takes within this transaction: every batch before it ended short of it. */
async function nextPosition(transaction: WriteTransaction): Promise<number> {
  const { rows } = await transaction.execute('SELECT position FROM counter');
  return Number(rows[0]?.position ?? 0) + 1;
}

/** One that does not say who it is has another id each time it connects. */
function isUnnamed({ startedAt }: RunnerRef): boolean {
  return startedAt === 0;
}

/** From ?1 on, to be told at ?2; what is to be told of an earlier runner is told no later for that. */
const NEXT_POSITION = 'ifnull((SELECT position FROM counter), 0) + 1';
const MISSED = `alive_until = NULL, lost_at = iif(tell_at IS NULL, ?1, lost_at),
  lost_position = iif(tell_at IS NULL, ${NEXT_POSITION}, lost_position), tell_at = ifnull(tell_at, ?2)`;

/** The stream has ended, unless a newer one has taken its place. */
export async function disconnectRunner(
  transaction: WriteTransaction,
  agentId: string,
  streamId: string,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `UPDATE runners SET ${MISSED} WHERE agent_id = ?3 AND stream_id = ?4 AND alive_until IS NOT NULL
          RETURNING agent_id`,
    args: [now, now + RUNNER_GRACE_MS, agentId, streamId],
  });
  await tellAway(transaction, rows, now);
}

/** @returns the agents of runners whose term has run out */
export async function silentRunners(reader: Reader, now: number, except: readonly string[]): Promise<string[]> {
  const { rows } = await reader.execute({
    sql: `SELECT agent_id FROM runners WHERE alive_until <= ?1 AND ${isChosen('agent_id', 2)}`,
    args: [now, ...choiceArgs({ only: null, except })],
  });
  return rows.map((row) => String(row.agent_id));
}

/** Runners whose server died with their streams. @returns how many */
export async function disconnectSilent(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute({
    // The time in which nobody could hear it is not held against it: it is given its grace from now.
    sql: `UPDATE runners SET ${MISSED} WHERE alive_until <= ?1 AND ${isChosen('agent_id', 3)} RETURNING agent_id`,
    args: [now, now + RUNNER_GRACE_MS, ...choiceArgs(choice)],
  });
  await tellAway(transaction, rows, now);
  return rows.length;
}

/**
 * Runners whose stream stands but who have not reported as they said they would: a machine without power and a process
 * that hangs leave their connections open.
 * @returns the streams to end
 */
export async function disconnectMute(
  transaction: WriteTransaction,
  streamIds: readonly string[],
  now: number,
): Promise<string[]> {
  const { rows } = await transaction.execute({
    sql: `UPDATE runners SET alive_until = NULL, lost_at = ?1, lost_position = ${NEXT_POSITION}, tell_at = ?1
          WHERE stream_id IN (SELECT value FROM json_each(?2)) AND alive_until IS NOT NULL AND EXISTS (
            SELECT 1 FROM agents AS a WHERE a.id = runners.agent_id
              AND a.body->>'$.status.runner.id' = runners.runner_id
              AND a.last_seen_at + max(${LEAST_SILENCE_MS}, ${MISSED_REPORTS} * (a.body->>'$.status.everyMs')) < ?1)
          RETURNING agent_id, stream_id`,
    args: [now, JSON.stringify(streamIds)],
  });
  await tellAway(transaction, rows, now);
  return rows.map((row) => String(row.stream_id));
}

/** The term of every stream that is open here. Nobody is told: nothing that is shown changes. */
export async function renewRunners(
  transaction: WriteTransaction,
  streamIds: readonly string[],
  now: number,
): Promise<void> {
  await transaction.execute({
    sql: `UPDATE runners SET alive_until = ?
          WHERE stream_id IN (SELECT value FROM json_each(?)) AND alive_until IS NOT NULL`,
    args: [now + RUNNER_AWAY_MS, JSON.stringify(streamIds)],
  });
}

async function tellAway(transaction: WriteTransaction, runners: readonly Row[], now: number): Promise<void> {
  const facts = runners.map((row) => ({ kind: 'runner-away', agentId: String(row.agent_id) }) as const);
  await appendFacts(transaction, now, facts);
}

function numberOrNull(value: unknown): number | null {
  return value === null ? null : Number(value);
}
