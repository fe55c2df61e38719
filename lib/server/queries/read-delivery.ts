import { readAgentStatus } from '@interlude/protocol/agent-status';
import { CUSTOM, customValue, pickNumber, pickText } from '@interlude/protocol/event-fields';
import { comparePositions } from '@interlude/protocol/position';
import type { MissingRecords, SessionDelivery } from '@interlude/protocol/read-models';
import type { Row } from '@libsql/client';
import { AGENT_ROW, agentFromRow, producerFromRow, SESSION_ROW, sessionFromRow } from '@/db/read-model-rows';
import { events, quarantine } from '@/db/schema';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { ReadScope } from '@/lib/server/access/request-context';
import { query, readSnapshot } from './read-snapshot';

const EVENT = shapeOf(events, 'position', 'receivedAt', 'payload');
const QUARANTINED = shapeOf(quarantine, 'position', 'receivedAt', 'seq', 'message');
const MAX_PRODUCERS = 20;
const MAX_MISSING = 100;
const MAX_COUNTED = 100_000;

const AGENT_ID = '(SELECT agent_id FROM sessions WHERE id = ?1)';
/** The outboxes that wrote to a session. */
const producersOf = (columns: string, where: string) => `SELECT ${columns} FROM producer_sessions AS s
  CROSS JOIN producers AS p ON p.id = s.producer_id
  WHERE s.session_id = ?1 AND p.agent_id IS NOT NULL AND ${where} ORDER BY p.last_seen_at DESC LIMIT ${MAX_PRODUCERS}`;
/** A session's quarantined records that are not settled. */
const quarantinedOf = (columns: string) => `SELECT ${columns} FROM quarantine INDEXED BY quarantine_missing
  WHERE session_id = ?1 AND agent_id = ${AGENT_ID} AND session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked'`;
const countOf = (rows: string) => `SELECT count(*) AS count FROM (${rows} LIMIT ${MAX_COUNTED})`;
const asCount = (row: Row) => Number(row.count);

/**
 * A session's missing records. Sequence numbers are dense and the server accepts no gap, so only declared losses and
 * quarantined records can be missing. A quarantined record without a session may belong to any session of its outbox.
 *
 * @returns null for an unknown session
 */
export async function readDelivery(view: ReadScope, sessionId: string): Promise<SessionDelivery | null> {
  const id = columnText(sessionId);
  // Agents and outboxes reveal all of the agent's sessions, so only readers of the whole agent receive them.
  const [ofAgent, ofProducer] = [agentsIn(view.scope, 'id'), agentsIn(view.scope, 'p.agent_id')];
  const { position, found } = await readSnapshot(view, [
    query(
      sessionFromRow,
      `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ? AND ${sessionsIn(view.scope, 'id')}`,
      id,
    ),
    query(agentFromRow, `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ${AGENT_ID} AND ${ofAgent}`, id),
    query(producerFromRow, producersOf('p.*', ofProducer), id),
    query(
      (row) => lostRecords(EVENT.read(row)),
      `SELECT ${EVENT.columns()} FROM events INDEXED BY events_lost
        WHERE session_id = ?1 AND name = '${CUSTOM.lost}' ORDER BY position DESC LIMIT ${MAX_MISSING}`,
      id,
    ),
    query(
      (row) => quarantinedRecord(QUARANTINED.read(row)),
      `${quarantinedOf(QUARANTINED.columns())} ORDER BY position DESC LIMIT ${MAX_MISSING}`,
      id,
    ),
    query(asCount, countOf(quarantinedOf('1')), id),
    query(
      asCount,
      countOf(`SELECT 1 FROM (${producersOf('p.id', ofProducer)}) AS own CROSS JOIN quarantine AS q INDEXED BY quarantine_unnamed
        ON q.producer_id = own.id WHERE q.session_id IS NULL OR q.agent_id IS NULL`),
      id,
    ),
  ]);
  const [[session], [agent], producers, lost, quarantined, [quarantinedCount = 0], [unnamedCount = 0]] = found;
  if (session === undefined) return null;
  const { lostCount } = session;
  const missing = [...lost, ...quarantined]
    .sort((a, b) => comparePositions(b.position, a.position))
    .slice(0, MAX_MISSING);
  const count = readAgentStatus(agent?.status ?? null).outbox?.depth;
  const waiting = count === undefined ? null : { count, at: agent?.lastSeenAt ?? 0 };
  return { position, producers, missing, lostCount, quarantinedCount, unnamedCount, waiting };
}

function lostRecords({ position, receivedAt, payload }: ReturnType<typeof EVENT.read>): MissingRecords {
  const value = customValue(payload);
  const count = Math.max(1, pickNumber(value, 'count') ?? 1);
  const reason = pickText(value, 'reason') ?? 'no reason given';
  return { kind: 'lost', position: String(position), at: receivedAt, count, seq: null, reason };
}

function quarantinedRecord({
  position,
  receivedAt,
  seq,
  message,
}: ReturnType<typeof QUARANTINED.read>): MissingRecords {
  return { kind: 'quarantined', position: String(position), at: receivedAt, count: 1, seq, reason: message };
}
