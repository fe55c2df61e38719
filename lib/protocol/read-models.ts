import * as z from 'zod';
import { FileEdit, PlanEntry, RemovedTurns, RequestOption, TurnKind } from './ag-ui';
import { Observations, StateEvidence } from './agent-status';
import { DesiredLogLevel, MessageDelivery, Sender, WakeRule } from './commands';
import { logMarkerSchema } from './envelope';
import { AgentState, Attachment, LogLevel, Position, SessionState } from './field-schemas';
import { TurnHeader, TurnPlaces } from './turn-places';

/**
 * Models that pages show and GET routes return. Times are epoch milliseconds. Import only types where zod must not be loaded:
 * in the browser and in projections.
 */

const redacted = z.number().optional().describe('Secrets left out. Absent for readers who see everything.');

// --- Transcript

const itemBase = {
  id: z.string(),
  position: Position.describe('Start of the item. Items of a turn are ordered by it.'),
  at: z.number(),
};

const streamedItem = {
  ...itemBase,
  cut: z.number().optional().describe('UTF-16 code units beyond those shown. Absent if all are shown.'),
};

export const MessageItem = z.object({
  ...streamedItem,
  kind: z.literal('message'),
  role: z.enum(['user', 'assistant', 'system']),
  name: z.string().nullable().describe('The author, if the agent names one.'),
  text: z.string(),
  streaming: z.boolean(),
  delivery: MessageDelivery.nullable().describe('Delivery state; null for a message not sent through Interlude.'),
  deliveryReason: z.string().nullable().describe('Why delivery failed.'),
  replyTo: z.array(z.string()).describe('The messages it answers.'),
  clientId: z.string().nullable().describe('The id its sender’s browser chose; null if not sent through Interlude.'),
  attachments: z.array(Attachment).optional(),
});
export type MessageItem = z.infer<typeof MessageItem>;

export const ReasoningItem = z.object({
  ...streamedItem,
  kind: z.literal('reasoning'),
  text: z.string(),
  streaming: z.boolean(),
});
export type ReasoningItem = z.infer<typeof ReasoningItem>;

export const ToolCallItem = z.object({
  ...streamedItem,
  kind: z.literal('tool-call'),
  name: z.string(),
  args: z.unknown().describe('The arguments once they are complete JSON within the limits of a record; else null.'),
  argsText: z.string().describe('The arguments as streamed.'),
  result: z.string().nullable(),
  status: z.enum(['running', 'completed', 'failed', 'unknown']).describe('`unknown`: its turn ended without a result.'),
  endedAt: z.number().nullable(),
  edits: z.array(FileEdit).optional().describe('File changes, if the agent reports them with the result.'),
});
export type ToolCallItem = z.infer<typeof ToolCallItem>;

export const TaskEnd = z.enum(['completed', 'failed', 'stopped', 'lost']);
export type TaskEnd = z.infer<typeof TaskEnd>;

export const TaskItem = z
  .object({
    ...itemBase,
    kind: z.literal('task'),
    runId: z.string().nullable(),
    phase: z.enum(['started', ...TaskEnd.options]),
    reportedBy: z.string().optional().describe('The session whose runner reported it, if another one.'),
  })
  .describe('A moment in a task’s life, at its place in the transcript.');
export type TaskItem = z.infer<typeof TaskItem>;

export const RequestAnswer = z
  .object({
    commandId: z.string(),
    behavior: z.enum(['allow', 'deny']).nullable().describe('For a permission.'),
    optionId: z.string().optional().describe('The chosen option of the request.'),
    state: z.enum(['queued', 'done', 'failed']),
    reason: z.string().nullable(),
  })
  .describe('A person’s answer to a request.');
export type RequestAnswer = z.infer<typeof RequestAnswer>;

