import type { InStatement } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { agentToRow, obligationToRow, sessionToRow, taskToRow } from '@/db/fleet-rows';
import { inPieces, runInTurns } from '@/db/json-pieces';
import type { WriteTransaction } from '@/db/write-queue';
import { MAX_SIGNALS_KEPT, RUNNER_GRACE_MS } from '@/lib/protocol/limits';
import type { BatchRows } from './batch-rows';
import { foldStoredDeltas } from './fold-deltas';
import { quarantineStatements } from './quarantine-statements';
import { storable } from './storable';

/**
 * Writes a batch: producer, counter, rows and read models, set-based, a few statements per table however many
 * records.
 *
 * Ordering: rows before what refers to them, moves after the rows they move, updates of folded rows before deletes.
 * Failure: it runs inside the caller's transaction and commits nothing itself. No statement can fail on content: every
 * insert that could meet an existing key is an upsert, and text is made storable first.
 */
export async function appendBatch(transaction: WriteTransaction, batch: BatchRows): Promise<void> {
  const folded = await foldStoredDeltas(transaction, batch.folds);
  await runInTurns(transaction, rowStatements(batch));
  await runInTurns(transaction, folded);
  await runInTurns(transaction, fleetStatements(batch));
}

/** In the order they must stand in; each is made when its turn has come. */
function* rowStatements(batch: BatchRows): Generator<InStatement> {
  yield producerStatement(batch);
  yield {
    sql: `INSERT INTO counter (id, position) VALUES (1, ?)
          ON CONFLICT (id) DO UPDATE SET position = excluded.position WHERE position <> excluded.position`,
    args: [batch.position],
  };
  yield* eventStatements(batch);
  yield* logStatements(batch);
  yield* insightStatements(batch);
  yield* quarantineStatements(batch);
  yield* turnStatements(batch);
}

function producerStatement({ producer }: BatchRows): InStatement {
  return {
    sql: `INSERT INTO producers (id, epoch, last_seq, agent_id, accepted, duplicates, gaps, rejected, lost, clock_skew_ms, last_seen_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
          ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, last_seq = excluded.last_seq,
            agent_id = excluded.agent_id, accepted = excluded.accepted, duplicates = excluded.duplicates,
            gaps = excluded.gaps, rejected = excluded.rejected, lost = excluded.lost,
            clock_skew_ms = excluded.clock_skew_ms, last_seen_at = excluded.last_seen_at`,
    args: [
      producer.id,
      producer.epoch,
      producer.lastSeq,
      producer.agentId,
      producer.accepted,
      producer.duplicates,
      producer.gaps,
      producer.rejected,
      producer.lost,
      producer.clockSkewMs,
      producer.lastSeenAt,
    ],
  };
}

/** The event stays nested JSON from here to its column: `->` hands its text on as it is, escapes and all. */
const INSERT_EVENTS = `INSERT INTO events
    (position, session_id, agent_id, producer_id, epoch, seq, occurred_at, received_at, type, entity_id, turn_id, payload)
  SELECT value->>0, value->>1, value->>2, ?2, ?3, value->>3, value->>4, ?4, value->>5, value->>6, value->>7, value->8
  FROM json_each(?1)`;

function* eventStatements(batch: BatchRows): Generator<InStatement> {
  const { events, source, receivedAt, writtenSessionIds } = batch;
  yield* inPieces(
    events,
    (json) => ({ sql: INSERT_EVENTS, args: [json, source.id, source.epoch, receivedAt] }),
    (row) =>
      storable([
        row.position,
        row.sessionId,
        row.agentId,
        row.seq,
        row.occurredAt,
        row.event.type,
        row.entityId,
        row.turnId,
        row.event,
      ]),
  );
  yield* inPieces(writtenSessionIds, (json) => ({
    sql: 'INSERT OR IGNORE INTO producer_sessions (producer_id, session_id) SELECT ?1, value FROM json_each(?2)',
    args: [source.id, json],
  }));
}

