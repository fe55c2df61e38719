import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { MAX_SIGNALS_KEPT, MINUTE_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { inboxText } from '@interlude/protocol/list-search';
import { COUNTED_KINDS, DONE_ONCE_SEEN, type InboxKind } from '@interlude/protocol/vocabulary';
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
 * Writes a batch with a few statements per table, for any number of records: producer, counter, rows and read models.
 *
 * Ordering: rows come before rows that refer to them, moves after the rows they move, updates of folded rows before
 * deletes.
 * Failure: runs inside the caller's transaction and commits nothing itself. No content can make a statement fail: every
 * insert that could meet an existing key is an upsert, and text is made storable first.
 */
export async function appendBatch(transaction: WriteTransaction, batch: BatchRows): Promise<void> {
  const folded = await foldStoredDeltas(transaction, batch.folds);
  await foldStoredOutputs(transaction, batch.events);
  await transaction.moveTo(batch.position);
  await runStatements(transaction, rowStatements(batch));
  await runStatements(transaction, folded);
  await runStatements(transaction, readModelStatements(batch));
}

/** Yields in the order in which the statements must run. */
function* rowStatements(batch: BatchRows): Generator<InStatement> {
  yield* PRODUCERS.rows([batch.producer], (producer) => producer);
  yield* eventStatements(batch);
  yield* activityStatements(batch);
  yield* logStatements(batch);
  yield* insightStatements(batch);
  yield* quarantineStatements(batch);
  yield* turnStatements(batch);
}

/** Counts events per minute and agent. Excludes the server's own events, and task output. */
function* activityStatements({ events, source, receivedAt }: BatchRows): Generator<InStatement> {
  if (source.id === SERVER_PRODUCER_ID) return;
  const counts = new Map<string, number>();
  for (const { agentId, event } of events) {
    if (nameOf(event) !== CUSTOM.taskOutput) counts.set(agentId, (counts.get(agentId) ?? 0) + 1);
  }
  yield* chunkStatements(
    counts,
    `INSERT INTO activity (minute, agent_id, events) SELECT ?2, value->>0, value->>1 FROM json_each(?1) WHERE true
      ON CONFLICT (minute, agent_id) DO UPDATE SET events = events + excluded.events`,
    ([agentId, count]) => [columnText(agentId), count],
    { args: [Math.floor(receivedAt / MINUTE_MS)] },
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
  yield* chunkStatements(
    writtenSessionIds,
    'INSERT OR IGNORE INTO producer_sessions (producer_id, session_id) SELECT ?2, value FROM json_each(?1)',
    undefined,
    { args: [source.id] },
  );
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
    `INSERT INTO log_components (agent_id, component, lines)
      SELECT value->>0, value->>1, value->>2 FROM json_each(?1) WHERE true
      ON CONFLICT (agent_id, component) DO UPDATE SET lines = lines + excluded.lines`,
    (row) => storable([row.agentId, row.component, row.lines]),
  );
}

const INSIGHTS = new RowWriter(insights, { lacks: ['seenAt'] });

function* insightStatements(batch: BatchRows): Generator<InStatement> {
  yield* INSIGHTS.rows(batch.insights, (row) => row);
  const signalling = new Set(batch.insights.filter(({ isFailure }) => !isFailure).map(({ agentId }) => agentId));
  yield* chunkStatements(signalling, DELETE_OLD_SIGNALS);
}

/** Only an agent's newest signals are kept; the log has every signal. */
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
 * Stores rejected records whole. A record over the limit may be as large as a request and gets its own statement,
 * because extracting it from JSON would take the database five times as long, in one blocking step.
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
  yield* QUARANTINE.rows(
    quarantine.filter((row) => !mayBeHuge(row)),
    toRow,
    ofBatch,
  );
  for (const row of quarantine.filter(mayBeHuge)) {
    yield* QUARANTINED_ALONE.rows([row], toRow, { ...ofBatch, record: row.record });
  }
}

/** A turn keeps the position and time of its first header. Later headers update the other fields. */
const TURNS = new RowWriter(turns, { keeps: ['position', 'startedAt'] });