export const RequestItem = z.object({
  ...itemBase,
  kind: z.literal('request'),
  receivedAt: z
    .number()
    .describe('When the server received the request, on its clock. It could be answered from then on.'),
  requestKind: z.enum(['permission', 'question']),
  toolCallId: z.string().nullable(),
  toolName: z.string().nullable(),
  title: z.string(),
  input: z.unknown(),
  outcome: z.enum(['allowed', 'denied', 'answered', 'expired', 'cancelled', 'unknown']).nullable(),
  message: z.string().nullable(),
  resolvedAt: z.number().nullable(),
  options: z
    .array(RequestOption)
    .optional()
    .describe('Answers that the agent offers to a permission, in its order. Absent if it offers only yes and no.'),
  expiresAt: z.number().nullable().describe('Last moment for an answer, on the server’s clock; null: no expiry.'),
  digest: z
    .string()
    .nullable()
    .describe(
      'Digest of session, id, tool, input and `openedPosition`. Send it with an answer: then the answer applies to this request or to none. For redacted readers, an HMAC-SHA-256 of it under a key of the server. Null for readers who may not answer, and for requests opened before servers computed it.',
    ),
  openedPosition: Position.nullable().describe('Where it was opened. Its content has not changed since.'),
  answer: RequestAnswer.nullable().describe(
    'A person’s answer while it is on its way, or if it could not be delivered.',
  ),
});
export type RequestItem = z.infer<typeof RequestItem>;

export const PlanItem = z
  .object({
    ...itemBase,
    kind: z.literal('plan'),
    entries: z.array(PlanEntry),
    omitted: z.number().optional().describe('Entries left out. Absent if none are.'),
  })
  .describe('The agent’s plan and its progress: the latest state in this turn, at the place of the first.');
export type PlanItem = z.infer<typeof PlanItem>;

export const NoticeItem = z.object({
  ...itemBase,
  kind: z.literal('notice'),
  text: z.string(),
  tone: z.enum(['info', 'warning', 'error']),
  code: z
    .string()
    .nullable()
    .describe(
      '`lost`, `quarantined`, `session-ended`, `command`, `waived`, `accepted`, `runner-away`, `runner-back`, `task-elsewhere`, `parked-assigned`, `parked-discarded`, or null.',
    ),
  ofSessionId: z.string().optional().describe('The other session that it is about.'),
  command: z
    .object({
      id: z.string(),
      type: z.string().describe('A command type.'),
      state: z.enum(['queued', 'done', 'failed']),
      taskId: z.string().nullable(),
    })
    .nullable()
    .describe('If `code` is `command`: the command and its outcome.'),
});
export type NoticeItem = z.infer<typeof NoticeItem>;

export const Item = z.union([MessageItem, ReasoningItem, ToolCallItem, TaskItem, RequestItem, PlanItem, NoticeItem]);
export type Item = z.infer<typeof Item>;
export type ItemKind = Item['kind'];

export const Turn = TurnHeader.extend({
  items: z
    .array(Item)
    .describe(
      'The newest items, preceded by older requests: at most 2,000 items, with at most 4 Mi characters of text.',
    ),
  omitted: z.number().optional().describe('Items left out. Absent if none are.'),
}).describe('One stretch of agent work, or with kind `none` the events outside any turn.');
export type Turn = z.infer<typeof Turn>;

export const RemovedHistory = RemovedTurns.extend({ at: z.number() }).describe(
  'The oldest turns of a session, removed by retention, and the time of the last removal.',
);
export type RemovedHistory = z.infer<typeof RemovedHistory>;

export const TranscriptPage = z.object({
  redacted,
  position: Position,
  hasMore: z.boolean().describe('There are older turns: read them with `before=<position of the first turn>`.'),
  turns: z.array(Turn),
  removed: RemovedHistory.optional().describe('The oldest turns were removed; `hasMore` does not count them.'),
  places: TurnPlaces.optional().describe(
    'On the newest page: the turn projection’s memory at `position`, from which a client continues to fold live events. Opaque.',
  ),
});
export type TranscriptPage = z.infer<typeof TranscriptPage>;

export const TurnAt = z
  .object({
    position: Position,
    turnId: z.string().nullable().describe('The turn running then, else the last one started; null before the first.'),
    running: z.boolean().describe('True if that turn was still running.'),
    taskIds: z.array(z.string()).describe('Tasks running then, last started first.'),
  })
  .describe('Running work of a session at a time.');
