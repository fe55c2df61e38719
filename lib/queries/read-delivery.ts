import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { AGENT_ROW, agentFromRow, producerFromRow, SESSION_ROW, sessionFromRow } from '@/db/fleet-rows';
import { events } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import { customName, customValue, pickNumber, pickText } from '@/lib/projections/event-fields';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import { readAgentStatus } from '@/lib/protocol/agent-status';
import type { MissingRecords, SessionDelivery } from '@/lib/protocol/read-models';
import { query, readTogether } from './read-together';

const EVENT = shapeOf(events, 'position', 'receivedAt', 'payload');
const MOST_PRODUCERS = 20;
const MOST_MISSING = 100;

/**
 * Whether everything that was told of a session is there. An outbox numbers its records without a hole and the server
 * takes none beyond the next one, so all that can be missing is what an outbox declared lost, or what is in quarantine.
 *
 * @returns null when there is no such session
 */
export async function readDelivery({ reader }: Database, sessionId: string): Promise<SessionDelivery | null> {
  const id = columnText(sessionId);
  const { position, found } = await readTogether(reader, [
    query(sessionFromRow, `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ?`, id),
    query(
      agentFromRow,
      `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = (SELECT agent_id FROM sessions WHERE id = ?)`,
      id,
    ),
    query(
      producerFromRow,
      `SELECT p.* FROM producer_sessions AS s CROSS JOIN producers AS p ON p.id = s.producer_id
        WHERE s.session_id = ? AND p.agent_id IS NOT NULL ORDER BY p.last_seen_at DESC LIMIT ${MOST_PRODUCERS}`,
      id,
    ),
    query(
      (row) => missingOf(EVENT.read(row)),
      `SELECT ${EVENT.columns()} FROM events INDEXED BY events_missing
        WHERE session_id = ? AND name IN ('${CUSTOM.lost}', '${CUSTOM.quarantined}')
        ORDER BY position DESC LIMIT ${MOST_MISSING}`,
      id,
    ),
  ]);
  const [[session], [agent], producers, missing] = found;
  if (session === undefined) return null;
  const { lostCount, quarantinedCount } = session;
  const count = readAgentStatus(agent?.status ?? null).outbox?.depth;
  const waiting = count === undefined ? null : { count, at: agent?.lastSeenAt ?? 0 };
  return { position, producers, missing, lostCount, quarantinedCount, waiting };
}

function missingOf({ position, receivedAt, payload }: ReturnType<typeof EVENT.read>): MissingRecords {
  const value = customValue(payload);
  const isLost = customName(payload) === CUSTOM.lost;
  return {
    kind: isLost ? 'lost' : 'quarantined',
    position: String(position),
    at: receivedAt,
    count: isLost ? Math.max(1, pickNumber(value, 'count') ?? 1) : 1,
    seq: isLost ? null : pickNumber(value, 'seq'),
    reason: pickText(value, isLost ? 'reason' : 'message') ?? 'no reason given',
  };
}
