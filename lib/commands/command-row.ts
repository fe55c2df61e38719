import type { Row } from '@libsql/client';
import type { Command, CommandState } from '@/lib/protocol/commands';

/** A command as the database holds it. */
export interface StoredCommand {
  command: Command;
  position: number;
  agentId: string;
  state: CommandState;
  reason: string | null;
}

export function commandFromRow(row: Row): StoredCommand {
  return {
    command: {
      id: String(row.id),
      type: String(row.type),
      sessionId: row.session_id === null ? null : String(row.session_id),
      createdAt: Number(row.created_at),
      expiresAt: Number(row.expires_at),
      body: JSON.parse(String(row.body)),
    } as Command,
    position: Number(row.position),
    agentId: String(row.agent_id),
    state: String(row.state) as CommandState,
    reason: row.reason === null ? null : String(row.reason),
  };
}