export type TurnAt = z.infer<typeof TurnAt>;

export const RequestDetail = z.object({
  redacted,
  position: Position,
  request: RequestItem.describe('The request as its turn shows it.'),
  turnId: z.string().nullable().describe('The turn that shows it.'),
});
export type RequestDetail = z.infer<typeof RequestDetail>;

// --- Tasks

export const TaskStatus = z.enum(['running', ...TaskEnd.options]);
export type TaskStatus = z.infer<typeof TaskStatus>;

export const Task = z
  .object({
    id: z.string(),
    runId: z.string().nullable(),
    sessionId: z.string(),
    agentId: z.string(),
    kind: z.string().describe('`shell`, `subagent`, or the agent’s own word for it.'),
    description: z.string(),
    status: TaskStatus,
    summary: z.string().nullable(),
    exitCode: z.number().nullable(),
    error: z.string().nullable(),
    outputFile: z.string().nullable(),
    hasOutput: z.boolean().describe('Output is available at `GET …/tasks/:taskId/output`.'),
    usage: z
      .object({
        totalTokens: z.number().nullable(),
        toolUses: z.number().nullable(),
        durationMs: z.number().nullable(),
      })
      .nullable(),
    lastToolName: z.string().nullable(),
    toolCallId: z.string().nullable(),
    parentTaskId: z.string().nullable(),
    startedAt: z.number(),
    endedAt: z.number().nullable(),
    startedInTurnId: z.string().nullable(),
    answeredInTurnId: z.string().nullable(),
    reportedBy: z
      .string()
      .nullable()
      .describe('The session whose runner reported the end, unless it is the task’s own or that one has confirmed it.'),
    assignedBy: z
      .string()
      .nullable()
      .describe('The person who assigned it to this session, if ownership was not proven.'),
    toldElsewhere: z
      .object({ sessionId: z.string(), turnId: z.string() })
      .nullable()
      .describe('The turn of another session in which its end was reported to the agent.'),
    unansweredSince: z
      .number()
      .optional()
      .describe('Server time of its end, while its agent was idle and no turn has taken up the result.'),
    isUndelivered: z.literal(true).optional().describe('No turn took up the result in time.'),
    carriedBy: z.string().optional().describe('The message from the dashboard that carries its result to the agent.'),
    presumed: z
      .enum(['unlisted', 'unheard'])
      .optional()
      .describe(
        'Why it is presumed lost: its runner no longer lists it (`unlisted`), or is silent (`unheard`). Any report overrides this, and the task runs again if listed again.',
      ),
    position: Position.describe(
      'Position of its first event. Tasks are ordered by it and known by it within a session.',
    ),
  })
  .describe(
    'Background work that outlives the tool call that started it, known by `id` and, if ids are reused, `runId`.',
  );
export type Task = z.infer<typeof Task>;

export const TaskList = z.object({
  position: Position,
  tasks: z.array(Task).describe('In starting order, at most 1,000: the running ones, then the newest of the others.'),
  omitted: z.number().optional().describe('Tasks not listed. Absent if all are.'),
});
export type TaskList = z.infer<typeof TaskList>;

export const TaskDetail = z
  .object({ redacted, position: Position, task: Task, items: z.array(Item) })
  .describe('One task with the transcript of its subagent.');
export type TaskDetail = z.infer<typeof TaskDetail>;

export const OutputPart = z.object({
  from: z.number().describe('Byte offset in the file. Approximate if the beginning of the part was cut off.'),
  to: z.number(),
  text: z.string(),
});
export type OutputPart = z.infer<typeof OutputPart>;

export const TaskOutput = z
  .object({
    parts: z.array(OutputPart).describe('In file order. Bytes between two parts, and before the first, are not kept.'),
    redacted: z.number().describe('Secrets that the runner removed since the output last started over.'),
    lastAt: z.number().describe('Time of the last write on the runner’s clock, if reported; else of the report.'),
    hasEnded: z.boolean().describe('No more output will come.'),
    error: z.string().nullable().describe('Why the rest could not be read.'),
  })
  .describe('The newest 256 KiB of a background task’s output file.');
