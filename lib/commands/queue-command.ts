import { columnText } from '@/db/column-text';
import type { WriteTransaction } from '@/db/write-queue';
import { appendServerEvents } from '@/lib/ingest/append-server-events';
import type { Command, CommandBodies, CommandType } from '@/lib/protocol/commands';
import { AppError } from '@/lib/protocol/errors';
import { COMMAND_EXPIRY_MS, MESSAGE_EXPIRY_MS } from '@/lib/protocol/limits';
import { messageEvents, momentEvent } from './command-events';
import { commandFromRow, type StoredCommand } from './command-row';
import { takePosition } from './take-position';

export interface NewCommand<Type extends CommandType> {
  id: string;
  agentId: string;
  sessionId: string | null;
  type: Type;
  body: CommandBodies[Type];
  clientId: string | null;
  now: number;
  /** When it is given up, where that is sooner than commands of its type are. */
  expiresAt?: number | null;
}

/**
 * Writes a command and what its session shows of it.
 *
 * Ordering: the command stands behind its session's events; a runner is sent commands by their position.
 * Failure: runs in the caller's transaction, so there is no command without its line in the transcript.
 */
export async function queueCommand<Type extends CommandType>(
  transaction: WriteTransaction,
  fields: NewCommand<Type>,
): Promise<Command> {
  const { id, agentId, sessionId, type, body, clientId, now } = fields;
  const latest = now + (type === 'message' ? MESSAGE_EXPIRY_MS : COMMAND_EXPIRY_MS);
  const expiresAt = Math.min(latest, fields.expiresAt ?? latest);
  const command = { id, type, sessionId, createdAt: now, expiresAt, body } as unknown as Command;
  if (sessionId !== null) {
    const queued = momentEvent(command, 'queued', null);
    const events = command.type === 'message' ? messageEvents(command, clientId) : queued === null ? [] : [queued];
    await appendServerEvents(
      transaction,
      now,
      events.map((event) => ({ agentId, sessionId, event })),
    );
  }
  const position = await takePosition(transaction);
  await transaction.execute({
    sql: `INSERT INTO commands (id, position, agent_id, session_id, type, body, client_id, state, created_at, expires_at,
            updated_position)
          VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?)`,
    args: [id, position, agentId, sessionId, type, JSON.stringify(body), clientId, now, expiresAt, position],
  });
  return command;
}

/** What the same client asked for under the same name before. */
export async function findByClientId(
  transaction: WriteTransaction,
  sessionId: string,
  clientId: string,
): Promise<StoredCommand | null> {
  return findOne(transaction, 'session_id = ? AND client_id = ?', [columnText(sessionId), clientId]);
}

/** The refusal of a `clientId` under which the session has something else already. */
export function reused({ id, type }: Command): AppError {
  const what = type === 'message' ? 'another message' : `another command (${type})`;
  return new AppError('conflict', `This clientId stands for ${what} already. Send this one under a new clientId.`, {
    details: { reason: 'client_id_reused', commandId: id },
  });
}

/** The newest command of a session and type whose body has this at `path`, and that can still have its effect. */
export async function findEffective(
  transaction: WriteTransaction,
  agentId: string,
  sessionId: string,
  type: CommandType,
  about: { path: string; value: string } | null,
): Promise<StoredCommand | null> {
  const where = `agent_id = ? AND session_id = ? AND type = ? AND state IN ('queued', 'delivered')`;
  const args = [agentId, sessionId, type];
  return about === null
    ? findOne(transaction, where, args)
    : findOne(transaction, `${where} AND body->>? = ?`, [...args, about.path, about.value]);
}

async function findOne(transaction: WriteTransaction, where: string, args: string[]): Promise<StoredCommand | null> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands WHERE ${where} ORDER BY position DESC LIMIT 1`,
    args,
  });
  return rows[0] === undefined ? null : commandFromRow(rows[0]);
}
