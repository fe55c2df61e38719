import type { NewAuditEntry } from '@interlude/protocol/access';
import type { AgUiEvent, TurnKind } from '@interlude/protocol/ag-ui';
import type { CommandState, CommandType, WakeRule } from '@interlude/protocol/commands';
import type { LogMarker } from '@interlude/protocol/envelope';
import type { InboxClaim, InboxItem, InboxMarks, WebhookDeliveryState } from '@interlude/protocol/inbox';
import type {
  AgentSummary,
  Insight,
  Obligation,
  ParkedState,
  SessionSummary,
  Task,
  TaskStatus,
} from '@interlude/protocol/read-models';
import type { CredentialKind, Role, Scope } from '@interlude/protocol/scope';
import type { AgentState, ListedState, SessionGroup, SessionState } from '@interlude/protocol/session-states';
import type { TurnHeader, TurnPlaces, TurnState } from '@interlude/protocol/turn-places';
import type { InboxKind, LogLevel } from '@interlude/protocol/vocabulary';
import { sql } from 'drizzle-orm';
import { blob, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';

/**
 * The tables and their column types. SQL is written by hand; table-rows.ts converts rows using these column types.
 * Every field that SQL filters, joins or sorts by has its own column. SQL never queries JSON.
 *
 * Positions are integers here and strings on the wire. Times are epoch milliseconds.
 */

const json = <T>(name: string) => text(name, { mode: 'json' }).$type<T>();
const boolean = (name: string) => integer(name, { mode: 'boolean' });

/** One row: the last assigned position. Every write transaction advances it. */
export const counter = sqliteTable('counter', {
  id: integer('id').primaryKey(),
  position: integer('position').notNull().default(0),
  /** Position of the newest change to a removed task, reply or inbox item. */
  removedUpTo: integer('removed_up_to').notNull().default(0),
});

/** libSQL server only: position at which each lock key was last touched. The key `forgotten` stands for pruned keys. */
export const touched = sqliteTable(
  'touched',
  {
    key: text('key').primaryKey(),
    position: integer('position').notNull(),
  },
  (table) => [index('touched_by_position').on(table.position)],
);

/** libSQL server only: recent commits, to recognise a commit that is retried. */
export const commits = sqliteTable('commits', {
  mark: text('mark').primaryKey(),
  position: integer('position').notNull(),
});

/** libSQL server only: the instance that currently holds each periodic job. */
export const leases = sqliteTable('leases', {
  work: text('work').primaryKey(),
  holder: text('holder').notNull(),
  /** Server clock. */
  until: integer('until').notNull(),
});

/** One row: the oldest version that may still use this database. See migrate.ts. */
export const compatibility = sqliteTable('compatibility', {
  id: integer('id').primaryKey(),
  /** Journal time of the newest migration that the oldest such version knows. */
  oldestWriter: integer('oldest_writer').notNull(),
});

/** One row per outbox id. Epochs older than `epoch` are fenced. */
export const producers = sqliteTable(
  'producers',
  {
    id: text('id').primaryKey(),
    epoch: integer('epoch').notNull(),
    lastSeq: integer('last_seq').notNull(),
    agentId: text('agent_id'),
    accepted: integer('accepted').notNull().default(0),
    duplicates: integer('duplicates').notNull().default(0),
    gaps: integer('gaps').notNull().default(0),
    rejected: integer('rejected').notNull().default(0),
    lost: integer('lost').notNull().default(0),
    clockSkewMs: integer('clock_skew_ms'),
    lastSeenAt: integer('last_seen_at').notNull(),
  },
  (table) => [index('producers_by_agent').on(table.agentId)],
);

/** The event log. Append-only, except that deltas are folded into one row when their message ends. */
export const events = sqliteTable(
  'events',
  {
    position: integer('position').primaryKey(),
    sessionId: text('session_id').notNull(),
    agentId: text('agent_id').notNull(),
    producerId: text('producer_id').notNull(),
    epoch: integer('epoch').notNull(),
    seq: integer('seq').notNull(),
    occurredAt: integer('occurred_at').notNull(),
    receivedAt: integer('received_at').notNull(),
    type: text('type').notNull(),
    /** The message, tool call or task that the event is about. */
    entityId: text('entity_id'),
    /** The turn that shows the event, `task:<id>` for a subagent; null if hidden. */
    turnId: text('turn_id'),
    /** The `name` of a CUSTOM event. */
    name: text('name'),
    payload: json<AgUiEvent>('payload').notNull(),
  },
  (table) => [
    index('events_by_session').on(table.sessionId, table.position),
    index('events_by_turn').on(table.sessionId, table.turnId, table.position),
    index('events_lost').on(table.sessionId, table.position).where(sql`name = 'interlude:lost'`),
    // retention's own events
    index('events_of_retention')
      .on(table.sessionId, table.position)
      .where(sql`name IN ('interlude:removed', 'interlude:task-goes-on')`),
    index('events_of_requests')
      .on(table.sessionId, table.entityId, table.position)
      .where(sql`name IN ('request:opened', 'request:resolved')`),
    index('events_of_output').on(table.sessionId, table.entityId, table.position).where(sql`name = 'task:output'`),
    // finds the parts of a snapshot by id
    index('events_by_entity')
      .on(table.sessionId, table.entityId, table.position)
      .where(sql`entity_id IS NOT NULL AND type <> 'CUSTOM'`),
  ],
);

export const turns = sqliteTable(
  'turns',
  {
    sessionId: text('session_id').notNull(),
    id: text('id').notNull(),
    position: integer('position').notNull(),
    kind: text('kind').$type<TurnKind>().notNull(),
    state: text('state').$type<TurnState>().notNull(),
    trigger: json<TurnHeader['trigger']>('trigger'),
    userMessageIds: json<string[]>('user_message_ids').notNull().default(sql`'[]'`),
    parentTurnId: text('parent_turn_id'),
    startedAt: integer('started_at').notNull(),
    endedAt: integer('ended_at'),
    errorMessage: text('error_message'),
    errorCode: text('error_code'),
    /** The turn's end was inferred, not reported. */
    inferred: boolean('inferred').notNull().default(false),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.id] }),
    index('turns_by_position').on(table.sessionId, table.position),
    index('turns_by_start').on(table.sessionId, table.startedAt, table.position).where(sql`kind <> 'none'`),
  ],
);