export type TaskOutput = z.infer<typeof TaskOutput>;

export const TaskOutputDetail = z.object({
  redacted,
  position: Position,
  taskPosition: Position.describe('`Task.position` of the run.'),
  output: TaskOutput.nullable().describe('Null until some output is reported.'),
});
export type TaskOutputDetail = z.infer<typeof TaskOutputDetail>;

// --- Sessions

export const Arrangement = z
  .object({
    name: z.string().nullable().describe('Shown instead of the title.'),
    pinnedAt: z.number().nullable(),
    archivedAt: z.number().nullable().describe('Cleared when another turn starts.'),
    seenState: z
      .number()
      .nullable()
      .describe('The `stateSince` that a person has seen. A failure with another one is new.'),
  })
  .describe('A session’s name and place in people’s lists. The agent does not see them.');
export type Arrangement = z.infer<typeof Arrangement>;

export const ArrangementResponse = z.object({ arrangement: Arrangement, position: Position });
export type ArrangementResponse = z.infer<typeof ArrangementResponse>;

export const SessionAway = z
  .object({
    since: z.number().describe('When the silence was noticed, on the server’s clock.'),
    lastHeardAt: z.number().describe('The last sign of life.'),
    agentGoesOn: z
      .boolean()
      .describe('The agent is not a child of its runner and continues unobserved. Otherwise it has most likely ended.'),
    isSilent: z
      .literal(true)
      .optional()
      .describe('The agent has no command stream, and has sent nothing for too long.'),
    isUnreachable: z
      .literal(true)
      .optional()
      .describe('The runner is connected but can’t reach its agent, first at `since`.'),
    reason: z.string().optional().describe('Why the agent can’t be reached, in its runner’s words.'),
    last: SessionState.optional().describe('State at the last sign of life, if closed since.'),
  })
  .describe('A session without signs of life: its runner disconnected, or its agent is silent or unreachable.');
export type SessionAway = z.infer<typeof SessionAway>;

const insightCounts = {
  insightCount: z.number().describe('Unseen failures.'),
  otherFailureCount: z.number().describe('Unseen failures that are not dead hooks.'),
};
const replyCounts = {
  owedCount: z.number().describe('Pending replies.'),
  overdueCount: z.number().describe('Pending replies that are overdue.'),
};

export const SessionSummary = z.object({
  id: z.string(),
  agentId: z.string(),
  title: z.string().nullable().describe('First line of the first user message; null before it.'),
  state: SessionState,
  stateReason: z.string().nullable().describe('A short explanation; null if the state explains itself.'),
  evidence: StateEvidence,
  observations: Observations.describe('With `away` and `lastHeardAt`, the whole input of the state rules.'),
  stateDueAt: z
    .number()
    .nullable()
    .describe('When time alone may change the state, on the server’s clock; null: never.'),
  stateSince: z.number().describe('When the server learned of the state.'),
  stateOccurredAt: z
    .number()
    .optional()
    .describe('When the state began, on the server’s clock. Absent unless over a minute before `stateSince`.'),
  isEnding: z
    .literal(true)
    .optional()
    .describe(
      'The runner was asked to end the session. Absent once the command has failed, the session has ended, a turn has started or the runner has disconnected.',
    ),
  wakeable: z
    .boolean()
    .optional()
    .describe('True if a message reaches the session while it is idle. Absent if it does.'),
  openTurnId: z.string().nullable(),
  lastTurnKind: TurnKind.nullable().describe('Kind of the newest turn.'),
  turnCount: z.number(),
  runningTaskCount: z.number(),
  pendingRequestCount: z.number(),
  answerBy: z
    .number()
    .optional()
    .describe('Expiry of the first pending request, on the server’s clock. Absent if none expires.'),
  request: z
    .object({ kind: z.enum(['permission', 'question']), tool: z.string().nullable(), line: z.string() })
    .optional()
    .describe('The first pending request: its tool, and the start of its command, file or question on one line.'),
  lostCount: z.number(),
  quarantinedCount: z.number().describe('Rejected records that are not settled, including any from before it started.'),
  ...replyCounts,
  ...insightCounts,
  lastText: z.string().nullable().describe('Beginning of the newest assistant message.'),
  away: SessionAway.nullable().describe('Null while there are signs of life, and once the process has ended.'),
  failedTask: Task.pick({ id: true, description: true, exitCode: true, position: true })
    .extend({ at: z.number().describe('Server time.') })
    .optional()
    .describe('The last failed task. Absent if none has failed.'),
  removed: RemovedHistory.optional(),
  arrangement: Arrangement,
  wakeRule: WakeRule.nullable().describe('Null if never set, or if the runner does not wake agents.'),
  startedAt: z.number(),
  lastEventAt: z.number().describe('When the server received its newest event.'),
  lastOccurredAt: z
    .number()
    .optional()
    .describe(
      'When its newest event happened, on the runner’s clock. Absent unless over a minute before `lastEventAt`.',
    ),
  lastHeardAt: z.number().describe('When the agent itself last reported on the session, on the server’s clock.'),
  updatedPosition: Position,
});
export type SessionSummary = z.infer<typeof SessionSummary>;

