import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { SessionState } from '@interlude/protocol/agent-state';
import type { NewAuditEntry } from '@interlude/protocol/audit';
import type { CommandState, CommandType, WakeRule } from '@interlude/protocol/commands';
import type { LogMarker } from '@interlude/protocol/envelope';
import type { InboxClaim, InboxItem, InboxKind, InboxMarks } from '@interlude/protocol/inbox';
import type { LogLevel } from '@interlude/protocol/log-levels';
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
import type { TurnHeader, TurnKind, TurnPlaces, TurnState } from '@interlude/protocol/turn-places';
import type { WebhookDeliveryState } from '@interlude/protocol/webhook';
import { sql } from 'drizzle-orm';
import { blob, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';

/**
 * What is stored, and of which type it is: SQL is written by hand, and its rows go in and out by these columns (see
 * table-rows.ts). Whatever SQL looks for, joins or sorts by is a column of its own; JSON is read whole.
 *
 * Positions are integers here and strings on the wire. Times are epoch milliseconds.
 */

/** JSON, typed by what wrote it. */
const json = <T>(name: string) => text(name, { mode: 'json' }).$type<T>();
const boolean = (name: string) => integer(name, { mode: 'boolean' });

/** One row: the last position handed out. Advanced inside every write transaction. */
export const counter = sqliteTable('counter', {
  id: integer('id').primaryKey(),
  position: integer('position').notNull().default(0),
  /** The newest change of a task, a reply or an inbox item that has been removed; 0 if none was. */
  removedUpTo: integer('removed_up_to').notNull().default(0),
});

/**
 * On a libSQL server, where each key was last touched (see db/writes). Keys that were not for a long time are forgotten:
 * `forgotten` stands for them, up to there.
 */
export const touched = sqliteTable(
  'touched',
  {
    key: text('key').primaryKey(),
    position: integer('position').notNull(),
  },
  (table) => [index('touched_by_position').on(table.position)],
);

/** On a libSQL server, the commits of late, so that one which is sent again is known. */
export const commits = sqliteTable('commits', {
  mark: text('mark').primaryKey(),
  position: integer('position').notNull(),
});

/** On a libSQL server, who does by turns what is due: one holder for each piece of work, as long as it renews its term. */
export const leases = sqliteTable('leases', {
  work: text('work').primaryKey(),
  holder: text('holder').notNull(),
  /** By the server's own clock. */
  until: integer('until').notNull(),
});

/** One row: which versions may use this database besides the newest that has migrated it. See db/migrate. */
export const compatibility = sqliteTable('compatibility', {
  id: integer('id').primaryKey(),
  /** The newest migration that the oldest of them knows, by its time in the journal. */
  oldestWriter: integer('oldest_writer').notNull(),
});

/** One row per outbox id; `epoch` is the newest seen, and older ones are fenced. */
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

/** The event log. Append-only, except that deltas fold into one row when their message ends. */
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
    /** The message, tool call or task the event is about. */
    entityId: text('entity_id'),
    /** The turn that shows it; `task:<id>` for a subagent's own; null if nothing shows it. */
    turnId: text('turn_id'),
    /** The `name` of a CUSTOM event. */
    name: text('name'),
    payload: json<AgUiEvent>('payload').notNull(),
  },
  (table) => [
    index('events_by_session').on(table.sessionId, table.position),
    index('events_by_turn').on(table.sessionId, table.turnId, table.position),
    // what was lost of a session
    index('events_lost').on(table.sessionId, table.position).where(sql`name = 'interlude:lost'`),
    // what retention has told
    index('events_of_retention')
      .on(table.sessionId, table.position)
      .where(sql`name IN ('interlude:removed', 'interlude:task-goes-on')`),
    // what was asked under an id
    index('events_of_requests')
      .on(table.sessionId, table.entityId, table.position)
      .where(sql`name IN ('request:opened', 'request:resolved')`),
    // what a task has written
    index('events_of_output').on(table.sessionId, table.entityId, table.position).where(sql`name = 'task:output'`),
    // The entities in a snapshot are looked up by id.
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
    /** Nobody said that it ended. */
    inferred: boolean('inferred').notNull().default(false),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.id] }),
    index('turns_by_position').on(table.sessionId, table.position),
    // which turn ran at a time
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
    /** Why it is taken to be lost, although nobody said so; null if somebody did, or it is not. */
    presumed: text('presumed').$type<NonNullable<Task['presumed']>>(),
    /** Since when its result waits for a turn; null once that is overdue, or no longer so. */
    unansweredSince: integer('unanswered_since'),
    /** The rest of Task. */
    body: json<TaskBody>('body').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.position] }),
    // the newest runs of a task
    index('tasks_by_id').on(table.sessionId, table.id, table.position),
    // which session owns a task, when another session reports on it
    index('tasks_by_agent').on(table.agentId, table.id, table.sessionId),
    // and which one started the named run, or has a run without a name
    index('tasks_by_run').on(table.agentId, table.id, table.runId, table.sessionId, table.position),
    // the tasks that a resuming stream is told of, without reading the others
    index('tasks_by_change').on(table.updatedPosition, table.status, table.position, table.sessionId),
    // a session's running tasks, however many have ended
    index('tasks_running').on(table.sessionId, table.position).where(sql`status = 'running'`),
    // those that may turn out to run
    index('tasks_presumed').on(table.sessionId, table.position).where(sql`presumed IS NOT NULL`),
    // results that wait for a turn, oldest first
    index('tasks_unanswered').on(table.unansweredSince).where(sql`unanswered_since IS NOT NULL`),
    // which tasks ran at a time: covers the query, so that no row is read
    index('tasks_by_start').on(table.sessionId, table.startedAt, table.endedAt, table.id),
  ],
);

