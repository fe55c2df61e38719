import { COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import type { Row } from '@libsql/client';
import type { WriteTransaction } from '@/db/writes';
import { commandFromRow, type StoredCommand } from './command-row';
import { withTimeLeft } from './desired-level';
import { type RunnerRef, readRunner } from './runner-connection';

/** Most commands of one claim. */
export const MAX_CLAIMED = 200;

export type ClaimOutcome =
  | { kind: 'claimed'; commands: StoredCommand[]; counter: number }
  | { kind: 'fenced'; by: RunnerRef }
  /** Another stream of the same runner has taken this one's place. */
  | { kind: 'replaced' };

export interface Claim {
  agentId: string;
  runner: RunnerRef;
  streamId: string;
  /** Everything open after this position is claimed, whoever holds its lease: this stream has not sent it yet. */
  after: number;
  now: number;
}

/**
 * Leases an agent's commands to a stream: those it has not sent yet, and those whose lease ran out unacknowledged.
 *
 * Ordering: by position, over old and new ones.
 * Failure: a claimed command that never reaches the runner is sent again when its lease has run out, or as soon as the
 * runner connects again with an earlier position.
 */
export async function claimCommands(transaction: WriteTransaction, claim: Claim): Promise<ClaimOutcome> {
  const { agentId, runner, streamId, after, now } = claim;
  const stored = await readRunner(transaction, agentId);
  if (stored !== null && stored.streamId !== streamId) {
    return stored.id !== runner.id
      ? { kind: 'fenced', by: { id: stored.id, startedAt: stored.startedAt } }
      : { kind: 'replaced' };
  }
  const [counter, due] = await transaction.batch([
    'SELECT position FROM counter',
    {
      sql: `SELECT commands.*, (SELECT alias FROM session_aliases AS a WHERE a.session_id = commands.session_id) AS alias
            FROM commands WHERE agent_id = ?1 AND state IN ('queued', 'delivered') AND expires_at > ?2
              AND (position > ?3 OR (state = 'queued' AND ifnull(lease_until, 0) <= ?2))
            ORDER BY position LIMIT ${MAX_CLAIMED}`,
      args: [agentId, now, after],
    },
  ]);
  const commands = (due?.rows ?? []).map((row) => withTimeLeft(forRunner(row), now));
  if (commands.length > 0) {
    await transaction.execute({
      sql: `UPDATE commands SET lease_until = ?, claimed_by = ?, delivery_count = delivery_count + 1
            WHERE id IN (SELECT value FROM json_each(?))`,
      args: [now + COMMAND_LEASE_MS, runner.id, JSON.stringify(commands.map(({ command }) => command.id))],
    });
  }
  return { kind: 'claimed', commands, counter: Number(counter?.rows[0]?.position ?? 0) };
}

/** A command with its session by the id that the runner knows. */
function forRunner(row: Row): StoredCommand {
  const stored = commandFromRow(row);
  const { command } = stored;
  if (row.alias === null || !('sessionId' in command)) return stored;
  return { ...stored, command: { ...command, sessionId: String(row.alias) } as typeof command };
}