export const tasks = sqliteTable(
  'tasks',
  {
    sessionId: text('session_id').notNull(),
    position: integer('position').notNull(),
    id: text('id').notNull(),
    runId: text('run_id'),
    agentId: text('agent_id').notNull(),
    status: text('status').$type<TaskStatus>().notNull(),
    startedAt: integer('started_at').notNull().default(0),
    endedAt: integer('ended_at'),
    /** Reason to presume the task lost; null for a reported loss, or if the task is not lost. */
    presumed: text('presumed').$type<NonNullable<Task['presumed']>>(),
    /** Time since which the task's result has waited for a turn; null if not waiting or already overdue. */
    unansweredSince: integer('unanswered_since'),
    /** The other fields of Task. */
    body: json<TaskBody>('body').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.position] }),
    index('tasks_by_id').on(table.sessionId, table.id, table.position),
    // finds the owner of a task that another session reports on
    index('tasks_by_agent').on(table.agentId, table.id, table.sessionId),
    // finds runs with or without an id
    index('tasks_by_run').on(table.agentId, table.id, table.runId, table.sessionId, table.position),
    // finds changes for a resuming stream
    index('tasks_by_change').on(table.updatedPosition, table.status, table.position, table.sessionId),
    index('tasks_running').on(table.sessionId, table.position).where(sql`status = 'running'`),
    // finds tasks that are only presumed lost
    index('tasks_presumed').on(table.sessionId, table.position).where(sql`presumed IS NOT NULL`),
    index('tasks_unanswered').on(table.unansweredSince).where(sql`unanswered_since IS NOT NULL`),
    // covers the query for tasks that ran at a given time
    index('tasks_by_start').on(table.sessionId, table.startedAt, table.endedAt, table.id),
  ],
);