export const sessions = sqliteTable(
  'sessions',
  {
    /** Its row in `session_search`. */
    number: integer('number').primaryKey(),
    id: text('id').notNull().unique(),
    /** The first agent that wrote to it. Never changes. */
    agentId: text('agent_id').notNull(),
    state: text('state').$type<SessionState>().notNull(),
    lastEventAt: integer('last_event_at').notNull(),
    /** Until when the first of its requests to expire can be answered; null if none expires. */
    answerBy: integer('answer_by'),
    /** Unseen failures that mark it, and how many of them are not `hook_fatal`. */
    insightCount: integer('insight_count').notNull().default(0),
    otherFailureCount: integer('other_failure_count').notNull().default(0),
    /** Its agent's process has ended. */
    hasEnded: boolean('has_ended').notNull().default(false),
    /** When time alone may change its state; null: never. */
    stateDueAt: integer('state_due_at'),
    /** Its runner was missed, and no record has come from the session since. */
    isAway: boolean('is_away').notNull().default(false),
    /** The position at which it was missed. */
    awayPosition: integer('away_position'),
    /** When its requests are given up, while nothing is heard of it; null if it has none, or is heard of. */
    givesUpAt: integer('gives_up_at'),
    /** When its runner last sent anything about it, and the server's position before that. */
    seenAt: integer('seen_at'),
    seenPosition: integer('seen_position').notNull().default(0),
    /** Retention has removed what stood in its log up to here, but for what later turns and running tasks show. */
    removedUpTo: integer('removed_up_to').notNull().default(0),
    /** When people want its agent woken by its runner; null if nobody has said. */
    wakeRule: text('wake_rule').$type<WakeRule>(),
    /** The rest of SessionSummary. */
    body: json<SessionBody>('body').notNull(),
    /** What sessions are searched by, in lower case. `session_search` has its trigrams while the session is not working. */
    words: text('words').notNull().default(''),
    /** What the turn projection must remember between two batches. Bounded. */
    places: json<TurnPlaces>('places').notNull(),
    /** What the session projection and its announcements must remember between two batches. Bounded. */
    memory: json<object>('memory').notNull().default(sql`'{}'`),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    index('sessions_by_update').on(table.updatedPosition),
    index('sessions_by_agent').on(table.agentId, table.lastEventAt, table.id),
    index('sessions_by_state').on(table.state, table.lastEventAt, table.id),
    // the few sessions that sweeps look for again and again
    index('sessions_by_answer').on(table.answerBy).where(sql`answer_by IS NOT NULL`),
    index('sessions_by_giving_up').on(table.givesUpAt).where(sql`gives_up_at IS NOT NULL`),
    index('sessions_by_due').on(table.stateDueAt).where(sql`state_due_at IS NOT NULL`),
    // those that are missed with their runner
    index('sessions_present').on(table.agentId).where(sql`NOT has_ended AND NOT is_away`),
    // those with something to ask of a runner that connects
    index('sessions_with_rule').on(table.agentId, table.lastEventAt).where(sql`wake_rule IS NOT NULL`),
    index('sessions_with_insights').on(table.agentId).where(sql`insight_count > 0`),
  ],
);

