import type { Ack, CommandAnswer, CommandState } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from '@/lib/server/access/asked';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { momentEvent } from './command-events';
import { commandFromRow, type StoredCommand } from './command-row';
import { levelAnswered } from './desired-level';
import { runnerIn } from './runner-arguments';
import { isOlder, type RunnerRef, readRunner } from './runner-connection';
import { ruleAnswered } from './wake-rule';

/**
 * The state an acknowledgement moves a command to; null: none. An end stays, except one that was only presumed: a
 * runner that was cut off may have acted before its command expired.
 */
const NEXT: Record<CommandState, Record<Ack['state'], Ack['state'] | null>> = {
  queued: { delivered: 'delivered', done: 'done', failed: 'failed' },
  delivered: { delivered: null, done: 'done', failed: 'failed' },
  done: { delivered: null, done: null, failed: null },
  failed: { delivered: null, done: null, failed: null },
  expired: { delivered: 'delivered', done: 'done', failed: null },
};

/**
 * `POST /agents/:id/commands/:commandId/ack`: a runner says what became of a command. May be sent again.
 *
 * @returns the command's state now, whichever acknowledgement brought it there
 * @throws AppError `invalid_argument`, `not_found`, `stale_epoch` when a newer runner has taken over
 */
export async function postAck(
  { request, ids: { agentId, commandId }, body: ack }: Asked<'agentId' | 'commandId', { body: Ack }>,
  server: ServerContext,
): Promise<CommandAnswer> {
  const runner = runnerIn(request, ack);
  const now = server.now();
  return server.database.writes.run(
    (transaction) => acknowledge(transaction, columnText(agentId), commandId, ack, runner, now),
    { keys: [`agent:${columnText(agentId)}`] },
  );
}

export async function acknowledge(
  transaction: WriteTransaction,
  agentId: string,
  commandId: string,
  ack: Pick<Ack, 'state' | 'reason'>,
  runner: RunnerRef | null,
  now: number,
): Promise<CommandAnswer> {
  const current = await readRunner(transaction, agentId);
  if (runner !== null && current !== null && (await isOlder(transaction, agentId, runner, current))) {
    throw new AppError('stale_epoch', `A newer runner of this agent has taken over (${current.id}). Stop this one.`, {
      details: { runnerId: current.id, startedAt: current.startedAt },
    });
  }
  const { rows } = await transaction.execute({
    sql: 'SELECT * FROM commands WHERE id = ? AND agent_id = ?',
    args: [columnText(commandId), agentId],
  });
  if (rows[0] === undefined) {
    const message = `There is no command ${JSON.stringify(commandId)} for this agent. Forget it.`;
    throw new AppError('not_found', message);
  }
  const stored = commandFromRow(rows[0]);
  const next = NEXT[stored.state][ack.state];
  if (next === null) return { commandId: stored.command.id, state: stored.state };
  await settle(transaction, stored, next, ack.reason ?? null, now);
  return { commandId: stored.command.id, state: next };
}

/** Moves a command on and says so in its session. */
export async function settle(
  transaction: WriteTransaction,
  { command, agentId, state: before }: StoredCommand,
  state: Exclude<CommandState, 'queued'>,
  reason: string | null,
  now: number,
): Promise<void> {
  transaction.touch(`agent:${agentId}`);
  await transaction.execute({
    sql: 'UPDATE commands SET state = ?, reason = ?, lease_until = NULL WHERE id = ?',
    args: [state, reason === null ? null : columnText(reason), command.id],
  });
  if (command.type === 'log-level.set') await levelAnswered(transaction, agentId, command, state, reason, now);
  if (command.type === 'wake-rule.set') await ruleAnswered(transaction, agentId, command, state, now);
  // Delivered and done are one moment in a message's life, and it is told once.
  if (command.type === 'message' && state === 'done' && before === 'delivered') return;
  const event = momentEvent(command, state === 'expired' ? 'failed' : state, reason);
  if (command.sessionId === null || event === null) return;
  await appendFacts(transaction, now, [{ agentId, sessionId: command.sessionId, event }]);
}
