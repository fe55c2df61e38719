import { positionFromNumber } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import { events, turns } from '@/db/schema';
import { shapeOf, shapeWithout } from '@/db/table-rows';

const TURN = shapeWithout(turns, 'sessionId');
const ENTRY = shapeOf(events, 'position', 'occurredAt', 'receivedAt', 'turnId', 'payload');

export const ENTRY_COLUMNS = ENTRY.columns();

export function headerFromRow(row: Row): TurnHeader {
  const { position, errorMessage, errorCode, inferred, ...header } = TURN.read(row);
  const error = errorMessage === null ? null : { message: errorMessage, code: errorCode };
  return { ...header, position: positionFromNumber(position), error, ...(inferred ? { inferred } : {}) };
}

export function entryFromRow(row: Row): EventEntry {
  const { position, occurredAt, receivedAt, payload } = ENTRY.read(row);
  return { position: positionFromNumber(position), occurredAt, receivedAt, event: payload };
}