export const agents = sqliteTable(
  'agents',
  {
    id: text('id').primaryKey(),
    /** The runner that sent its newest status, and how often that runner reports. */
    reportedBy: text('reported_by'),
    reportsEveryMs: integer('reports_every_ms'),
    /** Its sessions have been told that nothing is heard of it. */
    isSilent: boolean('is_silent').notNull().default(false),
    /** When a log level was asked of its runner, and until when; null if none is. */
    levelRequestedAt: integer('level_requested_at'),
    levelExpiresAt: integer('level_expires_at'),
    /** The rest of AgentSummary. */
    body: json<AgentBody>('body').notNull(),
    /** The text that agents are searched by, in lower case. */
    words: text('words').notNull().default(''),
    lastSeenAt: integer('last_seen_at').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    index('agents_by_update').on(table.updatedPosition),
    index('agents_by_last_seen').on(table.lastSeenAt, table.id),
    // those that may fall silent
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
    /** Its number in the agent's log, dense from 1. */
    line: integer('line').notNull().default(0),
    redacted: integer('redacted').notNull().default(0),
    marker: json<LogMarker>('marker'),
  },
  (table) => [index('log_lines_by_agent').on(table.agentId, table.position)],
);

/** Facts about an agent's log as a whole, so that its end and size need no search. */
export const agentLogs = sqliteTable('agent_logs', {
  agentId: text('agent_id').primaryKey(),
  /** The number of its newest line. */
  lastLine: integer('last_line').notNull().default(0),
  /** UTF-8 bytes of the kept messages. */
  bytes: integer('bytes').notNull().default(0),
  /** How many lines retention has removed: numbers 1 to this. */
  removedLines: integer('removed_lines').notNull().default(0),
  removedBytes: integer('removed_bytes').notNull().default(0),
  /** The agent's number in the ids of its chunks; null until it has a chunk. */
  number: integer('number').unique('agent_logs_by_number'),
  /** Lines up to this one are in chunks. */
  indexedLine: integer('indexed_line').notNull().default(0),
  indexedPosition: integer('indexed_position').notNull().default(0),
});

/** How many kept lines each component wrote. */
export const logComponents = sqliteTable(
  'log_components',
  {
    agentId: text('agent_id').notNull(),
    component: text('component').notNull(),
    lines: integer('lines').notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.component] })],
);

/**
 * Summary of a stretch of lines, so that a search can skip them. Their text is in the full-text table `log_search`, in
 * the row with the same id.
 */
export const logChunks = sqliteTable('log_chunks', {
  /** The agent's number and the first line's, see log-chunks.ts. */
  id: integer('id').primaryKey(),
  firstPosition: integer('first_position').notNull(),
  lastPosition: integer('last_position').notNull(),
  /** The least and the greatest `occurred_at`. */
  fromAt: integer('from_at').notNull(),
  toAt: integer('to_at').notNull(),
  /** One bit a level. */
  levels: integer('levels').notNull(),
  components: json<[component: string, levels: number][]>('components').notNull(),
  hasMarkers: boolean('has_markers').notNull(),
});

/**
 * What log lines say for machines: failures that need a person's attention, and other signals; `position` is the
 * line's.
 */
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

