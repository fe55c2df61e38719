import type { Row } from '@libsql/client';
import { commands } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { Command, CommandState } from '@/lib/protocol/commands';

/** A command as the database holds it. */
export interface StoredCommand {
  command: Command;
  position: number;
  agentId: string;
  state: CommandState;
  reason: string | null;
}

const COMMAND = shapeOf(
  commands,
  'id',
  'type',
  'sessionId',
  'createdAt',
  'expiresAt',
  'body',
  'position',
  'agentId',
  'state',
  'reason',
);

export function commandFromRow(row: Row): StoredCommand {
  const { position, agentId, state, reason, ...command } = COMMAND.read(row);
  return { command: command as Command, position, agentId, state, reason };
}