export const sessions = sqliteTable(
  'sessions',
  {
    /** Row id in `session_search`. */
    number: integer('number').primaryKey(),
    id: text('id').notNull().unique(),
    /** The first agent that wrote to the session. Never changes. */
    agentId: text('agent_id').notNull(),
    state: text('state').$type<SessionState>().notNull(),
    /** The state under which people find the session, if it is another. */
    listedAs: text('listed_as').$type<ListedState>(),
    /** The session's group if it differs from its listed state, else null. */
    groupedAs: text('grouped_as').$type<SessionGroup>(),
    lastEventAt: integer('last_event_at').notNull(),
    /** Earliest expiry of the session's open requests. */
    answerBy: integer('answer_by'),
    /** Number of unseen failures that mark the session, and of those other than `hook_fatal`. */
    insightCount: integer('insight_count').notNull().default(0),
    otherFailureCount: integer('other_failure_count').notNull().default(0),
    /** The agent's process has ended. */
    hasEnded: boolean('has_ended').notNull().default(false),
    /** Time of the next state change that needs no event. */
    stateDueAt: integer('state_due_at'),
    /** The session's runner was missed, and no record of the session has arrived since. */
    isAway: boolean('is_away').notNull().default(false),
    /** Position at which the runner was missed. */
    awayPosition: integer('away_position'),
    /** Time at which its requests expire unless a record arrives; null if nothing is pending. */
    givesUpAt: integer('gives_up_at'),
    /** Time of the runner's last report, and the position before that report. */
    seenAt: integer('seen_at'),
    seenPosition: integer('seen_position').notNull().default(0),
    /** Position up to which retention removed the session's log, except what later turns and running tasks show. */
    removedUpTo: integer('removed_up_to').notNull().default(0),
    /** Rule by which the runner wakes the agent; null if never set. */
    wakeRule: text('wake_rule').$type<WakeRule>(),
    /** The other fields of SessionSummary. */
    body: json<SessionBody>('body').notNull(),
    /** Search text in lower case. `session_search` has its trigrams while the session is not working. */
    words: text('words').notNull().default(''),
    /** Bounded state of the turn projection between batches. */
    places: json<TurnPlaces>('places').notNull(),
    /** Bounded state of the session projection between batches. */
    memory: json<object>('memory').notNull().default(sql`'{}'`),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    index('sessions_by_update').on(table.updatedPosition),
    index('sessions_by_agent').on(table.agentId, table.lastEventAt, table.id),
    index('sessions_by_state').on(table.state, table.lastEventAt, table.id),
    index('sessions_listed').on(table.listedAs, table.lastEventAt, table.id).where(sql`listed_as IS NOT NULL`),
    index('sessions_grouped')
      .on(table.groupedAs, table.listedAs, table.state, table.agentId, table.id)
      .where(sql`grouped_as IS NOT NULL`),
    // for sweeps
    index('sessions_by_answer').on(table.answerBy).where(sql`answer_by IS NOT NULL`),
    index('sessions_by_giving_up').on(table.givesUpAt).where(sql`gives_up_at IS NOT NULL`),
    index('sessions_by_due').on(table.stateDueAt).where(sql`state_due_at IS NOT NULL`),
    // finds sessions to mark as away with their runner
    index('sessions_present').on(table.agentId).where(sql`NOT has_ended AND NOT is_away`),
    // finds sessions of a runner that connects
    index('sessions_with_rule').on(table.agentId, table.lastEventAt).where(sql`wake_rule IS NOT NULL`),
    index('sessions_with_insights').on(table.agentId).where(sql`insight_count > 0`),
  ],
);

export const agents = sqliteTable(
  'agents',
  {
    id: text('id').primaryKey(),
    /** The runner that sent the newest status, and its reporting interval. */
    reportedBy: text('reported_by'),
    reportsEveryMs: integer('reports_every_ms'),
    /** The agent's sessions were marked as unreachable. */
    isSilent: boolean('is_silent').notNull().default(false),
    /** Request and expiry of a log level. */
    levelRequestedAt: integer('level_requested_at'),
    levelExpiresAt: integer('level_expires_at'),
    /** Copied from `body`, for the index of counts. */
    state: text('state').$type<AgentState>(),
    isRetired: boolean('is_retired').notNull().default(false),
    /** The other fields of AgentSummary. */
    body: json<AgentBody>('body').notNull(),
    /** Search text in lower case. */
    words: text('words').notNull().default(''),
    lastSeenAt: integer('last_seen_at').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    index('agents_by_update').on(table.updatedPosition),
    index('agents_by_state').on(table.isRetired, table.state, table.id),
    index('agents_by_last_seen').on(table.lastSeenAt, table.id),
    // finds agents that may become unreachable
    index('agents_by_silence').on(table.lastSeenAt, table.id).where(sql`NOT is_silent`),
    index('agents_by_level').on(table.levelExpiresAt).where(sql`level_requested_at IS NOT NULL`),
  ],
);