/** Records that could not be stored as they were, kept whole. Those that somebody may still settle stay. */
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
    /**
     * For a record about a task that can't be traced to one session: `parked`, then `assigned` or `discarded`. Else
     * null.
     */
    parked: text('parked').$type<ParkedState['state']>(),
    taskId: text('task_id'),
    taskRunId: text('task_run_id'),
    settledAt: integer('settled_at'),
    settledBy: text('settled_by'),
    settledReason: text('settled_reason'),
    /** The session it was assigned to. */
    settledSessionId: text('settled_session_id'),
    /** The `clientId` of the decision. */
    settledClientId: text('settled_client_id'),
  },
  (table) => [
    index('quarantine_by_agent').on(table.agentId, table.position),
    index('quarantine_parked').on(table.agentId, table.parked, table.position).where(sql`parked is not null`),
    // what a session lacks: nobody has settled it. With all that is read of a row behind a large record
    index('quarantine_missing')
      .on(table.sessionId, table.agentId, table.position, table.parked, table.receivedAt)
      .where(sql`session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked'`),
    // what may be of any session of an outbox
    index('quarantine_unnamed')
      .on(table.producerId, table.sessionId, table.agentId)
      .where(sql`session_id IS NULL OR agent_id IS NULL`),
    // what waits for nobody, so that retention may remove it: without reading large records
    index('quarantine_settled')
      .on(table.position, table.parked, table.settledAt)
      .where(sql`ifnull(parked, '') <> 'parked'`),
  ],
);

/** Which sessions an outbox has written to: its losses are told there. */
export const producerSessions = sqliteTable(
  'producer_sessions',
  { producerId: text('producer_id').notNull(), sessionId: text('session_id').notNull() },
  (table) => [
    primaryKey({ columns: [table.producerId, table.sessionId] }),
    index('producer_sessions_by_session').on(table.sessionId),
  ],
);

/**
 * What runners are asked to do. The outcome can be looked up until retention removes what has ended; the newest command
 * of those that hold from one to the next, a log level and a wake rule, stays.
 */
export const commands = sqliteTable(
  'commands',
  {
    id: text('id').primaryKey(),
    /** Where it was queued: the order of delivery and the SSE id. */
    position: integer('position').notNull(),
    agentId: text('agent_id').notNull(),
    sessionId: text('session_id'),
    type: text('type').$type<CommandType>().notNull(),
    body: json<object>('body').notNull(),
    state: text('state').$type<CommandState>().notNull(),
    reason: text('reason'),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    /** Until when it is leased to the claiming runner; null if nobody has it. */
    leaseUntil: integer('lease_until'),
    claimedBy: text('claimed_by'),
    deliveryCount: integer('delivery_count').notNull().default(0),
  },
  (table) => [
    index('commands_open_by_agent').on(table.agentId, table.position).where(sql`state in ('queued', 'delivered')`),
    // the newest is the one that counts
    index('commands_of_level').on(table.agentId, table.position).where(sql`type = 'log-level.set'`),
    // the same of a session
    index('commands_of_waking').on(table.sessionId, table.position).where(sql`type = 'wake-rule.set'`),
    index('commands_open_by_expiry').on(table.expiresAt).where(sql`state in ('queued', 'delivered')`),
    // what retention may remove
    index('commands_ended').on(table.position).where(sql`state not in ('queued', 'delivered')`),
  ],
);

/** Images and files for a session's agent. Each session has its own: what one may read says nothing about another. */
export const attachments = sqliteTable(
  'attachments',
  {
    sessionId: text('session_id').notNull(),
    /** SHA-256 of the bytes. */
    hash: text('hash').notNull(),
    name: text('name').notNull(),
    mediaType: text('media_type').notNull(),
    bytes: integer('bytes').notNull(),
    /** When it was last sent. */
    sentAt: integer('sent_at').notNull(),
    /** A message names it: it stays as long as that does. */
    isNamed: boolean('is_named').notNull().default(false),
    /** The newest such message stands in its session's log behind this. Null of those that an older version named. */
    namedPosition: integer('named_position'),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.hash] }),
    // what may have to go
    index('attachments_unnamed').on(table.sentAt).where(sql`is_named = 0`),
  ],
);

/** Their bytes, in pieces that every database takes. */
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

