import type { InStatement, InValue } from '@libsql/client';
import { inPieces } from '@/db/json-pieces';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';
import type { BatchRows, QuarantineRow } from './batch-rows';
import { storable } from './storable';

const COLUMNS = `position, seq, agent_id, session_id, code, message, parked, task_id, task_run_id, record,
    producer_id, epoch, received_at`;

/**
 * The records that can't be taken as they are, whole. What is too large for a record may be as large as a request: each of
 * those is a statement by itself, because taking it out of JSON takes the database five times as long, in one go.
 */
export function* quarantineStatements({ quarantine, source, receivedAt }: BatchRows): Generator<InStatement> {
  const ofBatch = [source.id, source.epoch, receivedAt];
  yield* inPieces(
    quarantine.filter((row) => !mayBeHuge(row)),
    (json) => ({
      sql: `INSERT INTO quarantine (${COLUMNS})
          SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
            value->9, ?2, ?3, ?4
          FROM json_each(?1)`,
      args: [json, ...ofBatch],
    }),
    (row) => [...cellsOf(row), row.record],
  );
  for (const row of quarantine.filter(mayBeHuge)) {
    yield {
      sql: `INSERT INTO quarantine (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      args: [...cellsOf(row), stringifyWellFormed(row.record), ...ofBatch],
    };
  }
}

function mayBeHuge({ code }: QuarantineRow): boolean {
  return code === 'record_too_large';
}

function cellsOf({ position, seq, agentId, sessionId, code, message, task }: QuarantineRow): InValue[] {
  const parked = task === null ? null : 'parked';
  return storable([position, seq, agentId, sessionId, code, message, parked, task?.id ?? null, task?.runId ?? null]);
}