export const logLines = sqliteTable(
  'log_lines',
  {
    position: integer('position').primaryKey(),
    agentId: text('agent_id').notNull(),
    occurredAt: integer('occurred_at').notNull(),
    receivedAt: integer('received_at').notNull(),
    level: text('level').$type<LogLevel>().notNull(),
    component: text('component').notNull(),
    message: text('message').notNull(),
    /** Line number in the agent's log, dense from 1. */
    line: integer('line').notNull().default(0),
    redacted: integer('redacted').notNull().default(0),
    marker: json<LogMarker>('marker'),
  },
  (table) => [index('log_lines_by_agent').on(table.agentId, table.position)],
);

/** Totals of each agent's log. */
export const agentLogs = sqliteTable('agent_logs', {
  agentId: text('agent_id').primaryKey(),
  /** Number of the newest line. */
  lastLine: integer('last_line').notNull().default(0),
  /** UTF-8 bytes of the retained messages. */
  bytes: integer('bytes').notNull().default(0),
  /** Number of the last line that retention removed. */
  removedLines: integer('removed_lines').notNull().default(0),
  removedBytes: integer('removed_bytes').notNull().default(0),
  /** The agent's number in its chunk ids; null until it has a chunk. */
  number: integer('number').unique('agent_logs_by_number'),
  /** Number of the last line that a chunk covers. */
  indexedLine: integer('indexed_line').notNull().default(0),
  indexedPosition: integer('indexed_position').notNull().default(0),
});

/** Retained lines by component. */
export const logComponents = sqliteTable(
  'log_components',
  {
    agentId: text('agent_id').notNull(),
    component: text('component').notNull(),
    lines: integer('lines').notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.component] })],
);

/** Summary of consecutive lines, which lets a search skip them. `log_search` holds their text under the same id. */
export const logChunks = sqliteTable('log_chunks', {
  /** Agent number and first line, see log-rows.ts. */
  id: integer('id').primaryKey(),
  firstPosition: integer('first_position').notNull(),
  lastPosition: integer('last_position').notNull(),
  /** Minimum and maximum of `occurred_at`. */
  fromAt: integer('from_at').notNull(),
  toAt: integer('to_at').notNull(),
  /** One bit per level. */
  levels: integer('levels').notNull(),
  components: json<[component: string, levels: number][]>('components').notNull(),
  hasMarkers: boolean('has_markers').notNull(),
});

/** Failures and other signals parsed from log lines. `position` is that of the line. */
export const insights = sqliteTable(
  'insights',
  {
    position: integer('position').primaryKey(),
    agentId: text('agent_id').notNull(),
    sessionId: text('session_id'),
    signal: text('signal').notNull(),
    source: text('source').notNull(),
    detail: text('detail').notNull(),
    occurredAt: integer('occurred_at').notNull(),
    seenAt: integer('seen_at'),
    value: json<Insight['value']>('value'),
    outcome: text('outcome'),
    isFailure: boolean('is_failure').notNull().default(true),
  },
  (table) => [index('insights_by_agent').on(table.agentId, table.isFailure, table.position)],
);

/** Rejected records as received. Retention keeps parked records until a person settles them. */
export const quarantine = sqliteTable(
  'quarantine',
  {
    position: integer('position').primaryKey(),
    producerId: text('producer_id').notNull(),
    epoch: integer('epoch').notNull(),
    seq: integer('seq').notNull(),
    agentId: text('agent_id'),
    sessionId: text('session_id'),
    code: text('code').notNull(),
    message: text('message').notNull(),
    record: json<unknown>('record').notNull(),
    receivedAt: integer('received_at').notNull(),
    /** State of a record whose task can't be traced to one session: `parked`, then `assigned` or `discarded`. */
    parked: text('parked').$type<ParkedState['state']>(),
    taskId: text('task_id'),
    taskRunId: text('task_run_id'),
    settledAt: integer('settled_at'),
    settledBy: text('settled_by'),
    settledReason: text('settled_reason'),
    /** The session that the record was assigned to. */
    settledSessionId: text('settled_session_id'),
    /** `clientId` of the decision. */
    settledClientId: text('settled_client_id'),
  },
  (table) => [
    index('quarantine_by_agent').on(table.agentId, table.position),
    index('quarantine_parked').on(table.agentId, table.parked, table.position).where(sql`parked is not null`),
    // covers the query for a session's missing records, so no large record is read
    index('quarantine_missing')
      .on(table.sessionId, table.agentId, table.position, table.parked, table.receivedAt)
      .where(sql`session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked'`),
    // finds records that may belong to any session of an outbox
    index('quarantine_unnamed')
      .on(table.producerId, table.sessionId, table.agentId)
      .where(sql`session_id IS NULL OR agent_id IS NULL`),
    // covers the query for removable rows, so no large record is read
    index('quarantine_settled')
      .on(table.position, table.parked, table.settledAt)
      .where(sql`ifnull(parked, '') <> 'parked'`),
  ],
);

