import type { CommandBodies } from '@interlude/protocol/commands';
import type { DesiredLogLevel, LogLevel } from '@interlude/protocol/log-levels';
import { AGENT_ROW } from '@/db/read-model-rows';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';
import { settle } from './acknowledge';
import { commandFromRow } from './command-row';
import { readDesired, writeDesired } from './desired-level';
import { queueCommand } from './queue-command';

/**
 * The log level of an agent's runner as desired state: a wish stands, however long the runner is away, until it is
 * replaced or its time is over.
 *
 * Ordering: at most one command of an agent is open. What is superseded is settled in the transaction that queues what
 * supersedes it, so neither is sent with the other.
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
  transaction.touch(`agent:${agentId}`);
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
  const asked = await readDesired(transaction, agentId);
  if (asked === null) return;
  const { command, state, claimedBy } = asked.stored;
  const isOver = asked.desired.expiresAt !== null && asked.desired.expiresAt <= now;
  if (isOver || state === 'queued' || (state !== 'expired' && claimedBy === runnerId)) return;
  const desired: DesiredLogLevel = { ...asked.desired, state: 'requested', reason: null };
  const { requestId } = command.body;
  await request(transaction, agentId, desired, { commandId: crypto.randomUUID(), requestId }, now);
}

/** The wish that follows one whose time ran out unconfirmed. */
const BACK = { level: null, ttlSeconds: null, by: 'time-limit' } as const;

/** The agents whose wish has run out of time. */
export function expiredLevels(now: number): DueRows {
  const where = 'level_requested_at IS NOT NULL AND level_expires_at <= ?1';
  return { table: 'agents', key: 'id', where, args: [now], order: 'level_expires_at' };
}

/**
 * Withdraws wishes whose time is over. A runner that has confirmed goes back by its own clock; one that has not may
 * still be writing at an earlier level that has no time limit, and is asked for its default.
 * @returns how many; call again while it is not 0
 */
export async function expireLevels(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(expiredLevels(now), choice, AGENT_ROW.columns()));
  for (const { id: agentId, body } of rows.map(AGENT_ROW.read)) {
    const isHeard = body.logLevel.desired?.state !== 'requested';
    if (isHeard) await writeDesired(transaction, agentId, null, now);
    else await desireLevel(transaction, { agentId, ...BACK }, now);
  }
  return rows.length;
}

async function request(
  transaction: WriteTransaction,
  agentId: string,
  desired: DesiredLogLevel,
  { commandId, requestId }: { commandId: string; requestId: string },
  now: number,
): Promise<void> {
  const { level, expiresAt, requestedBy } = desired;
  await writeDesired(transaction, agentId, desired, now);
  const time = expiresAt === null ? {} : { ttlSeconds: Math.ceil((expiresAt - now) / 1_000), expiresAt };
  const body: CommandBodies['log-level.set'] = { level, by: requestedBy, requestId, ...time };
  const fields = { id: commandId, agentId, sessionId: null, now, expiresAt };
  await queueCommand(transaction, { ...fields, type: 'log-level.set', body });
  // after it: a command that is no longer the newest does not decide what is asked
  await settleOpen(transaction, agentId, commandId, `superseded: ${level ?? 'the default'} was asked for since`, now);
}

async function settleOpen(
  transaction: WriteTransaction,
  agentId: string,
  newestId: string,
  reason: string,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands INDEXED BY commands_open_by_agent
          WHERE agent_id = ? AND state IN ('queued', 'delivered') AND type = 'log-level.set' AND id <> ?`,
    args: [agentId, newestId],
  });
  for (const stored of rows.map(commandFromRow)) await settle(transaction, stored, 'failed', reason, now);
}