function* turnStatements(batch: BatchRows): Generator<InStatement> {
  const { removedTurns, moves } = batch;
  yield* detachRemovedEvents(batch);
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
    yield { sql: 'DELETE FROM turns WHERE session_id = ? AND id = ?', args: storable([sessionId, turnId]) };
  }
}

/**
 * An agent may reuse the id of a turn that retention has removed. Remaining events of that turn don't belong to the new
 * one.
 */
function* detachRemovedEvents({ sessions, turns }: BatchRows): Generator<InStatement> {
  const cut = new Set(sessions.flatMap(({ summary: { id, removed } }) => (removed === undefined ? [] : [id])));
  yield* chunkStatements(
    turns.filter(({ sessionId, header }) => header.kind !== 'none' && cut.has(sessionId)),
    `UPDATE events SET turn_id = NULL WHERE position IN (
      SELECT e.position FROM json_each(?1) AS opened CROSS JOIN sessions AS s ON s.id = opened.value->>0
        CROSS JOIN events AS e ON e.session_id = s.id AND e.turn_id = opened.value->>1 AND e.position <= s.removed_up_to
      WHERE NOT EXISTS (SELECT 1 FROM turns WHERE session_id = s.id AND id = e.turn_id))`,
    ({ sessionId, header }) => storable([sessionId, header.id]),
  );
}

const TASKS = new RowWriter(tasks, { keeps: ['id', 'agentId'] });
const SESSIONS = new RowWriter(sessions, { key: ['id'], keeps: ['agentId'], lacks: ['number', 'removedUpTo'] });
const AGENTS = new RowWriter(agents, { keeps: [] });
const OBLIGATIONS = new RowWriter(obligations, { keeps: ['position', 'agentId'] });

function* readModelStatements(batch: BatchRows): Generator<InStatement> {
  const { seenAgentIds, receivedAt } = batch;
  yield* TASKS.rows(batch.tasks, ({ task, updatedPosition }) => taskToRow(task, updatedPosition));
  yield* SESSIONS.rows(batch.sessions, ({ summary, ...rest }) => ({ ...sessionToRow(summary), ...rest }));
  yield* AGENTS.rows(batch.agents, agentToRow);
  yield* chunkStatements(
    seenAgentIds,
    'UPDATE agents SET last_seen_at = ?2, is_silent = 0 WHERE id IN (SELECT value FROM json_each(?1))',
    undefined,
    { args: [receivedAt] },
  );
  yield* obligationStatements(batch);
  yield* inboxStatements(batch.inbox);
  yield* runnerStatements(batch);
}

/**
 * Marks runners of agents that are active although no runner listens. A runner that reports at intervals counts as
 * missed, so its absence takes effect in time. A runner without reports counts as gone, and its agent is marked once
 * silent.
 */
function* runnerStatements({ startedAgentIds, reportingAgentIds, receivedAt }: BatchRows): Generator<InStatement> {
  const isUnattended = 'alive_until IS NULL AND absence_due_at IS NULL';
  const reporting = new Set(reportingAgentIds);
  const started = new Set(startedAgentIds);
  yield* chunkStatements(
    startedAgentIds.filter((id) => !reporting.has(id)),
    `UPDATE runners SET is_over = 1 WHERE agent_id IN (SELECT value FROM json_each(?1)) AND ${isUnattended}`,
  );
  yield* chunkStatements(
    reportingAgentIds,
    `UPDATE runners SET is_over = 0, missed_at = ?2, absence_due_at = ?3 FROM json_each(?1) AS reporting
      WHERE agent_id = reporting.value->>0 AND (is_over OR reporting.value->>1) AND ${isUnattended}`,
    (id) => [columnText(id), started.has(id)],
    { args: [receivedAt, receivedAt + RUNNER_GRACE_MS] },
  );
}