/** Sessions that an outbox has written to, and in which its losses are reported. */
export const producerSessions = sqliteTable(
  'producer_sessions',
  { producerId: text('producer_id').notNull(), sessionId: text('session_id').notNull() },
  (table) => [
    primaryKey({ columns: [table.producerId, table.sessionId] }),
    index('producer_sessions_by_session').on(table.sessionId),
  ],
);

/** Commands to runners. Retention removes ended ones, except the newest log level and wake rule, which still apply. */
export const commands = sqliteTable(
  'commands',
  {
    id: text('id').primaryKey(),
    /** Delivery order and SSE id. */
    position: integer('position').notNull(),
    agentId: text('agent_id').notNull(),
    sessionId: text('session_id'),
    type: text('type').$type<CommandType>().notNull(),
    body: json<object>('body').notNull(),
    state: text('state').$type<CommandState>().notNull(),
    reason: text('reason'),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    /** End of the claiming runner's lease. */
    leaseUntil: integer('lease_until'),
    claimedBy: text('claimed_by'),
    deliveryCount: integer('delivery_count').notNull().default(0),
  },
  (table) => [
    index('commands_open_by_agent').on(table.agentId, table.position).where(sql`state in ('queued', 'delivered')`),
    index('commands_of_level').on(table.agentId, table.position).where(sql`type = 'log-level.set'`),
    index('commands_of_waking').on(table.sessionId, table.position).where(sql`type = 'wake-rule.set'`),
    index('commands_open_by_expiry').on(table.expiresAt).where(sql`state in ('queued', 'delivered')`),
    // removable
    index('commands_ended').on(table.position).where(sql`state not in ('queued', 'delivered')`),
  ],
);

/** Images and files sent to an agent. Stored per session, since access is per session. */
export const attachments = sqliteTable(
  'attachments',
  {
    sessionId: text('session_id').notNull(),
    /** SHA-256 of the bytes. */
    hash: text('hash').notNull(),
    name: text('name').notNull(),
    mediaType: text('media_type').notNull(),
    bytes: integer('bytes').notNull(),
    /** Time of the last upload. */
    sentAt: integer('sent_at').notNull(),
    /** A message refers to the attachment, which is kept as long as that message. */
    isNamed: boolean('is_named').notNull().default(false),
    /** Position before the newest message that refers to the attachment. Null in rows of older versions. */
    namedPosition: integer('named_position'),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.hash] }),
    // removable
    index('attachments_unnamed').on(table.sentAt).where(sql`is_named = 0`),
  ],
);

/** Attachment bytes in parts that fit a statement. */
export const attachmentParts = sqliteTable(
  'attachment_parts',
  {
    sessionId: text('session_id').notNull(),
    hash: text('hash').notNull(),
    part: integer('part').notNull(),
    bytes: blob('bytes', { mode: 'buffer' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.hash, table.part] })],
);

/** People's requests to a session by `clientId`, which makes retries idempotent. */
export const asks = sqliteTable(
  'asks',
  {
    sessionId: text('session_id').notNull(),
    clientId: text('client_id').notNull(),
    /** Digest of all fields of the request: a retry with another digest is a conflict. */
    digest: text('digest').notNull(),
    /** The resulting command; null if it needs no runner. */
    commandId: text('command_id'),
    /** The other fields of the response, which a retry gets again. */
    said: json<object>('said'),
    /** The newest position before the request. Null in rows of older versions. */
    askedPosition: integer('asked_position'),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.clientId] }),
    // finds requests to remove with their command, or by age if there is none
    index('asks_by_command').on(table.commandId, table.askedPosition),
  ],
);