/** What was asked in a session under each `clientId`, so that asking again does nothing more. */
export const asks = sqliteTable(
  'asks',
  {
    sessionId: text('session_id').notNull(),
    clientId: text('client_id').notNull(),
    /** Digest of everything that was asked. */
    digest: text('digest').notNull(),
    /** The command it led to; null if nothing is asked of a runner. */
    commandId: text('command_id'),
    /** What else its sender was told of it, to be told the same again. */
    said: json<object>('said'),
    /** The newest position before it. Null of those that an older version noted. */
    askedPosition: integer('asked_position'),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.clientId] }),
    // what goes with a command, and what goes by its own age: that has none
    index('asks_by_command').on(table.commandId, table.askedPosition),
  ],
);

/** The runner that listens for an agent's commands, or listened last. Older ones are fenced. */
export const runners = sqliteTable('runners', {
  agentId: text('agent_id').primaryKey(),
  runnerId: text('runner_id').notNull(),
  startedAt: integer('started_at').notNull(),
  /** The runner's newest stream: an older one ends. */
  streamId: text('stream_id').notNull(),
  /** Renewed while the stream is open; a server that dies stops renewing. Null once it has ended. */
  aliveUntil: integer('alive_until'),
  /** When it was last missed or replaced: a session that has said nothing since then has no runner. */
  missedAt: integer('missed_at'),
  /** When its sessions are to be told of that; null if they have been, or there is nothing to tell. */
  absenceDueAt: integer('absence_due_at'),
  /** It has gone, its sessions were told, and its agent goes on without one. */
  isOver: boolean('is_over').notNull().default(false),
  /** When its process first connected. What was missed before concerned another process. */
  firstConnectedAt: integer('first_connected_at').notNull(),
  /** The positions of both, which no clock moves: they decide what was said since. */
  missedPosition: integer('missed_position'),
  firstConnectedPosition: integer('first_connected_position').notNull(),
});

/** Replies owed now or in the past. */
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
    /** `is_overdue` is decided; cleared when the session becomes able or unable to reply. */
    isJudged: boolean('is_judged').notNull().default(false),
    /** The rest of Obligation. */
    body: json<ObligationBody>('body').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.messageId] }),
    // few replies are owed, however many messages there were
    index('obligations_owed_by_agent').on(table.agentId, table.position).where(sql`state = 'owed'`),
    index('obligations_owed_by_session').on(table.sessionId, table.position).where(sql`state = 'owed'`),
    // owed replies to be judged overdue or not, oldest first
    index('obligations_unjudged').on(table.owedSince).where(sql`state = 'owed' AND is_judged = 0`),
    // how long the last replies took
    index('obligations_answered').on(table.updatedPosition).where(sql`state = 'answered'`),
    // what was settled last
    index('obligations_settled').on(table.sessionId, table.updatedPosition).where(sql`state <> 'owed'`),
    index('obligations_by_change').on(table.updatedPosition, table.state, table.position, table.sessionId),
  ],
);

/** What needs a person, or did. An item is never deleted: the same thing may come up again. */
export const inbox = sqliteTable(
  'inbox',
  {
    id: text('id').primaryKey(),
    kind: text('kind').$type<InboxKind>().notNull(),
    agentId: text('agent_id').notNull(),
    sessionId: text('session_id'),
    /** Another one is news; of kinds that count, only a greater one. */
    version: integer('version').notNull(),
    since: integer('since').notNull(),
    seenAt: integer('seen_at'),
    snoozedUntil: integer('snoozed_until'),
    claim: json<InboxClaim>('claim'),
    doneAt: integer('done_at'),
    /** The rest of InboxItem. */
    body: json<InboxBody>('body').notNull(),
    /** The text that it is searched by, in lower case. */
    words: text('words').notNull(),
    /** Where it first came up, and where it last did. */
    position: integer('position').notNull(),
    openedPosition: integer('opened_position').notNull(),
    updatedPosition: integer('updated_position').notNull(),
  },
  (table) => [
    index('inbox_by_change').on(table.updatedPosition, table.doneAt, table.position, table.sessionId),
    index('inbox_open').on(table.kind, table.since, table.id).where(sql`done_at IS NULL`),
    // what has come up since
    index('inbox_by_opening').on(table.openedPosition).where(sql`done_at IS NULL`),
    // what goes by its age: what else there is, there is one of for each session and agent
    index('inbox_done')
      .on(table.updatedPosition)
      .where(sql`done_at IS NOT NULL AND kind IN ('permission', 'question', 'overdue-reply')`),
    index('inbox_delivered').on(table.updatedPosition).where(sql`done_at IS NOT NULL AND kind = 'undelivered'`),
  ],
);

