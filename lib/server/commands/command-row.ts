import type { Command, CommandState } from '@interlude/protocol/commands';
import type { Row } from '@libsql/client';
import { commands } from '@/db/schema';
import { shapeWithout } from '@/db/table-rows';

/** A command as the database holds it. */
export interface StoredCommand {
  command: Command;
  position: number;
  agentId: string;
  state: CommandState;
  reason: string | null;
  /** The runner that was sent it last. */
  claimedBy: string | null;
}

const COMMAND = shapeWithout(commands, 'leaseUntil', 'deliveryCount');

export function commandFromRow(row: Row): StoredCommand {
  const { position, agentId, state, reason, claimedBy, ...command } = COMMAND.read(row);
  return { command: command as Command, position, agentId, state, reason, claimedBy };
}
