import type { Command, CommandState } from '@interlude/protocol/commands';
import type { DesiredLogLevel } from '@interlude/protocol/log-levels';
import { AGENT_ROW } from '@/db/read-model-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { commandFromRow, type StoredCommand } from './command-row';

/** The log level asked of an agent's runner. It is in the agent's row; the newest command carries it. */

type LevelCommand = Extract<Command, { type: 'log-level.set' }>;

/** @returns null if nothing is asked */
export async function readDesired(
  transaction: WriteTransaction,
  agentId: string,
): Promise<{ desired: DesiredLogLevel; stored: StoredCommand & { command: LevelCommand } } | null> {
  const [agents, commands] = await transaction.batch([
    { sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, args: [agentId] },
    {
      sql: `SELECT * FROM commands INDEXED BY commands_of_level
            WHERE agent_id = ? AND type = 'log-level.set' ORDER BY position DESC LIMIT 1`,
      args: [agentId],
    },
  ]);
  const desired = AGENT_ROW.first(agents)?.body.logLevel.desired ?? null;
  const [newest] = commands?.rows ?? [];
  if (desired === null || newest === undefined) return null;
  return { desired, stored: commandFromRow(newest) as StoredCommand & { command: LevelCommand } };
}

/** @param desired null if nothing is asked any more */
export async function writeDesired(
  transaction: WriteTransaction,
  agentId: string,
  desired: DesiredLogLevel | null,
  now: number,
): Promise<void> {
  await appendFacts(transaction, now, [{ kind: 'level-asked', agentId, desired }]);
}

/** What the runner's answer to a command means for the wish: nothing if there is a newer one. */
export async function levelAnswered(
  transaction: WriteTransaction,
  agentId: string,
  command: LevelCommand,
  state: CommandState,
  reason: string | null,
  now: number,
): Promise<void> {
  if (state !== 'done' && state !== 'failed') return;
  const asked = await readDesired(transaction, agentId);
  if (asked?.stored.command.id !== command.id) return;
  // A confirmed default is no longer a wish.
  const isOver = state === 'done' && asked.desired.level === null;
  const answered = state === 'done' ? 'confirmed' : 'refused';
  await writeDesired(transaction, agentId, isOver ? null : { ...asked.desired, state: answered, reason }, now);
}

/** The command as it is sent now, with the time that is left. */
export function withTimeLeft(stored: StoredCommand, now: number): StoredCommand {
  const { command } = stored;
  if (command.type !== 'log-level.set' || command.body.expiresAt === undefined) return stored;
  const left = Math.max(1, Math.ceil((command.body.expiresAt - now) / 1_000));
  // if the clock was set back, the time left is still no more than was asked
  const ttlSeconds = Math.min(left, command.body.ttlSeconds ?? left);
  return { ...stored, command: { ...command, body: { ...command.body, ttlSeconds } } };
}