/** The current or last runner of each agent. Older runners are fenced. */
export const runners = sqliteTable('runners', {
  agentId: text('agent_id').primaryKey(),
  runnerId: text('runner_id').notNull(),
  startedAt: integer('started_at').notNull(),
  /** The runner's newest stream. Older ones are closed. */
  streamId: text('stream_id').notNull(),
  /** Renewed while the stream is open, so it expires if the server dies. Null once the stream ended. */
  aliveUntil: integer('alive_until'),
  /** Time at which the runner was last missed or replaced. A session without records since then has no runner. */
  missedAt: integer('missed_at'),
  /** Time at which the runner's sessions must be marked as away; null if done or not needed. */
  absenceDueAt: integer('absence_due_at'),
  /** The runner is gone, its sessions were marked, and the agent continues without a runner. */
  isOver: boolean('is_over').notNull().default(false),
  /** Time of the first connection of the runner's process. Earlier absences concern another process. */
  firstConnectedAt: integer('first_connected_at').notNull(),
  /** Positions of `missed_at` and `first_connected_at`, whose order does not depend on clocks. */
  missedPosition: integer('missed_position'),
  firstConnectedPosition: integer('first_connected_position').notNull(),
});

/** Pending and settled replies. */
export const obligations = sqliteTable(
  'obligations',
  {
    sessionId: text('session_id').notNull(),
    messageId: text('message_id').notNull(),
    position: integer('position').notNull(),
    agentId: text('agent_id').notNull(),
    state: text('state').$type<Obligation['state']>().notNull(),
    owedSince: integer('owed_since').notNull().default(0),
    isOverdue: boolean('is_overdue').notNull().default(false),
    /** True once `is_overdue` is decided. Cleared when the session becomes able or unable to reply. */
    isJudged: boolean('is_judged').notNull().default(false),
    /** The other fields of Obligation. */
    body: json<ObligationBody>('body').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.messageId] }),
    index('obligations_owed_by_agent').on(table.agentId, table.position).where(sql`state = 'owed'`),
    index('obligations_owed_by_session').on(table.sessionId, table.position).where(sql`state = 'owed'`),
    // finds replies for the overdue sweep
    index('obligations_unjudged').on(table.owedSince).where(sql`state = 'owed' AND is_judged = 0`),
    // reply times
    index('obligations_answered').on(table.updatedPosition).where(sql`state = 'answered'`),
    index('obligations_settled').on(table.sessionId, table.updatedPosition).where(sql`state <> 'owed'`),
    index('obligations_by_change').on(table.updatedPosition, table.state, table.position, table.sessionId),
  ],
);

/** Inbox items, open and done. */
export const inbox = sqliteTable(
  'inbox',
  {
    id: text('id').primaryKey(),
    kind: text('kind').$type<InboxKind>().notNull(),
    agentId: text('agent_id').notNull(),
    sessionId: text('session_id'),
    /** A different version reopens the item; for kinds that count, only a greater version does. */
    version: integer('version').notNull(),
    since: integer('since').notNull(),
    seenAt: integer('seen_at'),
    snoozedUntil: integer('snoozed_until'),
    claim: json<InboxClaim>('claim'),
    doneAt: integer('done_at'),
    /** The other fields of InboxItem. */
    body: json<InboxBody>('body').notNull(),
    /** Search text in lower case. */
    words: text('words').notNull(),
    /** Positions at which the item was first and last opened. */
    position: integer('position').notNull(),
    openedPosition: integer('opened_position').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    index('inbox_by_change').on(table.updatedPosition, table.doneAt, table.position, table.sessionId),
    index('inbox_open').on(table.kind, table.since, table.id).where(sql`done_at IS NULL`),
    index('inbox_open_by_owner').on(table.sessionId, table.agentId).where(sql`done_at IS NULL`),
    // finds items opened since a position
    index('inbox_by_opening').on(table.openedPosition).where(sql`done_at IS NULL`),
    // finds items to remove by age; other kinds have one item per session or agent
    index('inbox_done')
      .on(table.updatedPosition)
      .where(sql`done_at IS NOT NULL AND kind IN ('permission', 'question', 'overdue-reply')`),
    index('inbox_delivered').on(table.updatedPosition).where(sql`done_at IS NOT NULL AND kind = 'undelivered'`),
  ],
);

/** Events per agent and minute (since the epoch, server clock). */
export const activity = sqliteTable(
  'activity',
  {
    minute: integer('minute').notNull(),
    agentId: text('agent_id').notNull(),
    events: integer('events').notNull(),
  },
  (table) => [primaryKey({ columns: [table.minute, table.agentId] })],
);