export const SessionList = z.object({
  position: Position,
  sessions: z.array(SessionSummary).describe('All active sessions and the newest others, or one page; at most 1,000.'),
  hasMore: z.boolean().describe('There are sessions that are not listed.'),
  next: z.string().nullable().describe('Cursor for `after`; null at the end.'),
  counts: z
    .record(SessionState, z.number())
    .describe('Matching sessions by state, listed or not. Counted up to 100,000 each, or 1,000 in a search.'),
});
export type SessionList = z.infer<typeof SessionList>;

export const SessionDetail = z.object({ position: Position, session: SessionSummary });
export type SessionDetail = z.infer<typeof SessionDetail>;

export const ProducerSummary = z
  .object({
    id: z.string(),
    epoch: z.number(),
    agentId: z.string().nullable(),
    lastSeq: z.number(),
    accepted: z.number(),
    duplicates: z.number(),
    gaps: z.number(),
    rejected: z.number(),
    lost: z.number(),
    clockSkewMs: z
      .number()
      .nullable()
      .describe('`occurredAt - receivedAt` of the newest record whose clocks differed by over a minute; null if none.'),
    lastSeenAt: z.number(),
  })
  .describe('An outbox as the server knows it.');
export type ProducerSummary = z.infer<typeof ProducerSummary>;

export const MissingRecords = z.object({
  kind: z.enum(['lost', 'quarantined']),
  position: Position.describe('Where the log notes the loss; for a quarantined record, its own position.'),
  at: z.number(),
  count: z.number(),
  seq: z.number().nullable().describe('For a quarantined record.'),
  reason: z.string().describe('In the outbox’s or the server’s words.'),
});
export type MissingRecords = z.infer<typeof MissingRecords>;

export const SessionDelivery = z
  .object({
    position: Position,
    producers: z.array(ProducerSummary).describe('Outboxes that wrote to the session, latest first, at most 20.'),
    missing: z.array(MissingRecords).describe('Missing records, newest first, at most 100.'),
    lostCount: z.number().describe('Records declared lost, listed or not.'),
    quarantinedCount: z.number().describe('Rejected records, listed or not.'),
    unnamedCount: z
      .number()
      .describe('Rejected records of these outboxes that name no session and may belong to this one.'),
    waiting: z
      .object({ count: z.number(), at: z.number() })
      .nullable()
      .describe('Unsent records in the runner’s outbox, and when it reported them; null if it does not report.'),
  })
  .describe('Records received from a session, and missing ones.');
export type SessionDelivery = z.infer<typeof SessionDelivery>;

// --- Pending replies

export const ReplyCandidate = z
  .object({
    messageId: z.string(),
    turnId: z.string(),
    position: Position.optional().describe('Start of the text. Absent if proposed by an older server.'),
    text: z.string().describe('Its first 2,000 characters.'),
  })
  .describe('A text that the agent wrote after it received the message, in a turn that did not name the message.');