function* logStatements({ logLines, agentLogs, logComponents, receivedAt }: BatchRows): Generator<InStatement> {
  yield* inPieces(
    logLines,
    (json) => ({
      sql: `INSERT INTO log_lines
              (position, agent_id, occurred_at, received_at, level, component, message, line, redacted, marker)
            SELECT value->>0, value->>1, value->>2, ?2, value->>3, value->>4, value->>5, value->>6, value->>7,
              nullif(value->8, 'null')
            FROM json_each(?1)`,
      args: [json, receivedAt],
    }),
    (row) =>
      storable([
        row.position,
        row.agentId,
        row.occurredAt,
        row.level,
        row.component,
        row.message,
        row.line,
        row.redacted,
        row.marker,
      ]),
  );
  yield* inPieces(
    agentLogs,
    (json) => ({
      sql: `INSERT INTO agent_logs (agent_id, last_line, bytes)
            SELECT value->>0, value->>1, value->>2 FROM json_each(?1) WHERE true
            ON CONFLICT (agent_id) DO UPDATE SET last_line = excluded.last_line, bytes = excluded.bytes`,
      args: [json],
    }),
    ({ agentId, log }) => storable([agentId, log.lastLine, log.bytes]),
  );
  yield* inPieces(
    logComponents,
    (json) => ({
      sql: `INSERT INTO log_components (agent_id, component, lines)
            SELECT value->>0, value->>1, value->>2 FROM json_each(?1) WHERE true
            ON CONFLICT (agent_id, component) DO UPDATE SET lines = lines + excluded.lines`,
      args: [json],
    }),
    (row) => storable([row.agentId, row.component, row.lines]),
  );
}

function* insightStatements({ insights }: BatchRows): Generator<InStatement> {
  yield* inPieces(
    insights,
    (json) => ({
      sql: `INSERT INTO insights
              (position, agent_id, session_id, signal, source, detail, occurred_at, value, outcome, is_failure)
            SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9
            FROM json_each(?1)`,
      args: [json],
    }),
    (row) =>
      storable([
        row.position,
        row.agentId,
        row.sessionId,
        row.signal,
        row.source,
        row.detail,
        row.occurredAt,
        row.value === null ? null : JSON.stringify(row.value),
        row.outcome,
        Number(row.isFailure),
      ]),
  );
  const signalling = new Set(insights.filter(({ isFailure }) => !isFailure).map(({ agentId }) => agentId));
  yield* inPieces([...signalling], (json) => ({ sql: DELETE_OLD_SIGNALS, args: [json] }));
}

/** What nobody has to look at comes as often as an agent likes: the newest are kept, and the log has the others. */
const DELETE_OLD_SIGNALS = `DELETE FROM insights WHERE position IN (
    SELECT old.position FROM json_each(?1) AS agent JOIN insights AS old
      ON old.agent_id = agent.value AND old.is_failure = 0 AND old.position <= (
        SELECT kept.position FROM insights AS kept WHERE kept.agent_id = agent.value AND kept.is_failure = 0
        ORDER BY kept.position DESC LIMIT 1 OFFSET ${MAX_SIGNALS_KEPT}))`;

/** A turn keeps the place and time of its first header: later ones say how it went on. */
const UPSERT_TURNS = `INSERT INTO turns (session_id, id, position, kind, state, trigger, user_message_ids,
    parent_turn_id, started_at, ended_at, error_message, error_code)
  SELECT value->>0, value->>1, value->>2, value->>3, value->>4, nullif(value->5, 'null'), value->6, value->>7, value->>8, value->>9,
    value->>10, value->>11
  FROM json_each(?) WHERE true
  ON CONFLICT (session_id, id) DO UPDATE SET kind = excluded.kind, state = excluded.state, trigger = excluded.trigger,
    user_message_ids = excluded.user_message_ids, parent_turn_id = excluded.parent_turn_id,
    ended_at = excluded.ended_at, error_message = excluded.error_message, error_code = excluded.error_code`;

function* turnStatements({ turns, removedTurns, moves }: BatchRows): Generator<InStatement> {
  yield* inPieces(
    turns,
    (json) => ({ sql: UPSERT_TURNS, args: [json] }),
    ({ sessionId, header }) =>
      storable([
        sessionId,
        header.id,
        Number(header.position),
        header.kind,
        header.state,
        header.trigger,
        header.userMessageIds,
        header.parentTurnId,
        header.startedAt,
        header.endedAt,
        header.error?.message ?? null,
        header.error?.code ?? null,
      ]),
  );
  for (const move of moves) {
    yield {
      sql: `UPDATE events SET turn_id = ? WHERE session_id = ? AND turn_id = ? AND entity_id = ? AND position = ifnull(?, position)`,
      args: storable([move.toTurnId, move.sessionId, move.fromTurnId, move.entityId, move.position]),
    };
  }
  for (const { sessionId, turnId } of removedTurns) {
    yield {
      sql: 'DELETE FROM turns WHERE session_id = ? AND id = ?',
      args: storable([sessionId, turnId]),
    };
  }
}

