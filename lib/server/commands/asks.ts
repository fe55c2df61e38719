import type { CommandType } from '@interlude/protocol/commands';
import { digestOf } from '@interlude/protocol/request-digest';
import { asks } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { commandFromRow, type StoredCommand } from './command-row';
import { conflict } from './refusals';

/** Everything a person asks for in a session, except the name they gave it (`clientId`). */
export interface Ask {
  type:
    | Exclude<CommandType, 'log-level.set'>
    | 'obligation.waive'
    | 'obligation.accept'
    | 'parked.assign'
    | 'parked.discard';
  [field: string]: unknown;
}

const SAID = shapeOf(asks, 'said');

/** An ask under the name its client gave it. */
export interface NamedAsk {
  sessionId: string;
  clientId: string;
  type: Ask['type'];
  digest: string;
}

/** @returns null if the client gave it no name: then every ask is a new one */
export function namedAsk(sessionId: string, clientId: string | undefined, ask: Ask): NamedAsk | null {
  if (clientId === undefined) return null;
  return { sessionId: columnText(sessionId), clientId: columnText(clientId), type: ask.type, digest: digestOf(ask) };
}

/**
 * Whether this was asked before, under the same name. What was asked so long ago that retention has removed it was not.
 *
 * @returns null if it was not; else the command it led to, which is null if nothing is asked of a runner, and what else
 *   was said of it then
 * @throws AppError `conflict` if the name stands for anything else, even in one field of the body
 */
export async function askedBefore(
  transaction: WriteTransaction,
  ask: NamedAsk | null,
): Promise<{ command: StoredCommand | null; said: object | null } | null> {
  if (ask === null) return null;
  const { rows } = await transaction.execute({
    sql: `SELECT asks.digest, asks.command_id, asks.said, commands.* FROM asks LEFT JOIN commands ON commands.id = asks.command_id
          WHERE asks.session_id = ? AND asks.client_id = ?`,
    args: [ask.sessionId, ask.clientId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const command = row.command_id === null ? null : commandFromRow(row);
  if (row.digest === ask.digest) return { command, said: SAID.read(row).said };
  const what =
    command === null ? 'something else' : `a command (${command.command.type}) that asked for something else`;
  const message = `This clientId stands for ${what}. Send this under a new clientId.`;
  throw conflict('client_id_reused', message, command === null ? {} : { commandId: command.command.id });
}

export async function noteAsk(
  transaction: WriteTransaction,
  ask: NamedAsk | null,
  commandId: string | null,
  said: object | null = null,
): Promise<void> {
  if (ask === null) return;
  await transaction.execute({
    sql: 'INSERT INTO asks (session_id, client_id, digest, command_id, said, asked_position) VALUES (?, ?, ?, ?, ?, ?)',
    args: [
      ...[ask.sessionId, ask.clientId, ask.digest, commandId, said === null ? null : JSON.stringify(said)],
      await transaction.position(),
    ],
  });
}