export type ReplyCandidate = z.infer<typeof ReplyCandidate>;

export const ClearedBy = z
  .enum(['turn', 'reply', 'accepted', 'waived', 'undelivered'])
  .describe(
    '`turn`: a turn about the message finished. `reply`: a text declared itself the answer. `accepted`: a person accepted a text as the reply. `waived`: the reply is no longer needed. `undelivered`: the agent never received the message.',
  );
export type ClearedBy = z.infer<typeof ClearedBy>;

export const Obligation = z
  .object({
    messageId: z.string(),
    sessionId: z.string(),
    agentId: z.string(),
    from: Sender,
    text: z.string().describe('The first 2,000 characters of the message.'),
    sentAt: z.number(),
    owedSince: z.number().describe('On the server’s clock.'),
    isOverdue: z.boolean().describe('Pending for longer than the server allows. Unchanged once settled.'),
    state: z.enum(['owed', 'answered', 'waived']),
    candidate: ReplyCandidate.nullable().describe('A text that may be the reply; a person decides.'),
    settledAt: z.number().nullable().describe('When it was answered or waived, on the server’s clock.'),
    clearedBy: ClearedBy.nullable().describe('The cause of the settlement; null while pending.'),
    answeredInTurnId: z.string().nullable(),
    reason: z.string().nullable().describe('Why it was waived.'),
    position: Position.describe('End of the message. Pending replies are ordered by it.'),
  })
  .describe('A pending or settled reply, identified by `sessionId` and `messageId`.');
export type Obligation = z.infer<typeof Obligation>;

export const SessionObligations = z.object({
  position: Position,
  owed: z.array(Obligation).describe('Oldest first.'),
  settled: z.array(Obligation).describe('The last settled ones, newest first.'),
});
export type SessionObligations = z.infer<typeof SessionObligations>;

export const ObligationList = z.object({
  position: Position,
  obligations: z
    .array(
      Obligation.pick({
        messageId: true,
        sessionId: true,
        from: true,
        text: true,
        sentAt: true,
        owedSince: true,
        isOverdue: true,
        candidate: true,
      }),
    )
    .describe('Oldest first.'),
});
export type ObligationList = z.infer<typeof ObligationList>;

// --- Agents

export const AgentLogLevel = z
  .object({
    level: LogLevel.nullable().describe('The level that the runner last reported; null before its first report.'),
    since: z.number().nullable().describe('When the server first learned of this level.'),
    by: z
      .string()
      .nullable()
      .describe('The person who set it, according to the runner; null for the runner’s default.'),
    until: z.number().nullable().describe('When the runner returns to its default, on its own clock; null: never.'),
    base: LogLevel.nullable().describe('The runner’s default.'),
    desired: DesiredLogLevel.nullable().describe('Null: nothing is requested.'),
  })
  .describe('The level at which an agent’s runner logs, and the requested one.');
export type AgentLogLevel = z.infer<typeof AgentLogLevel>;

export const LogLevelDetail = AgentLogLevel.extend({
  position: Position,
  levels: z.array(LogLevel).readonly().describe('All levels, the most verbose first.'),
});
export type LogLevelDetail = z.infer<typeof LogLevelDetail>;

