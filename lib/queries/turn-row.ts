import type { Row } from '@libsql/client';
import type { EventEntry } from '@/lib/projections/event-entry';
import { positionFromNumber } from '@/lib/protocol/position';
import type { TurnKind, TurnState } from '@/lib/protocol/read-models';
import type { TurnHeader } from '@/lib/protocol/turn-places';

export function headerFromRow(row: Row): TurnHeader {
  return {
    id: String(row.id),
    kind: String(row.kind) as TurnKind,
    state: String(row.state) as TurnState,
    position: positionFromNumber(Number(row.position)),
    trigger: row.trigger === null ? null : JSON.parse(String(row.trigger)),
    userMessageIds: JSON.parse(String(row.user_message_ids)),
    parentTurnId: textOrNull(row.parent_turn_id),
    startedAt: Number(row.started_at),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
    error: row.error_message === null ? null : { message: String(row.error_message), code: textOrNull(row.error_code) },
  };
}

export const ENTRY_COLUMNS = 'position, occurred_at, received_at, turn_id, payload';

export function entryFromRow(row: Row): EventEntry {
  return {
    position: positionFromNumber(Number(row.position)),
    occurredAt: Number(row.occurred_at),
    receivedAt: Number(row.received_at),
    event: JSON.parse(String(row.payload)),
  };
}

function textOrNull(value: unknown): string | null {
  return value === null ? null : String(value);
}
