import { AppError } from '@interlude/protocol/errors';
import { idSchema, timeSchema } from '@interlude/protocol/field-schemas';
import { MIN_SILENCE_MS, MISSED_REPORTS, RUNNER_AWAY_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import type { Row } from '@libsql/client';
import { choiceArgs, type DueRows, EVERY_ROW, isChosen, type RowChoice } from '@/db/row-sweep';
import { runners } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { markReturned } from './runner-absence';

/**
 * The runner that receives an agent's commands.
 *
 * Ordering: of two runners of an agent, the one that first connected later wins: each runner gets a generation at its
 * first connection, and keeps it. Of two streams of one runner, the later wins. `startedAt` decides nothing.
 * Failure: a runner is away when its stream ends or, if the server died, when its term expires. Its sessions follow
 * after a grace period. @see runner-absence.ts
 */
export interface RunnerRef {
  id: string;
  /** Start of the runner's process, as reported by the runner; 0 for an unnamed one. */
  startedAt: number;
}

type ConnectOutcome = { kind: 'connected' } | { kind: 'fenced'; by: RunnerRef };

const RUNNER = shapeOf(runners);
const RUNNERS = new RowWriter(runners, { keeps: [] });

type RunnerRow = RunnerRef & Omit<typeof runners.$inferSelect, 'runnerId' | 'agentId'>;

export async function readRunner(transaction: WriteTransaction, agentId: string): Promise<RunnerRow | null> {
  transaction.touch(`agent:${agentId}`);
  const found = RUNNER.first(
    await transaction.execute({ sql: 'SELECT * FROM runners WHERE agent_id = ?', args: [agentId] }),
  );
  return found === undefined ? null : { id: found.runnerId, ...found };
}

/** Generations kept per agent. A runner with an older one counts as new. */
const MAX_GENERATIONS = 100;

/** A runner's generation: null if it never connected, 0 for an unnamed one. */
async function generationOf(transaction: WriteTransaction, agentId: string, runner: RunnerRef): Promise<number | null> {
  if (isUnnamed(runner)) return 0;
  const { rows } = await transaction.execute({
    sql: 'SELECT generation FROM runner_generations WHERE agent_id = ? AND runner_id = ?',
    args: [agentId, runner.id],
  });
  return rows[0] === undefined ? null : Number(rows[0].generation);
}

/** True if `stored` is newer than `runner`. A runner that never connected is never superseded. */
export async function isSuperseded(
  transaction: WriteTransaction,
  agentId: string,
  runner: RunnerRef,
  stored: RunnerRef,
): Promise<boolean> {
  if (runner.id === stored.id) return false;
  const generation = await generationOf(transaction, agentId, runner);
  return generation !== null && generation < ((await generationOf(transaction, agentId, stored)) ?? 0);
}

async function allotGeneration(transaction: WriteTransaction, agentId: string, runner: RunnerRef): Promise<void> {
  if ((await generationOf(transaction, agentId, runner)) !== null) return;
  await transaction.batch([
    {
      sql: `INSERT INTO runner_generations (agent_id, runner_id, generation)
            SELECT ?1, ?2, ifnull(max(generation), 0) + 1 FROM runner_generations WHERE agent_id = ?1`,
      args: [agentId, runner.id],
    },
    {
      sql: `DELETE FROM runner_generations WHERE agent_id = ?1 AND generation <=
            (SELECT max(generation) FROM runner_generations WHERE agent_id = ?1) - ${MAX_GENERATIONS}`,
      args: [agentId],
    },
  ]);
}

export async function connectRunner(
  transaction: WriteTransaction,
  agentId: string,
  runner: RunnerRef,
  streamId: string,
  now: number,
): Promise<ConnectOutcome> {
  const stored = await readRunner(transaction, agentId);
  // An absent runner fences no other. If it did, a clock set back could lock out the only runner forever.
  const isAlive = stored?.aliveUntil != null && stored.aliveUntil > now;
  if (stored !== null && isAlive && (await isSuperseded(transaction, agentId, runner, stored))) {
    return { kind: 'fenced', by: stored };
  }
  await allotGeneration(transaction, agentId, runner);
  const isSame = stored === null || stored.id === runner.id || (isUnnamed(stored) && isUnnamed(runner));
  // Every earlier batch ended before this position.
  const position = (await transaction.position()) + 1;
  const { missedAt, missedPosition, absenceDueAt } = absenceOf(stored, isSame, position, now);
  const first = isSame && stored !== null ? stored : { firstConnectedAt: now, firstConnectedPosition: position };
  await transaction.execute(
    RUNNERS.one({
      agentId,
      runnerId: runner.id,
      startedAt: runner.startedAt,
      streamId,
      aliveUntil: now + RUNNER_AWAY_MS,
      missedAt,
      missedPosition,
      absenceDueAt,
      isOver: false,
      firstConnectedAt: first.firstConnectedAt,
      firstConnectedPosition: first.firstConnectedPosition,
    }),
  );
  if (isSame) await markReturned(transaction, agentId, stored?.firstConnectedPosition ?? null, now);
  // The agent exists once its runner connects, before its first record.
  await appendFacts(transaction, now, [{ kind: 'runner-connected', agentId, runnerId: runner.id }]);
  return { kind: 'connected' };
}

/** An absence of an earlier process that the agent's sessions don't show yet. */
function absenceOf(
  before: RunnerRow | null,
  isSame: boolean,
  position: number,
  now: number,
): Pick<RunnerRow, 'missedAt' | 'missedPosition' | 'absenceDueAt'> {
  const nothing = { missedAt: null, missedPosition: null, absenceDueAt: null };
  if (before === null) return nothing;
  // A process that returns within its grace period was never absent. An earlier process was, regardless of its streams.
  if (isSame && before.aliveUntil === null && !isOfEarlier(before)) return nothing;
  if (isSame || (before.aliveUntil === null && before.missedAt !== null)) return before;
  // A new process resumes sessions by reporting them. The sessions that it does not report are absent from now on.
  return { missedAt: now, missedPosition: position, absenceDueAt: now + RUNNER_GRACE_MS };
}

/** True if the open absence belongs to a process before this one. */
function isOfEarlier({ missedPosition, absenceDueAt, firstConnectedPosition }: RunnerRow): boolean {
  return absenceDueAt !== null && missedPosition !== null && missedPosition <= firstConnectedPosition;
}

/** An unnamed runner gets a new id at each connection. */
function isUnnamed({ startedAt }: RunnerRef): boolean {
  return startedAt === 0;
}

const NEXT_POSITION = 'ifnull((SELECT position FROM counter), 0) + 1';

/** Opens an absence that takes effect after the grace period, unless an earlier one is still open. */
const missedFrom = (at: string, graceFrom = at) => `alive_until = NULL,
  missed_at = iif(absence_due_at IS NULL, ${at}, missed_at),
  missed_position = iif(absence_due_at IS NULL, ${NEXT_POSITION}, missed_position),
  absence_due_at = ifnull(absence_due_at, ${graceFrom} + ${RUNNER_GRACE_MS})`;

/** Clamps to the range from ?2 to ?1. */
const whileListening = (at: string) => `min(?1, max(?2, ${at}))`;
/** The last renewal of the runner's term or, if later, the last record of the runner's agent. */
const LAST_SIGN = `max(alive_until - ${RUNNER_AWAY_MS},
  ifnull((SELECT last_seen_at FROM agents WHERE id = runners.agent_id), 0))`;

/** Does nothing if a newer stream has taken over. */
export async function disconnectRunner(
  transaction: WriteTransaction,
  agentId: string,
  streamId: string,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `UPDATE runners SET ${missedFrom('?1')} WHERE agent_id = ?2 AND stream_id = ?3 AND alive_until IS NOT NULL
          RETURNING agent_id`,
    args: [now, agentId, streamId],
  });
  await appendAway(transaction, rows, now);
}