function* fleetStatements(batch: BatchRows): Generator<InStatement> {
  const { tasks, sessions, agents, stillThereAgentIds, receivedAt } = batch;
  yield* inPieces(
    tasks,
    (json) => ({
      sql: `INSERT INTO tasks (session_id, position, id, run_id, agent_id, status, body, updated_position)
            SELECT value->>'sessionId', value->>'position', value->>'id', value->>'runId', value->>'agentId',
              value->>'status', value->'body', value->>'updatedPosition'
            FROM json_each(?) WHERE true
            ON CONFLICT (session_id, position) DO UPDATE SET run_id = excluded.run_id, status = excluded.status,
              body = excluded.body, updated_position = excluded.updated_position`,
      args: [json],
    }),
    ({ task, updatedPosition }) => taskToRow(task, updatedPosition),
  );
  yield* inPieces(
    sessions,
    (json) => ({
      sql: `INSERT INTO sessions (id, agent_id, state, last_event_at, body, places, memory, updated_position)
            SELECT value->>'id', value->>'agentId', value->>'state', value->>'lastEventAt', value->'body',
              value->'places', value->'memory', value->>'updatedPosition'
            FROM json_each(?) WHERE true
            ON CONFLICT (id) DO UPDATE SET state = excluded.state, last_event_at = excluded.last_event_at,
              body = excluded.body, places = excluded.places, memory = excluded.memory,
              updated_position = excluded.updated_position`,
      args: [json],
    }),
    ({ summary, places, memory }) => ({ ...sessionToRow(summary), places, memory }),
  );
  yield* inPieces(
    agents,
    (json) => ({
      sql: `INSERT INTO agents (id, body, last_seen_at, updated_position)
            SELECT value->>'id', value->'body', value->>'lastSeenAt', value->>'updatedPosition'
            FROM json_each(?) WHERE true
            ON CONFLICT (id) DO UPDATE SET body = excluded.body, last_seen_at = excluded.last_seen_at,
              updated_position = excluded.updated_position`,
      args: [json],
    }),
    agentToRow,
  );
  yield* inPieces(stillThereAgentIds, (json) => ({
    sql: 'UPDATE agents SET last_seen_at = ? WHERE id IN (SELECT value FROM json_each(?))',
    args: [receivedAt, json],
  }));
  yield* obligationStatements(batch);
  yield* runnerStatements(batch);
}

/** What an agent does without a listening runner is no sign that it will be told of to its end. */
function runnerStatements({ stirredAgentIds, receivedAt }: BatchRows): Iterable<InStatement> {
  return inPieces(stirredAgentIds, (json) => ({
    sql: `UPDATE runners SET lost_at = ?, tell_at = ?
          WHERE agent_id IN (SELECT value FROM json_each(?)) AND alive_until IS NULL AND tell_at IS NULL`,
    args: [receivedAt, receivedAt + RUNNER_GRACE_MS, json],
  }));
}

function* obligationStatements({ obligations, seenMessages }: BatchRows): Generator<InStatement> {
  for (const { sessionId, messageIds, updatedPosition } of seenMessages) {
    // However it came there: what the agent has read needs no delivery any more.
    yield* inPieces(
      messageIds,
      (json) => ({
        sql: `UPDATE commands SET state = 'done', lease_until = NULL, updated_position = ?
            WHERE id IN (SELECT value FROM json_each(?)) AND session_id = ? AND type = 'message'
              AND state IN ('queued', 'delivered')`,
        args: [updatedPosition, json, columnText(sessionId)],
      }),
      columnText,
    );
  }
  yield* inPieces(
    obligations,
    (json) => ({
      sql: `INSERT INTO obligations (session_id, message_id, position, agent_id, state, body, updated_position)
            SELECT value->>'sessionId', value->>'messageId', value->>'position', value->>'agentId', value->>'state',
              value->'body', value->>'updatedPosition'
            FROM json_each(?) WHERE true
            ON CONFLICT (session_id, message_id) DO UPDATE SET state = excluded.state, body = excluded.body,
              updated_position = excluded.updated_position`,
      args: [json],
    }),
    ({ obligation, updatedPosition }) => obligationToRow(obligation, updatedPosition),
  );
}