export const AgentSummary = z.object({
  id: z.string(),
  kind: z.string().nullable().describe('The runner’s kind (`claude`, `acp`, …), if it reported one.'),
  status: z.record(z.string(), z.unknown()).nullable().describe('The runner’s newest status record, unchanged.'),
  statusAt: z.number().nullable(),
  clockSkewMs: z
    .number()
    .optional()
    .describe(
      'Milliseconds that the runner’s clock is ahead of the server’s (negative: behind), by its newest status record. Absent within a minute.',
    ),
  sessionCount: z.number(),
  sessionStates: z.record(SessionState, z.number()).describe('Sessions by state.'),
  brokenOffCount: z.number().describe('Exited sessions whose process failed.'),
  listedStates: z.record(AgentState, z.number()).describe('Sessions by the state that lists show.'),
  state: AgentState.nullable().describe('The most urgent of these states; null without sessions.'),
  stateSince: z.number().nullable().describe('When `state` last changed, on the server’s clock.'),
  runningTaskCount: z.number().describe('Running tasks of all sessions.'),
  lostCount: z.number(),
  quarantinedCount: z.number().describe('Rejected records that are not settled, including parked ones.'),
  parkedCount: z.number().describe('Records about tasks that must be assigned to a session.'),
  ...replyCounts,
  ...insightCounts,
  logLevel: AgentLogLevel,
  connection: z.enum(['connected', 'away']).describe('`connected`: a runner receives commands. `away`: commands wait.'),
  connectedSince: z.number().nullable().describe('When the connection was made or lost; null if there never was one.'),
  runnerId: z.string().nullable().describe('The connected runner, or the last one.'),
  retiredAt: z.number().nullable().describe('When a person retired the agent. Its next sign of life clears it.'),
  firstSeenAt: z.number(),
  lastSeenAt: z.number(),
  updatedPosition: Position,
});
export type AgentSummary = z.infer<typeof AgentSummary>;

export const AgentList = z.object({
  position: Position,
  agents: z.array(AgentSummary),
  next: z.string().nullable().describe('Cursor for `after`; null at the end.'),
  count: z.number().describe('Matching agents, listed or not, up to 100,000.'),
});
export type AgentList = z.infer<typeof AgentList>;

export const Insight = z
  .object({
    position: Position.describe('Position of its log line.'),
    agentId: z.string(),
    sessionId: z.string().nullable(),
    signal: z.string().describe('`hook_fatal`, `outbox_poisoned`, or another name the runner chose.'),
    value: z.union([z.number(), z.string(), z.boolean()]).nullable(),
    outcome: z.string().nullable(),
    source: z.string().describe('Its subject: the hook that died.'),
    detail: z.string(),
    isFailure: z.boolean().describe('Counts in `insightCount` until a person has seen it.'),
    occurredAt: z.number(),
    seenAt: z.number().nullable(),
  })
  .describe('A machine-readable observation in a log line: a failure that needs attention, or another signal.');
export type Insight = z.infer<typeof Insight>;

export const InsightsSeen = z.object({
  seen: z.number().describe('Insights marked by this request.'),
  unseen: z.number().describe('Unseen insights left.'),
  position: Position,
});
export type InsightsSeen = z.infer<typeof InsightsSeen>;

export const ParkedState = z
  .object({
    state: z.enum(['parked', 'assigned', 'discarded']),
    taskId: z.string(),
    taskRunId: z.string().nullable(),
    settledAt: z.number().nullable().describe('Null while parked.'),
    settledBy: z.string().nullable(),
    reason: z.string().nullable().describe('Why it was discarded.'),
    assignedSessionId: z.string().nullable(),
  })
  .describe('A record about a task that can’t be traced to one session.');
export type ParkedState = z.infer<typeof ParkedState>;

export const QuarantinedRecord = z.object({
  position: Position,
  producerId: z.string(),
  epoch: z.number(),
  seq: z.number(),
  agentId: z.string().nullable(),
  sessionId: z.string().nullable(),
  code: z.string(),
  message: z.string(),
  record: z.unknown().describe('The record as sent; null if longer than 2 KiB.'),
  excerpt: z.string().nullable().describe('Beginning of a longer record, as truncated JSON text.'),
  size: z.number().describe('Bytes of the record as JSON.'),
  receivedAt: z.number(),
  parked: ParkedState.nullable().describe('Null if the record can’t be assigned.'),
});
export type QuarantinedRecord = z.infer<typeof QuarantinedRecord>;

export const ParkedList = z.object({
  position: Position,
  hasMore: z.boolean().describe('There are newer ones: pass the last position as `after`.'),
  records: z.array(QuarantinedRecord).describe('Records in one state, oldest first.'),
});
export type ParkedList = z.infer<typeof ParkedList>;

