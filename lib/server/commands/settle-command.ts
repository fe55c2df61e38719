import type { Ack, CommandResponse, CommandState } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { COMMANDS } from './command-table';
import { applyAcknowledgement } from './desired-state';
import { appendTransition, commandFromRow, type StoredCommand } from './queue-command';
import { isSuperseded, type RunnerRef, readRunner, runnerIn } from './runner-connection';

/**
 * The state after an acknowledgement; null leaves the command unchanged. Only `expired` can change afterwards: a runner
 * that was cut off may have acted before its command expired.
 */
const NEXT: Record<CommandState, Record<Ack['state'], Ack['state'] | null>> = {
  queued: { delivered: 'delivered', done: 'done', failed: 'failed' },
  delivered: { delivered: null, done: 'done', failed: 'failed' },
  done: { delivered: null, done: null, failed: null },
  failed: { delivered: null, done: null, failed: null },
  expired: { delivered: 'delivered', done: 'done', failed: null },
};

/**
 * `POST /agents/:id/commands/:commandId/ack`: a runner acknowledges a command, or reports its end. Safe to repeat.
 *
 * @returns the command's current state, whichever acknowledgement caused it
 * @throws AppError `invalid_argument`, `not_found`, `stale_epoch` when a newer runner has taken over
 */
export async function postAck(
  { request, ids: { agentId, commandId }, body: ack }: RequestContext<'agentId' | 'commandId', { body: Ack }>,
  server: ServerContext,
): Promise<CommandResponse> {
  const runner = runnerIn(request, ack);
  const now = server.now();
  const id = columnText(agentId);
  const keys = [`agent:${id}`] as const;
  return server.database.writes.run((transaction) => acknowledge(transaction, id, commandId, ack, runner, now), {
    keys,
  });
}

export async function acknowledge(
  transaction: WriteTransaction,
  agentId: string,
  commandId: string,
  ack: Pick<Ack, 'state' | 'reason'>,
  runner: RunnerRef | null,
  now: number,
): Promise<CommandResponse> {
  const current = await readRunner(transaction, agentId);
  if (runner !== null && current !== null && (await isSuperseded(transaction, agentId, runner, current))) {
    throw new AppError('stale_epoch', `A newer runner of this agent has taken over (${current.id}). Stop this one.`, {
      details: { runnerId: current.id, startedAt: current.startedAt },
    });
  }
  const { rows } = await transaction.execute({
    sql: 'SELECT * FROM commands WHERE id = ? AND agent_id = ?',
    args: [columnText(commandId), agentId],
  });
  if (rows[0] === undefined) {
    const message = `This agent has no command ${JSON.stringify(commandId)}. Discard it.`;
    throw new AppError('not_found', message);
  }
  const stored = commandFromRow(rows[0]);
  const next = NEXT[stored.state][ack.state];
  if (next === null) return { commandId: stored.command.id, state: stored.state };
  await settle(transaction, stored, next, ack.reason ?? null, now);
  return { commandId: stored.command.id, state: next };
}

/** Moves a command to its next state, updates the desired state and appends the events to the session. */
async function settle(
  transaction: WriteTransaction,
  { command, agentId, state: from }: StoredCommand,
  state: Exclude<CommandState, 'queued'>,
  reason: string | null,
  now: number,
): Promise<void> {
  transaction.touch(`agent:${agentId}`);
  await transaction.execute({
    sql: 'UPDATE commands SET state = ?, reason = ?, lease_until = NULL WHERE id = ?',
    args: [state, reason === null ? null : columnText(reason), command.id],
  });
  await applyAcknowledgement(transaction, agentId, command, state, reason, now);
  const transition = { from, to: state === 'expired' ? 'failed' : state, reason } as const;
  await appendTransition(transaction, agentId, command, transition, now);
}

export interface ClockReading {
  now: number;
  /** False while the server's clock may be wrong. */
  isTrusted: boolean;
}

const NEEDS_TRUSTED_CLOCK = Object.entries(COMMANDS).flatMap(([type, { expiry }]) =>
  expiry.clock === 'trusted' ? [`'${type}'`] : [],
);

export function expiredCommands({ now, isTrusted }: ClockReading): DueRows {
  const typeFilter = isTrusted ? '' : `AND type NOT IN (${NEEDS_TRUSTED_CLOCK.join(', ')})`;
  const where = `state IN ('queued', 'delivered') AND expires_at <= ?1 ${typeFilter}`;
  return { table: 'commands', key: 'id', where, args: [now], order: 'expires_at' };
}

/**
 * Settles commands whose term has expired.
 * @returns the number of commands; call again until it is 0
 */
export async function expireCommands(
  transaction: WriteTransaction,
  clock: ClockReading,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(expiredCommands(clock), choice, '*'));
  for (const stored of rows.map(commandFromRow)) {
    const outcome = stored.state === 'delivered' ? COMMANDS[stored.command.type].expiry.delivered : 'expired';
    await settle(transaction, stored, outcome, outcome === 'done' ? null : reasonOf(stored), clock.now);
  }
  return rows.length;
}

function reasonOf({ command, state }: StoredCommand): string {
  if (state === 'delivered') return 'the runner received it but never reported the outcome';
  const seconds = Math.round((command.expiresAt - command.createdAt) / 1_000);
  const minutes = Math.round(seconds / 60);
  const span =
    seconds < 120 ? `${seconds} seconds` : minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 1440)} days`;
  return `no runner received it within ${span}`;
}
