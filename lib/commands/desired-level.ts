import type { Row } from '@libsql/client';
import { logLevels } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { appendFacts } from '@/lib/ingest/append-facts';
import type { Command, CommandState } from '@/lib/protocol/commands';
import type { DesiredLogLevel } from '@/lib/protocol/read-models';
import type { StoredCommand } from './command-row';

/** The log level that is asked of an agent's runner, as the database holds it and as the agent's row shows it. */

type LevelCommand = Extract<Command, { type: 'log-level.set' }>;

export const LEVEL = shapeOf(logLevels);
const LEVELS = new RowWriter(logLevels, { keeps: [] });

export async function writeDesired(
  transaction: WriteTransaction,
  agentId: string,
  desired: DesiredLogLevel,
  commandId: string,
  now: number,
): Promise<void> {
  await transaction.execute(LEVELS.one({ agentId, commandId, ...desired }));
  await appendFacts(transaction, now, [{ kind: 'level-asked', agentId, desired }]);
}

/** Nothing is asked of it any more. */
export async function clearDesired(transaction: WriteTransaction, agentId: string, now: number): Promise<void> {
  await transaction.execute({ sql: 'DELETE FROM log_levels WHERE agent_id = ?', args: [agentId] });
  await appendFacts(transaction, now, [{ kind: 'level-asked', agentId, desired: null }]);
}

export function desiredFromRow(row: Row): DesiredLogLevel {
  const { agentId: _, commandId: __, ...desired } = LEVEL.read(row);
  return desired;
}

/** What the runner's answer to a command means for what is asked: nothing, when something else is asked by now. */
export async function levelAnswered(
  transaction: WriteTransaction,
  agentId: string,
  command: LevelCommand,
  state: CommandState,
  reason: string | null,
  now: number,
): Promise<void> {
  if (state !== 'done' && state !== 'failed') return;
  const { rows } = await transaction.execute({
    sql: 'SELECT * FROM log_levels WHERE agent_id = ? AND command_id = ?',
    args: [agentId, command.id],
  });
  if (rows[0] === undefined) return;
  const desired = desiredFromRow(rows[0]);
  // A default that was taken up asks nothing more of anybody.
  if (state === 'done' && desired.level === null) return clearDesired(transaction, agentId, now);
  const answered = state === 'done' ? 'confirmed' : 'refused';
  await writeDesired(transaction, agentId, { ...desired, state: answered, reason }, command.id, now);
}

/** The command as it is sent now: of its time only what is left. */
export function withTimeLeft(stored: StoredCommand, now: number): StoredCommand {
  const { command } = stored;
  if (command.type !== 'log-level.set' || command.body.expiresAt === undefined) return stored;
  const left = Math.max(1, Math.ceil((command.body.expiresAt - now) / 1_000));
  // a clock that was set back gives nobody more than was asked
  const ttlSeconds = Math.min(left, command.body.ttlSeconds ?? left);
  return { ...stored, command: { ...command, body: { ...command.body, ttlSeconds } } };
}
