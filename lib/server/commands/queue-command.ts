import type { Command, CommandBodies, CommandType } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { stringifyWellFormed } from '@interlude/protocol/json';
import {
  COMMAND_EXPIRY_MS,
  INTERRUPT_EXPIRY_MS,
  MAX_RECORD_BYTES,
  MESSAGE_EXPIRY_MS,
} from '@interlude/protocol/limits';
import { utf8Length } from '@interlude/protocol/log-text';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { messageEvents, momentEvent } from './command-events';
import { commandFromRow, type StoredCommand } from './command-row';
import { takePosition } from './take-position';

export interface NewCommand<Type extends CommandType> {
  id: string;
  agentId: string;
  sessionId: string | null;
  type: Type;
  body: CommandBodies[Type];
  /** The `clientId` of a message, which carries it. */
  clientId?: string;
  /** Of a message: no runner listens for it now. */
  waits?: boolean;
  now: number;
  /** When it is given up, if sooner than other commands of its type. */
  expiresAt?: number | null;
}

/**
 * Writes a command and what its session shows of it.
 *
 * Ordering: the command comes after its session's events; commands are sent in order of position.
 * Failure: runs in the caller's transaction, so there is no command without its line in the transcript.
 *
 * @throws AppError `too_large`
 */
export async function queueCommand<Type extends CommandType>(
  transaction: WriteTransaction,
  fields: NewCommand<Type>,
): Promise<Command> {
  const { id, agentId, sessionId, type, body, clientId = null, waits = false, now } = fields;
  const latest = now + expiryMs(type);
  const expiresAt = Math.min(latest, fields.expiresAt ?? latest);
  const command = { id, type, sessionId, createdAt: now, expiresAt, body } as unknown as Command;
  if (sessionId !== null) {
    const queued = momentEvent(command, 'queued', null);
    const events =
      command.type === 'message' ? messageEvents(command, clientId, waits) : queued === null ? [] : [queued];
    await appendFacts(
      transaction,
      now,
      events.map((event) => ({ agentId, sessionId, event })),
    );
  }
  await transaction.execute({
    sql: `INSERT INTO commands (id, position, agent_id, session_id, type, body, state, created_at, expires_at)
          VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?)`,
    args: [id, await takePosition(transaction), agentId, sessionId, type, bodyJson(body), now, expiresAt],
  });
  return command;
}

/** No longer than a record, so that every database can hold it. */
function bodyJson(body: object): string {
  const json = stringifyWellFormed(body);
  // a UTF-16 unit takes at most three bytes
  if (json.length * 3 <= MAX_RECORD_BYTES || utf8Length(json) <= MAX_RECORD_BYTES) return json;
  throw new AppError('too_large', `A command may hold ${MAX_RECORD_BYTES} bytes as JSON. Send less of it.`, {
    details: { maxBytes: MAX_RECORD_BYTES },
  });
}

function expiryMs(type: CommandType): number {
  if (type === 'message') return MESSAGE_EXPIRY_MS;
  // Both are meant for what is there now, and for no runner that comes later.
  return type === 'interrupt' || type === 'session.end' ? INTERRUPT_EXPIRY_MS : COMMAND_EXPIRY_MS;
}

/** The newest command of a session and type that asks for this and can still have its effect. */
export async function findEffective<Type extends CommandType>(
  transaction: WriteTransaction,
  agentId: string,
  sessionId: string,
  type: Type,
  asksForIt: (body: CommandBodies[Type]) => boolean,
): Promise<StoredCommand | null> {
  // An agent has few open commands, and they have their own index.
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands
          WHERE agent_id = ? AND session_id = ? AND type = ? AND state IN ('queued', 'delivered') ORDER BY position`,
    args: [agentId, sessionId, type],
  });
  const stored = rows.map(commandFromRow);
  return stored.findLast(({ command }) => asksForIt(command.body as CommandBodies[Type])) ?? null;
}