/** Runners whose term has expired. */
export function silentRunners(now: number): DueRows {
  return { table: 'runners', key: 'agent_id', where: 'alive_until <= ?1', args: [now] };
}

/**
 * Disconnects runners whose server died. The grace period starts at the runner's last sign of life, so it ends with the
 * term: by then a live runner has reached another server.
 *
 * @param listeningSince earlier time does not count, because no server could receive a sign of life
 * @returns the number of runners
 */
export async function disconnectExpired(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
  listeningSince = now,
): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `UPDATE runners SET ${missedFrom(whileListening('alive_until'), whileListening(LAST_SIGN))}
          WHERE alive_until <= ?1 AND ${isChosen('agent_id', 3)} RETURNING agent_id`,
    args: [now, listeningSince, ...choiceArgs(choice)],
  });
  await appendAway(transaction, rows, now);
  return rows.length;
}

/**
 * Disconnects runners that missed their promised reports although their stream is open: a machine that lost power or a
 * hanging process leaves its connection open.
 * @returns the streams to close
 */
export async function disconnectUnresponsive(
  transaction: WriteTransaction,
  streamIds: readonly string[],
  now: number,
): Promise<string[]> {
  const { rows } = await transaction.execute({
    sql: `UPDATE runners SET alive_until = NULL, missed_at = ?1, missed_position = ${NEXT_POSITION}, absence_due_at = ?1
          WHERE stream_id IN (SELECT value FROM json_each(?2)) AND alive_until IS NOT NULL AND EXISTS (
            SELECT 1 FROM agents AS a WHERE a.id = runners.agent_id
              AND a.reported_by = runners.runner_id
              AND a.last_seen_at + max(${MIN_SILENCE_MS}, ${MISSED_REPORTS} * a.reports_every_ms) < ?1)
          RETURNING agent_id, stream_id`,
    args: [now, JSON.stringify(streamIds)],
  });
  await appendAway(transaction, rows, now);
  return rows.map((row) => String(row.stream_id));
}