/** How many events came of an agent in each minute of the server's clock. Minutes are counted from the epoch. */
export const activity = sqliteTable(
  'activity',
  {
    minute: integer('minute').notNull(),
    agentId: text('agent_id').notNull(),
    events: integer('events').notNull(),
  },
  (table) => [primaryKey({ columns: [table.minute, table.agentId] })],
);

/** One row, once a webhook was set: what has come up in the inbox until this position was looked at. */
export const webhookCursor = sqliteTable('webhook_cursor', {
  id: integer('id').primaryKey(),
  position: integer('position').notNull(),
});

/** What the webhook is told: one row for each time that something came up in the inbox. */
export const webhookDeliveries = sqliteTable(
  'webhook_deliveries',
  {
    /** Where it came up. */
    position: integer('position').primaryKey(),
    itemId: text('item_id').notNull(),
    kind: text('kind').$type<InboxKind>().notNull(),
    state: text('state').$type<WebhookDeliveryState>().notNull(),
    attempts: integer('attempts').notNull().default(0),
    createdAt: integer('created_at').notNull(),
    /** When it is to be sent, or sent again. */
    dueAt: integer('due_at').notNull(),
    /** Until then somebody is sending it. */
    leaseUntil: integer('lease_until'),
    /** What became of the last attempt. */
    attemptedAt: integer('attempted_at'),
    status: integer('status'),
    error: text('error'),
  },
  (table) => [index('webhook_deliveries_due').on(table.dueAt).where(sql`state = 'waiting'`)],
);

/** What lets somebody in. Of the secret itself only its digest is kept. */
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
    /** What an embed may be shown in: its one parent origin. */
    parentOrigin: text('parent_origin'),
    /** Whoever comes in by it is told no secrets. */
    redacts: boolean('redacts').notNull().default(false),
    /** Whose sign-in it is. */
    memberId: text('member_id'),
    /** The provider's own id of that sign-in, by which it ends it. */
    providerSessionId: text('provider_session_id'),
    /** The provider's refresh token, sealed with the server key of that name. Removed after the sign-in has ended. */
    refreshToken: text('refresh_token'),
    /** When the provider last confirmed the role. */
    roleCheckedAt: integer('role_checked_at'),
    /** When to ask the provider for the role again; null without a refresh token. */
    roleDueAt: integer('role_due_at'),
    /** The credential that made it; it ends with that one. */
    parentId: text('parent_id'),
    createdAt: integer('created_at').notNull(),
    lastUsedAt: integer('last_used_at').notNull(),
    expiresAt: integer('expires_at'),
    /** How long it may go unused. */
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

/** One row. Its version moves with every credential or member that changes, so that every process hears of it. */
export const access = sqliteTable('access', {
  id: integer('id').primaryKey(),
  version: integer('version').notNull().default(0),
});

/**
 * Sessions whose runner calls them by an id that a session of another agent has: `alias`. To everybody else they go by
 * `sessionId`. See lib/server/ingest/session-aliases.ts.
 */
export const sessionAliases = sqliteTable(
  'session_aliases',
  {
    sessionId: text('session_id').primaryKey(),
    agentId: text('agent_id').notNull(),
    alias: text('alias').notNull(),
  },
  (table) => [uniqueIndex('session_aliases_by_alias').on(table.alias, table.agentId)],
);

/** Random keys that the server uses itself, by what they are for. Written once and never sent: see server-keys.ts. */
export const serverKeys = sqliteTable('server_keys', {
  name: text('name').primaryKey(),
  key: blob('key', { mode: 'buffer' }).notNull(),
});

/** People who have signed in with the identity provider. */
export const members = sqliteTable(
  'members',
  {
    id: text('id').primaryKey(),
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    name: text('name').notNull(),
    email: text('email'),
    role: text('role').$type<Role>().notNull(),
    /** An admin's word, which counts for more than the provider's groups. */
    givenRole: text('given_role').$type<Role>(),
    createdAt: integer('created_at').notNull(),
    lastSignInAt: integer('last_sign_in_at').notNull(),
    /** Since when the person may not come in, whatever the provider says. */
    blockedAt: integer('blocked_at'),
  },
  (table) => [uniqueIndex('members_by_subject').on(table.issuer, table.subject)],
);

