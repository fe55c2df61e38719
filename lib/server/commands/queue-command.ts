import type { Command, CommandBodies, CommandState, CommandType } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { utf8Length } from '@interlude/protocol/text';
import type { Row } from '@libsql/client';
import { commands } from '@/db/schema';
import { shapeWithout } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { COMMANDS, type Transition, transcriptEvents } from './command-table';

/** A command as stored in `commands`. */
export interface StoredCommand {
  command: Command;
  position: number;
  agentId: string;
  state: CommandState;
  reason: string | null;
  /** The runner that last received the command. */
  claimedBy: string | null;
}

const COMMAND = shapeWithout(commands, 'leaseUntil', 'deliveryCount');

export function commandFromRow(row: Row): StoredCommand {
  const { position, agentId, state, reason, claimedBy, ...command } = COMMAND.read(row);
  return { command: command as Command, position, agentId, state, reason, claimedBy };
}

/**
 * Writes a command and its events in the session.
 *
 * Ordering: the command's position follows its events; runners receive commands in order of position.
 * Failure: both are in the caller's transaction, so every command has its line in the transcript.
 *
 * @param fields `expiresAt` shortens the term of its kind
 * @throws AppError `too_large`
 */
export async function queueCommand<Type extends CommandType>(
  transaction: WriteTransaction,
  fields: {
    id: string;
    agentId: string;
    sessionId: string | null;
    type: Type;
    body: CommandBodies[Type];
    now: number;
    clientId?: string;
    waits?: boolean;
    expiresAt?: number | null;
  },
): Promise<Command> {
  const { id, agentId, sessionId, type, body, clientId = null, waits = false, now } = fields;
  const latest = now + COMMANDS[type].termMs;
  const expiresAt = Math.min(latest, fields.expiresAt ?? latest);
  const command = { id, type, sessionId, createdAt: now, expiresAt, body } as unknown as Command;
  const transition = { from: null, to: 'queued', reason: null, clientId, waits } as const;
  await appendTransition(transaction, agentId, command, transition, now);
  await transaction.execute({
    sql: `INSERT INTO commands (id, position, agent_id, session_id, type, body, state, created_at, expires_at)
          VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?)`,
    args: [id, await allocatePosition(transaction), agentId, sessionId, type, bodyJson(body), now, expiresAt],
  });
  return command;
}

/** Appends a command's transition to the command's session, if there is one. */
export async function appendTransition(
  transaction: WriteTransaction,
  agentId: string,
  command: Command,
  transition: Transition,
  now: number,
): Promise<void> {
  const { sessionId } = command;
  if (sessionId === null) return;
  const facts = transcriptEvents(command, transition).map((event) => ({ agentId, sessionId, event }));
  await appendFacts(transaction, now, facts);
}

/** Limited to the size of a record, so every database can store the command. */
function bodyJson(body: object): string {
  const json = stringifyWellFormed(body);
  // A UTF-16 unit takes at most three bytes.
  if (json.length * 3 <= MAX_RECORD_BYTES || utf8Length(json) <= MAX_RECORD_BYTES) return json;
  throw new AppError('too_large', `A command may have at most ${MAX_RECORD_BYTES} bytes as JSON. Shorten it.`, {
    details: { maxBytes: MAX_RECORD_BYTES },
  });
}

/** The newest open command of a session and type whose body matches. */
export async function findOpenCommand<Type extends CommandType>(
  transaction: WriteTransaction,
  agentId: string,
  sessionId: string,
  type: Type,
  matches: (body: CommandBodies[Type]) => boolean,
): Promise<StoredCommand | null> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands
          WHERE agent_id = ? AND session_id = ? AND type = ? AND state IN ('queued', 'delivered') ORDER BY position`,
    args: [agentId, sessionId, type],
  });
  const stored = rows.map(commandFromRow);
  return stored.findLast(({ command }) => matches(command.body as CommandBodies[Type])) ?? null;
}

/** Advances the server's position counter, for a row that is not an event. */
export async function allocatePosition(transaction: WriteTransaction): Promise<number> {
  const position = (await transaction.position()) + 1;
  await transaction.moveTo(position);
  return position;
}
