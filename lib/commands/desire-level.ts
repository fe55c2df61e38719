import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { logLevels } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import type { CommandBodies } from '@/lib/protocol/commands';
import type { LogLevel } from '@/lib/protocol/log-levels';
import type { DesiredLogLevel } from '@/lib/protocol/read-models';
import { settle } from './acknowledge';
import { commandFromRow } from './command-row';
import { clearDesired, desiredFromRow, writeDesired } from './desired-level';
import { queueCommand } from './queue-command';

/**
 * The log level of an agent's runner as desired state: what is asked stays asked, however long the runner is away,
 * until it is asked otherwise or its time has run out.
 *
 * Ordering: at most one command of an agent is open. What is superseded is settled in the transaction that queues what
 * supersedes it, so it is never sent behind it.
 * Failure: a command that expired, or went to a process that is gone, is queued anew when a runner connects, with the
 * time that is left then. `requestId` tells a runner that it has done this already.
 */
export interface LevelWish {
  agentId: string;
  /** Null: the runner's default. */
  level: LogLevel | null;
  /** Null: until it is changed. */
  ttlSeconds: number | null;
  by: string;
}

export async function desireLevel(
  transaction: WriteTransaction,
  { agentId, level, ttlSeconds, by }: LevelWish,
  now: number,
): Promise<{ commandId: string; desired: DesiredLogLevel }> {
  const desired: DesiredLogLevel = {
    level,
    requestedAt: now,
    requestedBy: by,
    expiresAt: ttlSeconds === null ? null : now + ttlSeconds * 1_000,
    state: 'requested',
    reason: null,
  };
  const commandId = crypto.randomUUID();
  await request(transaction, agentId, desired, { commandId, requestId: commandId }, now);
  return { commandId, desired };
}

/** A runner has connected: asks it again for what it has not answered, and a new process for all that is asked. */
export async function renewLevel(
  transaction: WriteTransaction,
  agentId: string,
  runnerId: string,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT l.*, c.state AS command_state, c.claimed_by, c.body
          FROM log_levels AS l JOIN commands AS c ON c.id = l.command_id
          WHERE l.agent_id = ? AND ifnull(l.expires_at, ?2 + 1) > ?2`,
    args: [agentId, now],
  });
  const [row] = rows;
  if (row === undefined || row.command_state === 'queued') return;
  if (row.command_state !== 'expired' && row.claimed_by === runnerId) return;
  const desired: DesiredLogLevel = { ...desiredFromRow(row), state: 'requested', reason: null };
  const { requestId } = JSON.parse(String(row.body)) as CommandBodies['log-level.set'];
  const ids = { commandId: crypto.randomUUID(), requestId };
  await request(transaction, agentId, desired, ids, now);
}

/** The wish that follows one whose time ran out unheard. */
const BACK = { level: null, ttlSeconds: null, by: 'time-limit' } as const;

/** The agents of which a level was asked for a time that is over. */
export function expiredLevels(now: number): DueRows {
  return { table: 'log_levels', key: 'agent_id', where: 'expires_at <= ?1', args: [now], order: 'expires_at' };
}

/**
 * What was asked for a time that is over is not asked any more. A runner that has taken it up goes back by its own clock;
 * one that has not may still write at a level that was asked before, without end, and is asked for its default.
 * @returns how many; call again while it is not 0
 */
export async function expireLevels(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = await transaction.execute(selectDue(expiredLevels(now), choice, 'agent_id, state'));
  const expired = EXPIRED.all(due);
  for (const { agentId, state } of expired) {
    if (state === 'requested') await desireLevel(transaction, { agentId, ...BACK }, now);
    else await clearDesired(transaction, agentId, now);
  }
  return expired.length;
}

const EXPIRED = shapeOf(logLevels, 'agentId', 'state');

async function request(
  transaction: WriteTransaction,
  agentId: string,
  desired: DesiredLogLevel,
  { commandId, requestId }: { commandId: string; requestId: string },
  now: number,
): Promise<void> {
  const { level, expiresAt, requestedBy } = desired;
  await writeDesired(transaction, agentId, desired, commandId, now);
  await settleOpen(transaction, agentId, `superseded: ${level ?? 'the default'} was asked for since`, now);
  const time = expiresAt === null ? {} : { ttlSeconds: Math.ceil((expiresAt - now) / 1_000), expiresAt };
  const body: CommandBodies['log-level.set'] = { level, by: requestedBy, requestId, ...time };
  const fields = { id: commandId, agentId, sessionId: null, now, expiresAt };
  await queueCommand(transaction, { ...fields, type: 'log-level.set', body });
}

async function settleOpen(transaction: WriteTransaction, agentId: string, reason: string, now: number): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands INDEXED BY commands_open_by_agent
          WHERE agent_id = ? AND state IN ('queued', 'delivered') AND type = 'log-level.set'`,
    args: [agentId],
  });
  for (const stored of rows.map(commandFromRow)) await settle(transaction, stored, 'failed', reason, now);
}