function* obligationStatements(batch: BatchRows): Generator<InStatement> {
  for (const { sessionId, messageIds } of batch.seenMessages) {
    // A message that the agent has read needs no delivery, regardless of how it arrived.
    yield* chunkStatements(
      messageIds,
      `UPDATE commands SET state = 'done', lease_until = NULL WHERE id IN (SELECT value FROM json_each(?1))
        AND session_id = ?2 AND type = 'message' AND state IN ('queued', 'delivered')`,
      columnText,
      { args: [columnText(sessionId)] },
    );
  }
  yield* OBLIGATIONS.rows(batch.obligations, ({ obligation, updatedPosition }) =>
    obligationToRow(obligation, updatedPosition),
  );
  yield* chunkStatements(
    batch.replyChangedSessionIds,
    `UPDATE obligations SET is_judged = 0
      WHERE session_id IN (SELECT value FROM json_each(?1)) AND state = 'owed' AND is_judged = 1`,
    columnText,
  );
}

function storable<T>(cells: T[]): T[] {
  return cells.map((cell) => (typeof cell === 'string' ? (columnText(cell) as T & string) : cell));
}

type Change<Kind extends InboxChange['kind']> = InboxChange & { kind: Kind };

/**
 * Updates inbox items without reading any.
 *
 * Ordering: opened items, then done ones, then marks. No batch both opens and completes an item.
 */
function* inboxStatements(changes: readonly InboxChange[]): Generator<InStatement> {
  const ofKind = <Kind extends InboxChange['kind']>(kind: Kind) =>
    changes.filter((change): change is Change<Kind> => change.kind === kind);
  yield* chunkStatements(ofKind('open'), OPEN, inboxRow);
  yield* chunkStatements(ofKind('done'), DONE, ({ id, at, position, isHidden }) => [
    columnText(id),
    at,
    position,
    isHidden ? 1 : 0,
  ]);
  yield* chunkStatements(ofKind('marked'), MARK, ({ id, marks, position }) => {
    const claim = marks.claim === null ? null : stringifyWellFormed(marks.claim);
    return [columnText(id), marks.seenAt, marks.snoozedUntil, claim, marks.doneAt, position];
  });
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
 * The item reopens as unseen. An item that was only hidden, such as that of an archived session, returns unchanged. So
 * does a failure whose session had another state meanwhile, and a counted item whose count has not grown.
 */
const REOPENS = `iif(inbox.kind IN (${COUNTED}), excluded.version > inbox.version, excluded.version <> inbox.version)`;
/** True for a seen item of a kind that is done once seen. */
const IS_SEEN = `inbox.kind IN (${quoted(DONE_ONCE_SEEN)}) AND inbox.seen_at IS NOT NULL`;
const unlessReopened = (column: string) => `${column} = iif(${REOPENS}, NULL, inbox.${column})`;
const ifReopened = (column: string) => `${column} = iif(${REOPENS}, excluded.${column}, inbox.${column})`;

/** The title of a failure stays until another failure sets it. */
const OPEN = `INSERT INTO inbox
    (id, kind, agent_id, session_id, version, since, body, words, position, opened_position, updated_position)
  SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>8,
    value->>8
  FROM json_each(?1) WHERE true
  ON CONFLICT (id) DO UPDATE SET ${['since', 'opened_position'].map(ifReopened).join(', ')},
    ${['seen_at', 'snoozed_until', 'claim'].map(unlessReopened).join(', ')},
    done_at = iif(NOT (${REOPENS}) AND ${IS_SEEN}, inbox.done_at, NULL),
    version = excluded.version,
    body = iif(inbox.kind = 'hook-failure' AND excluded.body->>'$.title' IS NULL,
      json_set(excluded.body, '$.title', inbox.body->>'$.title'), excluded.body),
    words = excluded.words, updated_position = excluded.updated_position`;

/** A counted item restarts at zero, unless it is only hidden. */
const RESTARTS = `kind IN (${COUNTED}) AND NOT value->>3`;
const DONE = `UPDATE inbox SET done_at = ifnull(done_at, value->>1), updated_position = value->>2,
    version = iif(${RESTARTS}, 0, version)
  FROM json_each(?1)
  WHERE inbox.id = value->>0 AND (done_at IS NULL OR (${RESTARTS} AND version > 0))`;

const MARK = `UPDATE inbox SET seen_at = value->>1, snoozed_until = value->>2, claim = value->>3, done_at = value->>4,
  updated_position = value->>5 FROM json_each(?1) WHERE inbox.id = value->>0`;
