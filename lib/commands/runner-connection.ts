import { columnText } from '@/db/column-text';
import { agentFromRow, agentToRow } from '@/db/fleet-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { newAgent } from '@/lib/ingest/agent-ledger';
import { RUNNER_AWAY_MS } from '@/lib/protocol/limits';
import { positionFromNumber } from '@/lib/protocol/position';
import type { AgentSummary } from '@/lib/protocol/read-models';
import { takePosition } from './take-position';

/**
 * Which runner an agent's commands go to.
 *
 * Ordering: of two runners of one agent the one that was started later wins, whichever connects first. Of two streams
 * of one runner the later wins.
 * Failure: a runner whose stream ended is away at once; one whose server died is away when its term runs out.
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
}

export async function readRunner(transaction: WriteTransaction, agentId: string): Promise<RunnerRow | null> {
  const { rows } = await transaction.execute({ sql: 'SELECT * FROM runners WHERE agent_id = ?', args: [agentId] });
  const [row] = rows;
  if (row === undefined) return null;
  return {
    id: String(row.runner_id),
    startedAt: Number(row.started_at),
    streamId: String(row.stream_id),
    aliveUntil: row.alive_until === null ? null : Number(row.alive_until),
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
  await transaction.execute({
    sql: `INSERT INTO runners (agent_id, runner_id, started_at, stream_id, alive_until) VALUES (?, ?, ?, ?, ?)
          ON CONFLICT (agent_id) DO UPDATE SET runner_id = excluded.runner_id, started_at = excluded.started_at,
            stream_id = excluded.stream_id, alive_until = excluded.alive_until`,
    args: [agentId, columnText(runner.id), runner.startedAt, streamId, now + RUNNER_AWAY_MS],
  });
  await changeAgent(transaction, agentId, now, (agent) => ({
    ...agent,
    lastSeenAt: now,
    connection: 'connected',
    connectedSince: agent.connection === 'connected' && agent.runnerId === runner.id ? agent.connectedSince : now,
    runnerId: runner.id,
  }));
  return { kind: 'connected' };
}

/** The stream has ended, unless a newer one has taken its place. */
export async function disconnectRunner(
  transaction: WriteTransaction,
  agentId: string,
  streamId: string,
  now: number,
): Promise<void> {
  const { rowsAffected } = await transaction.execute({
    sql: 'UPDATE runners SET alive_until = NULL WHERE agent_id = ? AND stream_id = ?',
    args: [agentId, streamId],
  });
  if (rowsAffected > 0) await sayAway(transaction, agentId, now);
}

/** Runners whose server died with their streams. @returns how many */
export async function disconnectSilent(transaction: WriteTransaction, now: number): Promise<number> {
  const { rows } = await transaction.execute({
    sql: 'UPDATE runners SET alive_until = NULL WHERE alive_until <= ? RETURNING agent_id',
    args: [now],
  });
  for (const row of rows) await sayAway(transaction, String(row.agent_id), now);
  return rows.length;
}

/** The term of every stream that is open here. Nobody is told: nothing that is shown changes. */
export async function renewRunners(
  transaction: WriteTransaction,
  streamIds: readonly string[],
  now: number,
): Promise<void> {
  await transaction.execute({
    sql: 'UPDATE runners SET alive_until = ? WHERE stream_id IN (SELECT value FROM json_each(?))',
    args: [now + RUNNER_AWAY_MS, JSON.stringify(streamIds)],
  });
}

function sayAway(transaction: WriteTransaction, agentId: string, now: number): Promise<void> {
  return changeAgent(transaction, agentId, now, (agent) => ({ ...agent, connection: 'away', connectedSince: now }));
}

/** An agent is there as soon as its runner is, before it has said anything. */
export async function changeAgent(
  transaction: WriteTransaction,
  agentId: string,
  now: number,
  change: (agent: AgentSummary) => AgentSummary,
): Promise<void> {
  const { rows } = await transaction.execute({ sql: 'SELECT * FROM agents WHERE id = ?', args: [agentId] });
  const before = rows[0] === undefined ? newAgent(agentId, now) : agentFromRow(rows[0]);
  const updatedPosition = positionFromNumber(await takePosition(transaction));
  const row = agentToRow({ ...change(before), updatedPosition });
  await transaction.execute({
    sql: `INSERT INTO agents (id, body, last_seen_at, updated_position) VALUES (?, ?, ?, ?)
          ON CONFLICT (id) DO UPDATE SET body = excluded.body, last_seen_at = excluded.last_seen_at,
            updated_position = excluded.updated_position`,
    args: [row.id, JSON.stringify(row.body), row.lastSeenAt, row.updatedPosition],
  });
}