/** One row once a webhook was configured: inbox items up to this position are handled. */
export const webhookCursor = sqliteTable('webhook_cursor', {
  id: integer('id').primaryKey(),
  position: integer('position').notNull(),
});

/** One delivery for each time an inbox item was opened. */
export const webhookDeliveries = sqliteTable(
  'webhook_deliveries',
  {
    /** Position at which the item was opened. */
    position: integer('position').primaryKey(),
    itemId: text('item_id').notNull(),
    kind: text('kind').$type<InboxKind>().notNull(),
    state: text('state').$type<WebhookDeliveryState>().notNull(),
    attempts: integer('attempts').notNull().default(0),
    createdAt: integer('created_at').notNull(),
    /** Time of the next attempt. */
    dueAt: integer('due_at').notNull(),
    /** End of the sender's lease. */
    leaseUntil: integer('lease_until'),
    /** Result of the last attempt. */
    attemptedAt: integer('attempted_at'),
    status: integer('status'),
    error: text('error'),
  },
  (table) => [index('webhook_deliveries_due').on(table.dueAt).where(sql`state = 'waiting'`)],
);

/** Credentials. Only a digest of the secret is stored. */
export const credentials = sqliteTable(
  'credentials',
  {
    id: text('id').primaryKey(),
    kind: text('kind').$type<CredentialKind>().notNull(),
    /** SHA-256 of the secret, in hex. */
    hash: text('hash').notNull().unique('credentials_by_hash'),
    name: text('name').notNull(),
    role: text('role').$type<Role>().notNull(),
    scope: json<Scope>('scope').notNull(),
    /** The only origin that may embed it. */
    parentOrigin: text('parent_origin'),
    /** Redacts responses to the credential's user. */
    redacts: boolean('redacts').notNull().default(false),
    /** The member who signed in. */
    memberId: text('member_id'),
    /** The provider's session id, with which the provider ends the sign-in. */
    providerSessionId: text('provider_session_id'),
    /** The provider's refresh token, sealed with the server key of that name. Removed after the sign-in ended. */
    refreshToken: text('refresh_token'),
    /** Time of the provider's last confirmation of the role. */
    roleCheckedAt: integer('role_checked_at'),
    /** Time of the next role refresh; null without a refresh token. */
    roleDueAt: integer('role_due_at'),
    /** The credential that created this one. Revoking it revokes this one. */
    parentId: text('parent_id'),
    createdAt: integer('created_at').notNull(),
    lastUsedAt: integer('last_used_at').notNull(),
    expiresAt: integer('expires_at'),
    /** Maximum time without use. */
    idleMs: integer('idle_ms'),
    revokedAt: integer('revoked_at'),
  },
  (table) => [
    index('credentials_by_creation').on(table.kind, table.createdAt),
    index('credentials_by_parent').on(table.parentId).where(sql`parent_id IS NOT NULL`),
    index('credentials_by_member').on(table.memberId).where(sql`member_id IS NOT NULL`),
    index('credentials_by_expiry').on(table.expiresAt).where(sql`expires_at IS NOT NULL`),
  ],
);

/** One row. Every change to a credential or member increments the version, which other processes poll. */
export const access = sqliteTable('access', {
  id: integer('id').primaryKey(),
  version: integer('version').notNull().default(0),
});

/** Sessions whose runner uses an id (`alias`) that another agent's session has. See ingest/session-aliases.ts. */
export const sessionAliases = sqliteTable(
  'session_aliases',
  {
    sessionId: text('session_id').primaryKey(),
    agentId: text('agent_id').notNull(),
    alias: text('alias').notNull(),
  },
  (table) => [uniqueIndex('session_aliases_by_alias').on(table.alias, table.agentId)],
);

/** Random keys of the server by purpose. Written once and never sent, see server-keys.ts. */
export const serverKeys = sqliteTable('server_keys', {
  name: text('name').primaryKey(),
  key: blob('key', { mode: 'buffer' }).notNull(),
});