export const AgentDetail = z.object({
  position: Position,
  agent: AgentSummary,
  producers: z.array(ProducerSummary).describe('The 100 outboxes seen last.'),
  producerCount: z.number().describe('Outboxes that ever delivered for it.'),
  sessions: z.array(SessionSummary).describe('The 100 with the newest events.'),
  nextSessions: z.string().nullable().describe('Cursor for `after` of `GET /sessions?agent=`; null at the end.'),
  quarantine: z.array(QuarantinedRecord),
  parked: z.array(QuarantinedRecord).describe('The 50 oldest parked records; `agent.parkedCount` counts all.'),
  insights: z.array(Insight).describe('The newest 50 failures and the newest 50 others.'),
});
export type AgentDetail = z.infer<typeof AgentDetail>;

// --- Logs

export const LogMarker = logMarkerSchema.describe(
  'A place in a log where its level changed or older lines were removed.',
);

export const LogLine = z
  .object({
    position: Position,
    line: z.number().describe('Number in the agent’s log, consecutive from 1.'),
    occurredAt: z.number(),
    level: LogLevel,
    component: z.string(),
    message: z.string(),
    redacted: z.number().optional().describe('Secrets that the runner removed.'),
    marker: LogMarker.optional().describe('Set if the line is a marker.'),
  })
  .describe('One line of an agent’s log.');
export type LogLine = z.infer<typeof LogLine>;

export const LogExtent = z
  .object({
    firstLine: z.number(),
    lastLine: z.number().describe('Number of the newest line; below `firstLine` if there is none.'),
    lines: z.number(),
    bytes: z.number().describe('UTF-8 bytes of the messages.'),
  })
  .describe('The kept lines of a log, consecutive from first to last.');
export type LogExtent = z.infer<typeof LogExtent>;

export const LogPage = z.object({
  position: Position,
  hasMore: z.boolean().describe('There are more lines in the requested direction: newer with `after`, else older.'),
  hasNewer: z.boolean().describe('There may be lines newer than those of the page.'),
  lines: z.array(LogLine).describe('Oldest first.'),
  log: LogExtent.describe('The whole log, whatever the filter.'),
  searchedTo: Position.optional().describe(
    'Where the search ran out of time: continue with this position as `before` or `after`.',
  ),
});
export type LogPage = z.infer<typeof LogPage>;

export const LogComponentList = z.object({
  position: Position,
  components: z.array(z.object({ name: z.string(), lines: z.number() })).describe('By name.'),
});
export type LogComponentList = z.infer<typeof LogComponentList>;

/** Recent activity of the fleet. Times are epoch milliseconds on the server's clock. */

/** Number of tasks, and of replies, that are measured: the newest. */
export const MAX_MEASURED = 500;

export const DurationStep = z
  .object({ fromMs: z.number(), toMs: z.number().nullable(), count: z.number() })
  .describe('A step of a histogram: durations from `fromMs` to below `toMs`; null: without limit.');
export type DurationStep = z.infer<typeof DurationStep>;

export const Activity = z.object({
  position: Position,
  at: z.number().describe('When it was read, on the server’s clock.'),
  since: z.number().describe('Start of the first minute in `events`.'),
  events: z.array(z.number()).describe('Events received in each minute from `since`; the last minute is incomplete.'),
  tasks: z.array(DurationStep).describe(`Durations of the last ended tasks, up to ${MAX_MEASURED}.`),
  answers: z.array(DurationStep).describe(`Waits for the last replies of people and agents, up to ${MAX_MEASURED}.`),
});
export type Activity = z.infer<typeof Activity>;

const STEPS_MS = [0, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/** A histogram of durations in milliseconds. A negative duration, from a wrong clock, counts in the first step. */
export function durationSteps(durations: readonly number[]): DurationStep[] {
  return STEPS_MS.map((fromMs, index) => {
    const toMs = STEPS_MS[index + 1] ?? null;
    const count = durations.filter((ms) => (index === 0 || ms >= fromMs) && (toMs === null || ms < toMs)).length;
    return { fromMs, toMs, count };
  });
}
