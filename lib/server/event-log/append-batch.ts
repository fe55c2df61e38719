import { type AgUiEvent, CUSTOM } from '@interlude/protocol/ag-ui';
import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { COUNTED_KINDS, DONE_ONCE_SEEN, type InboxKind } from '@interlude/protocol/inbox';
import { MAX_SIGNALS_KEPT, MINUTE_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { inboxText } from '@interlude/protocol/list-search';
import { stringifyWellFormed } from '@interlude/protocol/well-formed';
import type { InStatement } from '@libsql/client';
import { chunkStatements, runStatements } from '@/db/json-statements';
import { agentToRow, obligationToRow, sessionToRow, taskToRow } from '@/db/read-model-rows';
import {
  agentLogs,
  agents,
  events,
  insights,
  logLines,
  obligations,
  producers,
  quarantine,
  sessions,
  tasks,
  turns,
} from '@/db/schema';
import { columnText, RowWriter } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { BatchRows, InboxChange, QuarantineRow } from './batch-rows';
import { foldStoredDeltas, foldStoredOutputs } from './fold-deltas';

/**
 * Writes a batch: producer, counter, rows and read models, with a few statements per table however many records there
 * are.
 *
 * Ordering: rows before what refers to them, moves after the rows they move, updates of folded rows before deletes.
 * Failure: it runs inside the caller's transaction and commits nothing itself. No statement can fail because of content:
 * every insert that could meet an existing key is an upsert, and text is made storable first.
 */
export async function appendBatch(transaction: WriteTransaction, batch: BatchRows): Promise<void> {
  const folded = await foldStoredDeltas(transaction, batch.folds);
  await foldStoredOutputs(transaction, batch.events);
  await transaction.moveTo(batch.position);
  await runStatements(transaction, rowStatements(batch));
  await runStatements(transaction, folded);
  await runStatements(transaction, fleetStatements(batch));
}

/** In the order in which they must run; each is made only when it is about to be sent. */
function* rowStatements(batch: BatchRows): Generator<InStatement> {
  yield* PRODUCERS.rows([batch.producer], (producer) => producer);
  yield* eventStatements(batch);
  yield* activityStatements(batch);
  yield* logStatements(batch);
  yield* insightStatements(batch);
  yield* quarantineStatements(batch);
  yield* turnStatements(batch);
}

/** What agents do, minute by minute. What the server tells, and what commands write, is no activity of theirs. */
function* activityStatements({ events, source, receivedAt }: BatchRows): Generator<InStatement> {
  if (source.id === SERVER_PRODUCER_ID) return;
  const counts = new Map<string, number>();
  for (const { agentId, event } of events) {
    if (nameOf(event) !== CUSTOM.taskOutput) counts.set(agentId, (counts.get(agentId) ?? 0) + 1);
  }
  yield* chunkStatements(
    [...counts],
    (json) => ({
      sql: `INSERT INTO activity (minute, agent_id, events) SELECT ?2, value->>0, value->>1 FROM json_each(?1) WHERE true
        ON CONFLICT (minute, agent_id) DO UPDATE SET events = events + excluded.events`,
      args: [json, Math.floor(receivedAt / MINUTE_MS)],
    }),
    ([agentId, count]) => [columnText(agentId), count],
  );
}

const PRODUCERS = new RowWriter(producers, { keeps: [] });

const EVENTS = new RowWriter(events, { same: ['producerId', 'epoch', 'receivedAt'] });

function* eventStatements(batch: BatchRows): Generator<InStatement> {
  const { source, receivedAt, writtenSessionIds } = batch;
  yield* EVENTS.rows(
    batch.events,
    ({ event, ...row }) => ({ ...row, type: event.type, name: nameOf(event), payload: event }),
    { producerId: source.id, epoch: source.epoch, receivedAt },
  );
  yield* chunkStatements(writtenSessionIds, (json) => ({
    sql: 'INSERT OR IGNORE INTO producer_sessions (producer_id, session_id) SELECT ?1, value FROM json_each(?2)',
    args: [source.id, json],
  }));
}

function nameOf(event: AgUiEvent): string | null {
  return event.type === 'CUSTOM' && typeof event.name === 'string' ? event.name : null;
}

const LOG_LINES = new RowWriter(logLines, { same: ['receivedAt'] });
const AGENT_LOGS = new RowWriter(agentLogs, {
  lacks: ['removedLines', 'removedBytes', 'number', 'indexedLine', 'indexedPosition'],
  keeps: [],
});

function* logStatements(batch: BatchRows): Generator<InStatement> {
  const { receivedAt, logComponents } = batch;
  yield* LOG_LINES.rows(batch.logLines, (row) => row, { receivedAt });
  yield* AGENT_LOGS.rows(batch.agentLogs, ({ agentId, log }) => ({ agentId, ...log }));
  yield* chunkStatements(
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

const INSIGHTS = new RowWriter(insights, { lacks: ['seenAt'] });

function* insightStatements(batch: BatchRows): Generator<InStatement> {
  yield* INSIGHTS.rows(batch.insights, (row) => row);
  const signalling = new Set(batch.insights.filter(({ isFailure }) => !isFailure).map(({ agentId }) => agentId));
  yield* chunkStatements([...signalling], (json) => ({ sql: DELETE_OLD_SIGNALS, args: [json] }));
}

/** An agent may send any number of signals that are not failures: only the newest are kept, and the log has the rest. */
const DELETE_OLD_SIGNALS = `DELETE FROM insights WHERE position IN (
    SELECT old.position FROM json_each(?1) AS agent JOIN insights AS old
      ON old.agent_id = agent.value AND old.is_failure = 0 AND old.position <= (
        SELECT kept.position FROM insights AS kept WHERE kept.agent_id = agent.value AND kept.is_failure = 0
        ORDER BY kept.position DESC LIMIT 1 OFFSET ${MAX_SIGNALS_KEPT}))`;

const OF_BATCH = ['producerId', 'epoch', 'receivedAt'] as const;
const UNSETTLED = ['settledAt', 'settledBy', 'settledReason', 'settledSessionId', 'settledClientId'] as const;
const QUARANTINE = new RowWriter(quarantine, { same: OF_BATCH, lacks: UNSETTLED });
const QUARANTINED_ALONE = new RowWriter(quarantine, { same: [...OF_BATCH, 'record'], lacks: UNSETTLED });

/**
 * The records that can't be taken, whole. One that is too large for a record may be as large as a request: it gets a
 * statement of its own, because the database would take five times as long to extract it from JSON, in one go.
 */
function* quarantineStatements({ quarantine, source, receivedAt }: BatchRows): Generator<InStatement> {
  const ofBatch = { producerId: source.id, epoch: source.epoch, receivedAt };
  const mayBeHuge = ({ code }: QuarantineRow) => code === 'record_too_large';
  const toRow = ({ task, ...row }: QuarantineRow) => ({
    ...row,
    parked: task === null ? null : ('parked' as const),
    taskId: task?.id ?? null,
    taskRunId: task?.runId ?? null,
  });
  const few = quarantine.filter((row) => !mayBeHuge(row));
  yield* QUARANTINE.rows(few, toRow, ofBatch);
  for (const row of quarantine.filter(mayBeHuge)) {
    yield* QUARANTINED_ALONE.rows([row], toRow, { ...ofBatch, record: row.record });
  }
}

/** A turn keeps the position and time of its first header; later headers say what became of it. */
const TURNS = new RowWriter(turns, { keeps: ['position', 'startedAt'] });

function* turnStatements(batch: BatchRows): Generator<InStatement> {
  const { removedTurns, moves } = batch;
  yield* bareTurnStatements(batch);
  yield* TURNS.rows(batch.turns, ({ sessionId, header: { error, position, inferred = false, ...header } }) => ({
    ...header,
    inferred,
    sessionId,
    position: Number(position),
    errorMessage: error?.message ?? null,
    errorCode: error?.code ?? null,
  }));
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

/**
 * An agent may use the id of a turn again that retention has removed: what is left of that one's events, which go
 * afterwards, is not of the new one.
 */
function* bareTurnStatements({ sessions, turns }: BatchRows): Generator<InStatement> {
  const cut = new Set(sessions.flatMap(({ summary: { id, removed } }) => (removed === undefined ? [] : [id])));
  const opened = turns.filter(({ sessionId, header }) => header.kind !== 'none' && cut.has(sessionId));
  yield* chunkStatements(
    opened,
    (json) => ({
      sql: `UPDATE events SET turn_id = NULL WHERE position IN (
          SELECT e.position FROM json_each(?1) AS opened CROSS JOIN sessions AS s ON s.id = opened.value->>0
            CROSS JOIN events AS e ON e.session_id = s.id AND e.turn_id = opened.value->>1 AND e.position <= s.removed_up_to
          WHERE NOT EXISTS (SELECT 1 FROM turns WHERE session_id = s.id AND id = e.turn_id))`,
      args: [json],
    }),
    ({ sessionId, header }) => storable([sessionId, header.id]),
  );
}

const TASKS = new RowWriter(tasks, { keeps: ['id', 'agentId'] });
const SESSIONS = new RowWriter(sessions, { key: ['id'], keeps: ['agentId'], lacks: ['number', 'removedUpTo'] });
const AGENTS = new RowWriter(agents, { keeps: [] });
const OBLIGATIONS = new RowWriter(obligations, { keeps: ['position', 'agentId'] });

function* fleetStatements(batch: BatchRows): Generator<InStatement> {
  const { seenAgentIds, receivedAt } = batch;
  yield* TASKS.rows(batch.tasks, ({ task, updatedPosition }) => taskToRow(task, updatedPosition));
  yield* SESSIONS.rows(batch.sessions, ({ summary, ...rest }) => ({ ...sessionToRow(summary), ...rest }));
  yield* AGENTS.rows(batch.agents, agentToRow);
  yield* chunkStatements(seenAgentIds, (json) => ({
    sql: 'UPDATE agents SET last_seen_at = ?, is_silent = 0 WHERE id IN (SELECT value FROM json_each(?))',
    args: [receivedAt, json],
  }));
  yield* obligationStatements(batch);
  yield* inboxStatements(batch.inbox);
  yield* runnerStatements(batch);
}

/**
 * An agent may do something without a listening runner. If a runner speaks for it, that counts as missed, or nobody would
 * end it. If none does, its runner is over, and the agent has gone when it falls silent, as one that never had any.
 */
function* runnerStatements({ startedAgentIds, reportingAgentIds, receivedAt }: BatchRows): Generator<InStatement> {
  const isWaitedFor = 'alive_until IS NULL AND absence_due_at IS NULL';
  const reporting = new Set(reportingAgentIds);
  const started = new Set(startedAgentIds);
  yield* chunkStatements(
    startedAgentIds.filter((id) => !reporting.has(id)),
    (json) => ({
      sql: `UPDATE runners SET is_over = 1 WHERE agent_id IN (SELECT value FROM json_each(?)) AND ${isWaitedFor}`,
      args: [json],
    }),
  );
  yield* chunkStatements(
    reportingAgentIds,
    (json) => ({
      sql: `UPDATE runners SET is_over = 0, missed_at = ?1, absence_due_at = ?2 FROM json_each(?3) AS told
            WHERE agent_id = told.value->>0 AND (is_over OR told.value->>1) AND ${isWaitedFor}`,
      args: [receivedAt, receivedAt + RUNNER_GRACE_MS, json],
    }),
    (id) => [columnText(id), started.has(id)],
  );
}

function* obligationStatements(batch: BatchRows): Generator<InStatement> {
  for (const { sessionId, messageIds } of batch.seenMessages) {
    // Whichever way it came: a message that the agent has read needs no delivery.
    yield* chunkStatements(
      messageIds,
      (json) => ({
        sql: `UPDATE commands SET state = 'done', lease_until = NULL WHERE id IN (SELECT value FROM json_each(?)) AND session_id = ? AND type = 'message'
              AND state IN ('queued', 'delivered')`,
        args: [json, columnText(sessionId)],
      }),
      columnText,
    );
  }
  yield* OBLIGATIONS.rows(batch.obligations, ({ obligation, updatedPosition }) =>
    obligationToRow(obligation, updatedPosition),
  );
  yield* chunkStatements(
    batch.replyChangedSessionIds,
    (json) => ({
      sql: `UPDATE obligations SET is_judged = 0
            WHERE session_id IN (SELECT value FROM json_each(?)) AND state = 'owed' AND is_judged = 1`,
      args: [json],
    }),
    columnText,
  );
}

/** The cells with texts that any column can hold. */
function storable<T>(cells: T[]): T[] {
  return cells.map((cell) => (typeof cell === 'string' ? (columnText(cell) as T & string) : cell));
}

type Change<Kind extends InboxChange['kind']> = InboxChange & { kind: Kind };

/**
 * The statements that bring inbox items up to date, without reading any of them.
 *
 * Ordering: what comes up, then what is done, then marks. No batch both opens an item and ends it.
 */
function* inboxStatements(changes: readonly InboxChange[]): Generator<InStatement> {
  const ofKind = <Kind extends InboxChange['kind']>(kind: Kind) =>
    changes.filter((change): change is Change<Kind> => change.kind === kind);
  yield* chunkStatements(ofKind('open'), (json) => ({ sql: OPEN, args: [json] }), inboxRow);
  yield* chunkStatements(
    ofKind('done'),
    (json) => ({ sql: DONE, args: [json] }),
    ({ id, at, position, isHidden }) => [columnText(id), at, position, isHidden ? 1 : 0],
  );
  yield* chunkStatements(
    ofKind('marked'),
    (json) => ({ sql: MARK, args: [json] }),
    ({ id, marks: { seenAt, snoozedUntil, claim, doneAt }, position }) => {
      const claimed = claim === null ? null : stringifyWellFormed(claim);
      return [columnText(id), seenAt, snoozedUntil, claimed, doneAt, position];
    },
  );
}

function inboxRow({ attention, agentId, sessionId, at, position }: Change<'open'>) {
  const { id, kind, version, ...body } = attention;
  const words = inboxText({ agentId, sessionId, title: body.title });
  const of = [columnText(agentId), sessionId === null ? null : columnText(sessionId)];
  return [columnText(id), kind, ...of, version, at, stringifyWellFormed(body), columnText(words), position];
}

const quoted = (kinds: readonly InboxKind[]) => kinds.map((kind) => `'${kind}'`).join(', ');
const COUNTED = quoted(COUNTED_KINDS);
/**
 * Whether it comes up again: then nobody has seen it yet. What was only out of sight, as what is missing of an archived
 * session is, comes back as it was; so does a failure whose session was something else meanwhile, and what is counted
 * where it is no more than was known.
 */
const IS_NEWS = `iif(inbox.kind IN (${COUNTED}), excluded.version > inbox.version, excluded.version <> inbox.version)`;
/** A gap that was seen is done, though as much is missing as before. */
const IS_SEEN = `inbox.kind IN (${quoted(DONE_ONCE_SEEN)}) AND inbox.seen_at IS NOT NULL`;
const unlessNews = (column: string) => `${column} = iif(${IS_NEWS}, NULL, inbox.${column})`;
const ifNews = (column: string) => `${column} = iif(${IS_NEWS}, excluded.${column}, inbox.${column})`;

/** What is said of a failure stays until another one is told. */
const OPEN = `INSERT INTO inbox
    (id, kind, agent_id, session_id, version, since, body, words, position, opened_position, updated_position)
  SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>8,
    value->>8
  FROM json_each(?1) WHERE true
  ON CONFLICT (id) DO UPDATE SET ${['since', 'opened_position'].map(ifNews).join(', ')},
    ${['seen_at', 'snoozed_until', 'claim'].map(unlessNews).join(', ')},
    done_at = iif(NOT (${IS_NEWS}) AND ${IS_SEEN}, inbox.done_at, NULL),
    version = excluded.version,
    body = iif(inbox.kind = 'hook-failure' AND excluded.body->>'$.title' IS NULL,
      json_set(excluded.body, '$.title', inbox.body->>'$.title'), excluded.body),
    words = excluded.words, updated_position = excluded.updated_position`;

/** What is counted is counted anew from here on, unless it is only out of sight. */
const ANEW = `kind IN (${COUNTED}) AND NOT value->>3`;
const DONE = `UPDATE inbox SET done_at = ifnull(done_at, value->>1), updated_position = value->>2,
    version = iif(${ANEW}, 0, version)
  FROM json_each(?1)
  WHERE inbox.id = value->>0 AND (done_at IS NULL OR (${ANEW} AND version > 0))`;

const MARK = `UPDATE inbox SET seen_at = value->>1, snoozed_until = value->>2, claim = value->>3, done_at = value->>4,
  updated_position = value->>5 FROM json_each(?1) WHERE inbox.id = value->>0`;
