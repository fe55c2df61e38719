import { MIN_SILENCE_MS, MISSED_REPORTS, RUNNER_AWAY_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import type { Row } from '@libsql/client';
import { choiceArgs, type DueRows, EVERY_ROW, isChosen, type RowChoice } from '@/db/row-sweep';
import { runners } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { tellReturn } from './runner-absence';

/**
 * Which runner an agent's commands go to.
 *
 * Ordering: of two runners of one agent the one that came later wins, as the server saw them come: at its first
 * connection each is allotted a generation, which it keeps. Of two streams of one runner the later wins. What a runner
 * says of its own start decides nothing.
 * Failure: a runner whose stream ended is away at once; one whose server died is away when its term runs out. What that
 * means for its sessions is told a grace later. @see runner-absence.ts
 */
export interface RunnerRef {
  id: string;
  /** When its process was started, by its own word: shown, and 0 for a runner that does not name itself. */
  startedAt: number;
}

export type ConnectOutcome = { kind: 'connected' } | { kind: 'fenced'; by: RunnerRef };

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

/** Generations that are remembered of one agent, the newest. A runner that is forgotten comes back as a new one. */
const MOST_GENERATIONS = 100;

/** In which order its runners came. */
interface Generations {
  /** Null for one that never connected; 0 for one that does not name itself. */
  of(runner: RunnerRef): number | null;
  newest: number;
}

async function readGenerations(
  transaction: WriteTransaction,
  agentId: string,
  runners: readonly RunnerRef[],
): Promise<Generations> {
  const [newest, known] = await transaction.batch([
    { sql: 'SELECT max(generation) AS newest FROM runner_generations WHERE agent_id = ?', args: [agentId] },
    {
      sql: `SELECT runner_id, generation FROM runner_generations
        WHERE agent_id = ? AND runner_id IN (SELECT value FROM json_each(?))`,
      args: [agentId, JSON.stringify(runners.map(({ id }) => id))],
    },
  ]);
  const found = new Map((known?.rows ?? []).map((row) => [String(row.runner_id), Number(row.generation)]));
  return {
    of: (runner) => (isUnnamed(runner) ? 0 : (found.get(runner.id) ?? null)),
    newest: Number(newest?.rows[0]?.newest ?? 0),
  };
}

/** Whether a newer runner has taken over from `runner`. One that never connected is not known to be older. */
export async function isOlder(
  transaction: WriteTransaction,
  agentId: string,
  runner: RunnerRef,
  stored: RunnerRef,
): Promise<boolean> {
  if (runner.id === stored.id) return false;
  const generations = await readGenerations(transaction, agentId, [runner, stored]);
  const own = generations.of(runner);
  return own !== null && own < (generations.of(stored) ?? 0);
}

/** Gives a runner that comes for the first time the next generation. */
async function allotGeneration(transaction: WriteTransaction, agentId: string, runner: RunnerRef): Promise<void> {
  if (isUnnamed(runner)) return;
  const generations = await readGenerations(transaction, agentId, [runner]);
  if (generations.of(runner) !== null) return;
  const generation = generations.newest + 1;
  await transaction.batch([
    {
      sql: 'INSERT INTO runner_generations (agent_id, runner_id, generation) VALUES (?, ?, ?)',
      args: [agentId, runner.id, generation],
    },
    {
      sql: 'DELETE FROM runner_generations WHERE agent_id = ? AND generation <= ?',
      args: [agentId, generation - MOST_GENERATIONS],
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
  // A runner that has gone fences nobody: otherwise, after a clock was set back, the only runner would be shut out for
  // ever.
  const isAlive = stored?.aliveUntil != null && stored.aliveUntil > now;
  if (stored !== null && isAlive && (await isOlder(transaction, agentId, runner, stored))) {
    return { kind: 'fenced', by: stored };
  }
  await allotGeneration(transaction, agentId, runner);
  const isSame = stored === null || stored.id === runner.id || (isUnnamed(stored) && isUnnamed(runner));
  // every earlier batch ended before it
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
  if (isSame) await tellReturn(transaction, agentId, stored?.firstConnectedPosition ?? null, now);
  // An agent exists as soon as its runner connects, before it has said anything.
  await appendFacts(transaction, now, [{ kind: 'runner-connected', agentId, runnerId: runner.id }]);
  return { kind: 'connected' };
}

/** What is still to be told about the previous process. */
function absenceOf(
  before: RunnerRow | null,
  isSame: boolean,
  position: number,
  now: number,
): Pick<RunnerRow, 'missedAt' | 'missedPosition' | 'absenceDueAt'> {
  const nothing = { missedAt: null, missedPosition: null, absenceDueAt: null };
  if (before === null) return nothing;
  // A runner back within its grace has not gone. The process before it has, whatever happens to its streams.
  if (isSame && before.aliveUntil === null && !isOfEarlier(before)) return nothing;
  if (isSame || (before.aliveUntil === null && before.missedAt !== null)) return before;
  // Another process has come: which sessions it takes up it says by speaking of them. The others are missed.
  // This concerns the time before it came; its own absence comes later.
  return { missedAt: now, missedPosition: position, absenceDueAt: now + RUNNER_GRACE_MS };
}

/** What is still to be told concerns a process before this one. */
function isOfEarlier({ missedPosition, absenceDueAt, firstConnectedPosition }: RunnerRow): boolean {
  return absenceDueAt !== null && missedPosition !== null && missedPosition <= firstConnectedPosition;
}

/** A runner that does not name itself has a new id each time it connects. */
function isUnnamed({ startedAt }: RunnerRef): boolean {
  return startedAt === 0;
}

const NEXT_POSITION = 'ifnull((SELECT position FROM counter), 0) + 1';

/** Missed from a time on, to be told a grace later; this never delays what is to be told of an earlier runner. */
const missedFrom = (at: string, graceFrom = at) => `alive_until = NULL,
  missed_at = iif(absence_due_at IS NULL, ${at}, missed_at),
  missed_position = iif(absence_due_at IS NULL, ${NEXT_POSITION}, missed_position),
  absence_due_at = ifnull(absence_due_at, ${graceFrom} + ${RUNNER_GRACE_MS})`;

/** No earlier than ?2, no later than ?1. */
const whileHeard = (at: string) => `min(?1, max(?2, ${at}))`;
/** When its term was renewed last, or its agent heard of since. */
const LAST_SIGN = `max(alive_until - ${RUNNER_AWAY_MS},
  ifnull((SELECT last_seen_at FROM agents WHERE id = runners.agent_id), 0))`;

/** The stream has ended, unless a newer one has taken its place. */
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
  await tellAway(transaction, rows, now);
}

/** Runners whose term has run out. */
export function silentRunners(now: number): DueRows {
  return { table: 'runners', key: 'agent_id', where: 'alive_until <= ?1', args: [now] };
}

/**
 * Runners whose server died with their streams. Their grace begins with their last sign of life, so that it ends with
 * their term: a runner that lives has come to another server by then.
 *
 * @param hearsSince since when it could have; the time before that does not count
 * @returns how many
 */
export async function disconnectSilent(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
  hearsSince = now,
): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `UPDATE runners SET ${missedFrom(whileHeard('alive_until'), whileHeard(LAST_SIGN))}
          WHERE alive_until <= ?1 AND ${isChosen('agent_id', 3)} RETURNING agent_id`,
    args: [now, hearsSince, ...choiceArgs(choice)],
  });
  await tellAway(transaction, rows, now);
  return rows.length;
}

/**
 * Runners whose stream is open but that have not reported as promised: a machine that lost power and a process that
 * hangs leave their connections open.
 * @returns the streams to end
 */
export async function disconnectMute(
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
  await tellAway(transaction, rows, now);
  return rows.map((row) => String(row.stream_id));
}

/** Renews the term of every stream open here. Nothing that is shown changes, so nobody is told. */
export async function renewRunners(
  transaction: WriteTransaction,
  streamIds: readonly string[],
  now: number,
): Promise<void> {
  // of one whose term has run out, somebody may just be saying that it is away
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

async function tellAway(transaction: WriteTransaction, runners: readonly Row[], now: number): Promise<void> {
  touchAll(transaction, runners);
  const facts = runners.map((row) => ({ kind: 'runner-away', agentId: String(row.agent_id) }) as const);
  await appendFacts(transaction, now, facts);
}

function touchAll(transaction: WriteTransaction, runners: readonly Row[]): void {
  transaction.touch(...runners.map((row) => `agent:${String(row.agent_id)}` as const));
}