/** People who signed in with the identity provider. */
export const members = sqliteTable(
  'members',
  {
    id: text('id').primaryKey(),
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    name: text('name').notNull(),
    email: text('email'),
    role: text('role').$type<Role>().notNull(),
    /** Set by an admin. Overrides the provider's groups. */
    givenRole: text('given_role').$type<Role>(),
    createdAt: integer('created_at').notNull(),
    lastSignInAt: integer('last_sign_in_at').notNull(),
    /** Time since which the member is blocked, regardless of the provider. */
    blockedAt: integer('blocked_at'),
  },
  (table) => [uniqueIndex('members_by_subject').on(table.issuer, table.subject)],
);

/** Actions of people and programs as a gapless hash chain. Retention removes the oldest entries, see `auditStart`. */
export const audit = sqliteTable(
  'audit',
  {
    /** From 1. */
    number: integer('number').primaryKey(),
    at: integer('at').notNull(),
    actor: text('actor').notNull(),
    actorKind: text('actor_kind').notNull(),
    role: text('role').notNull(),
    credentialId: text('credential_id').notNull(),
    action: text('action').notNull(),
    agentId: text('agent_id'),
    sessionId: text('session_id'),
    target: text('target').notNull(),
    /** SHA-256 of the request body. */
    digest: text('digest').notNull(),
    /** Origin of the page, or User-Agent of the program. */
    origin: text('origin').notNull(),
    result: text('result').notNull(),
    /** Number of actions that the entry summarises. */
    times: integer('times').notNull().default(1),
    /** SHA-256 over this entry and the previous hash. */
    hash: text('hash').notNull(),
  },
  (table) => [
    index('audit_by_action').on(table.action, table.number),
    index('audit_by_credential').on(table.credentialId, table.number),
    index('audit_by_session').on(table.sessionId, table.number).where(sql`session_id IS NOT NULL`),
    index('audit_by_agent').on(table.agentId, table.number).where(sql`agent_id IS NOT NULL`),
  ],
);

/** One row once retention removed audit entries: the last removed one, where the chain continues. */
export const auditStart = sqliteTable('audit_start', {
  id: integer('id').primaryKey(),
  number: integer('number').notNull(),
  hash: text('hash').notNull(),
  removedAt: integer('removed_at').notNull(),
});

/** Repeated refusals of a credential, counted until one audit entry summarises them. */
export const refusals = sqliteTable(
  'refusals',
  {
    credentialId: text('credential_id').notNull(),
    action: text('action').notNull(),
    result: text('result').notNull(),
    /** Due time of the audit entry. */
    dueAt: integer('due_at').notNull(),
    /** Count since the last audit entry. */
    times: integer('times').notNull(),
    /** Audit entry of the newest refusal. */
    entry: json<NewAuditEntry>('entry').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.credentialId, table.action, table.result] }),
    index('refusals_by_due').on(table.dueAt),
  ],
);

/** The runner processes of an agent, in the order in which they first connected. */
export const runnerGenerations = sqliteTable(
  'runner_generations',
  {
    agentId: text('agent_id').notNull(),
    runnerId: text('runner_id').notNull(),
    generation: integer('generation').notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.runnerId] })],
);

/** Fields of the read models with a column. The others are in the JSON body. */
export const AGENT_COLUMNS = ['id', 'lastSeenAt', 'updatedPosition'] as const;
const STATE_COLUMNS = ['id', 'agentId', 'state', 'lastEventAt', 'stateDueAt', 'answerBy'] as const;
const MARK_COLUMNS = ['insightCount', 'otherFailureCount', 'wakeRule', 'updatedPosition'] as const;
export const SESSION_COLUMNS = [...STATE_COLUMNS, ...MARK_COLUMNS] as const;
export const TASK_COLUMNS = ['sessionId', 'agentId', 'status', 'startedAt', 'endedAt', 'position'] as const;
export const OBLIGATION_COLUMNS = ['sessionId', 'agentId', 'state', 'owedSince', 'isOverdue', 'position'] as const;

type AgentBody = Omit<AgentSummary, (typeof AGENT_COLUMNS)[number]>;
type SessionBody = Omit<SessionSummary, (typeof SESSION_COLUMNS)[number]>;
/** Holds the id exactly as sent. The column may differ, see `columnText`. */
type TaskBody = Omit<Task, (typeof TASK_COLUMNS)[number]>;
type InboxBody = Omit<
  InboxItem,
  keyof InboxMarks | 'id' | 'kind' | 'agentId' | 'sessionId' | 'session' | 'since' | 'updatedPosition'
>;
type ObligationBody = Omit<Obligation, (typeof OBLIGATION_COLUMNS)[number]>;