/** Renews the terms of this process's streams. Appends no fact, because nothing visible changes. */
export async function renewRunners(
  transaction: WriteTransaction,
  streamIds: readonly string[],
  now: number,
): Promise<void> {
  // Another transaction may be disconnecting a runner whose term has expired.
  const late = await transaction.execute({
    sql: `SELECT agent_id FROM runners WHERE stream_id IN (SELECT value FROM json_each(?)) AND alive_until <= ?`,
    args: [JSON.stringify(streamIds), now],
  });
  touchAll(transaction, late.rows);
  await transaction.execute({
    sql: `UPDATE runners SET alive_until = ?
          WHERE stream_id IN (SELECT value FROM json_each(?)) AND alive_until IS NOT NULL`,
    args: [now + RUNNER_AWAY_MS, JSON.stringify(streamIds)],
  });
}

async function appendAway(transaction: WriteTransaction, runners: readonly Row[], now: number): Promise<void> {
  touchAll(transaction, runners);
  const facts = runners.map((row) => ({ kind: 'runner-away', agentId: String(row.agent_id) }) as const);
  await appendFacts(transaction, now, facts);
}

function touchAll(transaction: WriteTransaction, runners: readonly Row[]): void {
  transaction.touch(...runners.map((row) => `agent:${String(row.agent_id)}` as const));
}

/**
 * The runner that sends a request, from `?runner=<id>&startedAt=<ms>` or the same fields of its body.
 *
 * @returns null for an unnamed runner
 * @throws AppError `invalid_argument`
 */
export function runnerIn(request: Request, body: { runner?: string; startedAt?: number } = {}): RunnerRef | null {
  const query = new URL(request.url).searchParams;
  const id = body.runner ?? query.get('runner');
  const startedAt = body.startedAt ?? query.get('startedAt');
  if (id === null && startedAt === null) return null;
  const number = typeof startedAt === 'string' && /^\d{1,16}$/.test(startedAt) ? Number(startedAt) : startedAt;
  if (!idSchema.safeParse(id).success || !timeSchema.safeParse(number).success) {
    throw new AppError('invalid_argument', 'Send both runner=<id> and startedAt=<epoch milliseconds>, or neither.');
  }
  return { id: id as string, startedAt: number as number };
}