/**
 * What people and programs did, in order and without a hole. Each entry has the digest of the one before. Retention
 * removes the oldest: see audit_start.
 */
export const audit = sqliteTable(
  'audit',
  {
    /** From 1. */
    number: integer('number').primaryKey(),
    at: integer('at').notNull(),
    /** Who: a name, what kind of principal, its role and its credential. */
    actor: text('actor').notNull(),
    actorKind: text('actor_kind').notNull(),
    role: text('role').notNull(),
    credentialId: text('credential_id').notNull(),
    action: text('action').notNull(),
    /** Of what: an agent, a session, a credential, a member. */
    agentId: text('agent_id'),
    sessionId: text('session_id'),
    target: text('target').notNull(),
    /** SHA-256 of what was sent with it. */
    digest: text('digest').notNull(),
    /** Where from: the page's origin, or the address of a program. */
    origin: text('origin').notNull(),
    result: text('result').notNull(),
    /** How many it stands for. */
    times: integer('times').notNull().default(1),
    /** SHA-256 over this entry and the hash of the one before. */
    hash: text('hash').notNull(),
  },
  (table) => [
    index('audit_by_action').on(table.action, table.number),
    index('audit_by_credential').on(table.credentialId, table.number),
    index('audit_by_session').on(table.sessionId, table.number).where(sql`session_id IS NOT NULL`),
    index('audit_by_agent').on(table.agentId, table.number).where(sql`agent_id IS NOT NULL`),
  ],
);

/** One row, once retention has removed entries of the audit: the last of them. The chain goes on from there. */
export const auditStart = sqliteTable('audit_start', {
  id: integer('id').primaryKey(),
  number: integer('number').notNull(),
  hash: text('hash').notNull(),
  removedAt: integer('removed_at').notNull(),
});

/** What a credential was refused again soon after it was noted, until the audit tells how often. */
export const refusals = sqliteTable(
  'refusals',
  {
    credentialId: text('credential_id').notNull(),
    action: text('action').notNull(),
    result: text('result').notNull(),
    /** When the audit tells. */
    dueAt: integer('due_at').notNull(),
    /** How often since the audit told of it last. */
    times: integer('times').notNull(),
    /** The newest of them, as its entry tells it. */
    entry: json<NewAuditEntry>('entry').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.credentialId, table.action, table.result] }),
    index('refusals_by_due').on(table.dueAt),
  ],
);

/** Which runner processes of an agent came in which order, as the server saw it. */
export const runnerGenerations = sqliteTable(
  'runner_generations',
  {
    agentId: text('agent_id').notNull(),
    runnerId: text('runner_id').notNull(),
    generation: integer('generation').notNull(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.runnerId] })],
);

/** The JSON part of a row in the fleet's tables: everything that has no column. */

type AgentColumn = 'id' | 'lastSeenAt' | 'updatedPosition';
type SessionColumn =
  | 'id'
  | 'agentId'
  | 'state'
  | 'lastEventAt'
  | 'stateDueAt'
  | 'answerBy'
  | 'insightCount'
  | 'otherFailureCount'
  | 'wakeRule'
  | 'updatedPosition';
type TaskColumn = 'sessionId' | 'agentId' | 'status' | 'startedAt' | 'endedAt' | 'position';
type ObligationColumn = 'sessionId' | 'agentId' | 'state' | 'owedSince' | 'isOverdue' | 'position';

type AgentBody = Omit<AgentSummary, AgentColumn>;
type SessionBody = Omit<SessionSummary, SessionColumn>;
/** The id is here too, exactly as sent: the column may hold it with changes that SQLite needs (`columnText`). */
type TaskBody = Omit<Task, TaskColumn>;
type InboxBody = Omit<
  InboxItem,
  keyof InboxMarks | 'id' | 'kind' | 'agentId' | 'sessionId' | 'since' | 'updatedPosition'
>;
type ObligationBody = Omit<Obligation, ObligationColumn>;
