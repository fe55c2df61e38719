import type { FileEdit, PlanEntry, RemovedTurns, RequestOption } from './ag-ui';
import type { Observations, SessionState, StateEvidence } from './agent-state';
import type { Attachment } from './attachments';
import type { CommandType, MessageDelivery, Sender, WakeRule } from './commands';
import type { LogMarker } from './envelope';
import type { DesiredLogLevel, LogLevel } from './log-levels';
import type { Position } from './position';
import type { TaskOutput } from './task-output';
import type { TurnHeader, TurnKind, TurnPlaces } from './turn-places';

/** The views every page and GET route shows. Times are epoch milliseconds. */

/**
 * One stretch of agent work. `none` is what happened outside any turn: it keeps its place and is never glued to a turn
 * it does not belong to.
 */
export interface Turn extends TurnHeader {
  /** The newest, and before them older requests: at most MAX_TURN_ITEMS, of at most MAX_TURN_TEXT. */
  items: Item[];
  /** How many items of the turn are left out of them. Missing if none are. */
  omitted?: number;
}

export type Item = MessageItem | ReasoningItem | ToolCallItem | TaskItem | RequestItem | PlanItem | NoticeItem;
export type ItemKind = Item['kind'];

interface ItemBase {
  id: string;
  /** Where the item began. Items of a turn are ordered by it. */
  position: Position;
  at: number;
}

/** A streaming text, of which at most MAX_ITEM_TEXT is shown. */
interface StreamedItem extends ItemBase {
  /** How many more UTF-16 code units there are. Left out if all of it is shown. */
  cut?: number;
}

export interface MessageItem extends StreamedItem {
  kind: 'message';
  role: 'user' | 'assistant' | 'system';
  /** Who wrote it, where the agent says so. */
  name: string | null;
  text: string;
  streaming: boolean;
  /** How far a message to the agent has come; null if it did not go through Interlude, and only the agent tells of it. */
  delivery: MessageDelivery | null;
  /** Why it failed. */
  deliveryReason: string | null;
  /** The messages this one answers. */
  replyTo: string[];
  /** The name its sender's browser gave it; null if it did not go through Interlude. */
  clientId: string | null;
  /** What it carries besides its text; left out if that is nothing. */
  attachments?: Attachment[];
}

export interface ReasoningItem extends StreamedItem {
  kind: 'reasoning';
  text: string;
  streaming: boolean;
}

export interface ToolCallItem extends StreamedItem {
  kind: 'tool-call';
  name: string;
  /** The arguments once they are whole JSON, within the limits of a record; else null. */
  args: unknown;
  /** The arguments as streamed. */
  argsText: string;
  result: string | null;
  /** `unknown`: its turn ended, and no result came. */
  status: 'running' | 'completed' | 'failed' | 'unknown';
  endedAt: number | null;
  /** What it changed in files, where its agent tells that with the result. Left out if it does not. */
  edits?: FileEdit[];
}

/** A moment in a task's life, at its place in the transcript. The task itself is in the tasks read model. */
export interface TaskItem extends ItemBase {
  kind: 'task';
  runId: string | null;
  phase: 'started' | TaskEnd;
  /** The session whose runner told of it, where that is another one. */
  reportedBy?: string;
}

export interface RequestItem extends ItemBase {
  kind: 'request';
  requestKind: 'permission' | 'question';
  toolCallId: string | null;
  toolName: string | null;
  title: string;
  input: unknown;
  outcome: 'allowed' | 'denied' | 'answered' | 'expired' | 'cancelled' | 'unknown' | null;
  message: string | null;
  resolvedAt: number | null;
  /** The answers that the agent offers to a permission, in its order. Left out if it offers no more than yes and no. */
  options?: RequestOption[];
  /** Until when it can be answered, on the server's clock; null: it does not expire. */
  expiresAt: number | null;
  /**
   * Of session, id, tool, input and `openedPosition`. Whoever answers for a person sends it with the answer, which then
   * reaches this request or none. HMAC-SHA-256 of it under a key of the server for redacted readers. Null for readers who may
   * not answer, and if the request was opened before servers computed it.
   */
  digest: string | null;
  /** The position at which it was opened; it has asked the same ever since. */
  openedPosition: Position | null;
  /** What a person answered, while it is on its way and when it could not be given. */
  answer: RequestAnswer | null;
}

export interface RequestAnswer {
  commandId: string;
  /** Of a permission. */
  behavior: 'allow' | 'deny' | null;
  /** Which of the options of the request it chose. Left out if none. */
  optionId?: string;
  state: 'queued' | 'done' | 'failed';
  reason: string | null;
}

/** What the agent means to do, and how far it has come: as it was told last in this turn, where it was told first. */
export interface PlanItem extends ItemBase {
  kind: 'plan';
  entries: PlanEntry[];
  /** How many more there are. Left out if none are. */
  omitted?: number;
}

export interface NoticeItem extends ItemBase {
  kind: 'notice';
  text: string;
  tone: 'info' | 'warning' | 'error';
  /**
   * `lost`, `quarantined`, `session-ended`, `command`, `waived`, `accepted`, `runner-away`, `runner-back`, `task-elsewhere`,
   * `parked-assigned`, `parked-discarded`, or null.
   */
  code: string | null;
  /** The session it speaks of, where that is another one. */
  ofSessionId?: string;
  /** If `code` is `command`: what was asked of the agent, and how it went. */
  command: {
    id: string;
    type: CommandType | (string & {});
    state: 'queued' | 'done' | 'failed';
    taskId: string | null;
  } | null;
}

export type TaskEnd = 'completed' | 'failed' | 'stopped' | 'lost';
export type TaskStatus = 'running' | TaskEnd;

/** Background work that outlives the tool call that started it. Known by `id` and, where ids are re-used, `runId`. */
export interface Task {
  id: string;
  runId: string | null;
  sessionId: string;
  agentId: string;
  /** `shell`, `subagent`, or the agent's own word for it. */
  kind: string;
  description: string;
  status: TaskStatus;
  summary: string | null;
  exitCode: number | null;
  error: string | null;
  outputFile: string | null;
  /** Something of what it writes was told (`GET …/tasks/:taskId/output`). */
  hasOutput: boolean;
  usage: { totalTokens: number | null; toolUses: number | null; durationMs: number | null } | null;
  lastToolName: string | null;
  toolCallId: string | null;
  parentTaskId: string | null;
  startedAt: number;
  endedAt: number | null;
  startedInTurnId: string | null;
  answeredInTurnId: string | null;
  /** The session whose runner told how it ended, where that is another one and its own has not told it since. */
  reportedBy: string | null;
  /** Who said that it belongs to this session, where nothing proved it. */
  assignedBy: string | null;
  /** The turn of another session that was told of its end. */
  toldElsewhere: { sessionId: string; turnId: string } | null;
  /**
   * Server time of its end, if its agent was idle and no turn has taken up the result since. Left out once that is
   * settled.
   */
  unansweredSince?: number;
  /** The result was not taken up in time. */
  isUndelivered?: true;
  /** The message from the dashboard that carries its result to the agent. */
  carriedBy?: string;
  /**
   * Set while it is `lost` although nobody said so: its runner does not list it any more (`unlisted`), or nothing is heard
   * of that (`unheard`). Whatever is told of it counts for more, and it runs again if it is listed again.
   */
  presumed?: 'unlisted' | 'unheard';
  /** Where its first event stands: the order of tasks, and their identity within the session. */
  position: Position;
}

/** What people have made of a session, for themselves: its agent is not told. */
export interface Arrangement {
  /** What they call it, in place of its title. */
  name: string | null;
  pinnedAt: number | null;
  /** Until another turn begins in it. */
  archivedAt: number | null;
  /** The `stateSince` of what they have seen: a failure that is not this one is news. */
  seenState: number | null;
}

/** `PUT /sessions/:id/arrangement` */
export interface ArrangementAnswer {
  arrangement: Arrangement;
  position: Position;
}

/** Nothing is heard of it any more: its runner has gone, or its agent, which has none, is silent, or can't be reached. */
export interface SessionAway {
  /** When it was missed, on the server's clock. */
  since: number;
  /** Its last word about the session. */
  lastHeardAt: number;
  /** The agent is not a child of its runner and goes on unobserved. Otherwise it has most likely ended with it. */
  agentGoesOn: boolean;
  /** Its agent has no stream of commands that could end: it has sent nothing for too long. */
  isSilent?: true;
  /** Its runner is there and can't reach the agent, which it did not start. `since` is when it first tried in vain. */
  isUnreachable?: true;
  /** Why the agent can't be reached, in its runner's words. */
  reason?: string;
  /** What it was when it was last heard of, where that has been given up or closed since. */
  last?: SessionState;
}

export interface SessionSummary {
  id: string;
  agentId: string;
  /** The first line of the first user message; until there is one, null. */
  title: string | null;
  state: SessionState;
  /** Why, in a few words, where the state alone does not tell. */
  stateReason: string | null;
  evidence: StateEvidence;
  /** All that the state follows from by `resolveState`, with `away` and `lastHeardAt`. */
  observations: Observations;
  /** When time alone may change the state, on the server's clock; null: never. */
  stateDueAt: number | null;
  /** When the server heard of it. */
  stateSince: number;
  /** Whether a message reaches it while it is idle. Left out where that goes without saying. */
  wakeable?: boolean;
  openTurnId: string | null;
  /** Whether the newest turn was started by the agent itself. */
  lastTurnKind: TurnKind | null;
  turnCount: number;
  runningTaskCount: number;
  pendingRequestCount: number;
  /** Until when the first of these requests can be answered, on the server's clock. Left out if none expires. */
  answerBy?: number;
  lostCount: number;
  /** Records of it that are in quarantine and that nobody has settled, from before it began too. */
  quarantinedCount: number;
  /** How many messages still wait for a reply. */
  owedCount: number;
  /** Those of them that are owed for too long. */
  overdueCount: number;
  /** Failures around it that nobody has looked at yet. */
  insightCount: number;
  /** How many of them are not hooks that died. */
  otherFailureCount: number;
  /** The beginning of the newest assistant message. */
  lastText: string | null;
  /** Null while there are signs of life, and once its process has ended. */
  away: SessionAway | null;
  /** The last task that failed, with the server's time. Left out while none has. */
  failedTask?: Pick<Task, 'id' | 'description' | 'exitCode' | 'position'> & { at: number };
  /** The oldest turns, which retention has removed. Left out while none was. */
  removed?: RemovedHistory;
  arrangement: Arrangement;
  /**
   * When its runner wakes the agent without being asked each time, as people want it; null if nobody has said, or the
   * runner does not do it.
   */
  wakeRule: WakeRule | null;
  startedAt: number;
  /** When the server received its newest event. */
  lastEventAt: number;
  /** When the agent itself last told something of the session, on the server's clock. */
  lastHeardAt: number;
  updatedPosition: Position;
}

export interface AgentSummary {
  id: string;
  /** The runner's kind (`claude`, `acp`, …), if a status record said so. */
  kind: string | null;
  /** The newest status record the runner sent, unchanged. */
  status: Record<string, unknown> | null;
  statusAt: number | null;
  sessionCount: number;
  /** How many of its sessions are in each state. */
  sessionStates: Record<SessionState, number>;
  /** Of how many of those that have exited the process has failed: they broke off. */
  brokenOffCount: number;
  /** How many tasks run, over all its sessions. */
  runningTaskCount: number;
  lostCount: number;
  /** With those that are parked, without those that somebody has settled. */
  quarantinedCount: number;
  /** How many records about tasks wait for somebody to say whose they are. */
  parkedCount: number;
  /** How many replies the agent owes, over all its sessions. */
  owedCount: number;
  /** Those of them that are owed for too long. */
  overdueCount: number;
  /** Failures around it that nobody has looked at yet. */
  insightCount: number;
  /** How many of them are not hooks that died. */
  otherFailureCount: number;
  logLevel: AgentLogLevel;
  /** Whether a runner listens for commands. While it is away, commands wait. */
  connection: 'connected' | 'away';
  /** When the connection was made, or lost; null when there never was one. */
  connectedSince: number | null;
  /** The runner that listens, or listened last. */
  runnerId: string | null;
  /** When a person put it away, as one that is not coming back; null again with its next sign of life. */
  retiredAt: number | null;
  firstSeenAt: number;
  lastSeenAt: number;
  updatedPosition: Position;
}

/** The level an agent's runner writes its log at, and the one that was asked of it. */
export interface AgentLogLevel {
  /** The level the runner last said it writes; null before it has said so. */
  level: LogLevel | null;
  /** When the server first heard that it writes at that level. */
  since: number | null;
  /** Who set it, according to the runner; null: it is the runner's default. */
  by: string | null;
  /** When the runner goes back to its default, on its own clock; null: it does not. */
  until: number | null;
  /** Its default: what it goes back to. */
  base: LogLevel | null;
  /** Null: nothing is asked of it. */
  desired: DesiredLogLevel | null;
}

/** What a log line says about an agent for machines: a failure that needs a person's attention, or another signal. */
export interface Insight {
  /** The position of its log line. */
  position: Position;
  agentId: string;
  sessionId: string | null;
  /** `hook_fatal`, `outbox_poisoned`, or any other name the runner gives it. */
  signal: string;
  value: number | string | boolean | null;
  outcome: string | null;
  /** What it is about: the hook that died. */
  source: string;
  detail: string;
  /** It counts in `insightCount` until somebody has seen it. */
  isFailure: boolean;
  occurredAt: number;
  seenAt: number | null;
}

/** `POST /agents/:id/insights/seen` */
export interface InsightsSeen {
  /** How many this request marked. */
  seen: number;
  /** How many are left. */
  unseen: number;
  position: Position;
}

/** One outbox, as the server knows it. */
export interface ProducerSummary {
  id: string;
  epoch: number;
  agentId: string | null;
  lastSeq: number;
  accepted: number;
  duplicates: number;
  gaps: number;
  rejected: number;
  lost: number;
  /** `occurredAt - receivedAt` of the newest record whose clocks disagreed by more than CLOCK_SKEW_MS, else null. */
  clockSkewMs: number | null;
  lastSeenAt: number;
}

export interface QuarantinedRecord {
  position: Position;
  producerId: string;
  epoch: number;
  seq: number;
  agentId: string | null;
  sessionId: string | null;
  code: string;
  message: string;
  /** What was sent; null if it is longer than 2 KiB: then `excerpt` has the beginning. */
  record: unknown;
  /** The beginning of a long record, as JSON text that breaks off; null if `record` has all of it. */
  excerpt: string | null;
  /** The record's size as JSON, in bytes. */
  size: number;
  receivedAt: number;
  /** Null if it can only be looked at. */
  parked: ParkedState | null;
}

/** A record about a task that can't be traced to one session. */
export interface ParkedState {
  state: 'parked' | 'assigned' | 'discarded';
  taskId: string;
  taskRunId: string | null;
  /** Null while it is parked. */
  settledAt: number | null;
  settledBy: string | null;
  /** Why it was discarded. */
  reason: string | null;
  /** Where it was assigned to. */
  assignedSessionId: string | null;
}

/** `GET /agents/:id/parked`: of one state, the oldest first. */
export interface ParkedList {
  position: Position;
  /** There are newer ones: ask `after` the last. */
  hasMore: boolean;
  records: QuarantinedRecord[];
}

/** The oldest turns of a session that retention has removed, and when it last did. */
export interface RemovedHistory extends RemovedTurns {
  at: number;
}

export interface TranscriptPage {
  /** How many secrets are left out. Missing for a reader who is told everything. */
  redacted?: number;
  position: Position;
  /** There are older turns: read them with `before=<position of the first turn>`. */
  hasMore: boolean;
  turns: Turn[];
  /** The oldest turns were removed; they are not counted by `hasMore`. Left out while none was. */
  removed?: RemovedHistory;
  /**
   * On the newest page: what the turn projection remembers at `position`, so that a client goes on folding live events
   * exactly where the server stands. Opaque to everybody else.
   */
  places?: TurnPlaces;
}
/** What ran in a session at a time. */
export interface TurnAt {
  position: Position;
  /** The turn that ran then, or else the last one that had begun; null before the first. */
  turnId: string | null;
  /** Whether that turn still ran. */
  running: boolean;
  /** The tasks that ran then, last begun first. */
  taskIds: string[];
}
/** A reply that an agent owes, or owed. Known by `sessionId` and `messageId`. */
export interface Obligation {
  messageId: string;
  sessionId: string;
  agentId: string;
  from: Sender;
  /** The message's beginning, up to MAX_OBLIGATION_TEXT. */
  text: string;
  sentAt: number;
  /** Since when it is owed, on the server's clock. */
  owedSince: number;
  /** It is owed for longer than the server allows. Stays as it was when it is settled. */
  isOverdue: boolean;
  state: 'owed' | 'answered' | 'waived';
  /** What may have answered it without saying so; a person decides. Null if nothing did. */
  candidate: ReplyCandidate | null;
  /** When it was answered or waived, on the server's clock. */
  settledAt: number | null;
  /** What settled it; null while it is owed. */
  clearedBy: ClearedBy | null;
  /** The turn that answered it. */
  answeredInTurnId: string | null;
  /** Why it was waived. */
  reason: string | null;
  /** Where the message ended: the order of obligations. */
  position: Position;
}
/** A text that the agent wrote after it had the message, in a turn that did not name it. */
export interface ReplyCandidate {
  messageId: string;
  turnId: string;
  /** Where it began. Those that were proposed by an older server have none. */
  position?: Position;
  /** Its beginning, up to MAX_OBLIGATION_TEXT. */
  text: string;
}

/**
 * - `turn`: a turn that was about the message has finished
 * - `reply`: a text that says it answers the message
 * - `accepted`: a person took a text for the answer
 * - `waived`: nobody waits any more
 * - `undelivered`: the agent never got the message
 */
export type ClearedBy = 'turn' | 'reply' | 'accepted' | 'waived' | 'undelivered';

/** `GET /sessions/:id/obligations`: what is owed, oldest first, and what was settled last, newest first. */
export interface SessionObligations {
  position: Position;
  owed: Obligation[];
  settled: Obligation[];
}

/** `GET /agents/:id/reply-obligations`: what is owed, oldest first. */
export interface ObligationList {
  position: Position;
  obligations: Pick<
    Obligation,
    'messageId' | 'sessionId' | 'from' | 'text' | 'sentAt' | 'owedSince' | 'isOverdue' | 'candidate'
  >[];
}
export interface TaskList {
  position: Position;
  /** In the order they began, at most 1,000: those that run, then the newest of the others. */
  tasks: Task[];
  /** How many are not listed. Left out if all are. */
  omitted?: number;
}
/** One task with what its subagent said and did. */
export interface TaskDetail {
  /** How many secrets are left out. Missing for a reader who is told everything. */
  redacted?: number;
  position: Position;
  task: Task;
  items: Item[];
}
/** What a run of a task has written. */
export interface TaskOutputDetail {
  /** How many secrets are left out. Missing for a reader who is told everything. */
  redacted?: number;
  position: Position;
  /** The run's own: `Task.position`. */
  taskPosition: Position;
  /** Null while nothing of it was told. */
  output: TaskOutput | null;
}

export interface SessionList {
  position: Position;
  /** All that are not done and the newest of those that are, or a page of them; 1,000 at most. */
  sessions: SessionSummary[];
  /** There are sessions that are not listed. */
  hasMore: boolean;
  /** Where the next page begins, as `after` takes it; opaque, null at the end. */
  next: string | null;
  /**
   * How many sessions there are in each state that pass the filters, listed or not; up to 100,000 each, 1,000 of those
   * searched for.
   */
  counts: Record<SessionState, number>;
}
/** `GET /sessions/:id/delivery`: whether everything that was told of a session is there, and what is not. */
export interface SessionDelivery {
  position: Position;
  /** The outboxes that have written to it, the one heard of last first, at most 20. */
  producers: ProducerSummary[];
  /** What is missing from it, the newest first, at most 100. */
  missing: MissingRecords[];
  /** How many records were declared lost, and how many are in quarantine, listed or not. */
  lostCount: number;
  quarantinedCount: number;
  /** How many records of these outboxes are in quarantine that name no session: any of them may be of this one. */
  unnamedCount: number;
  /** How many records its runner says are still to come, and when it said so; null if it does not say. */
  waiting: { count: number; at: number } | null;
}
export interface MissingRecords {
  kind: 'lost' | 'quarantined';
  /** Where the log says that they were lost; of a quarantined record its own. */
  position: Position;
  at: number;
  count: number;
  /** Of a quarantined record. */
  seq: number | null;
  /** Why, in the outbox's or the server's words. */
  reason: string;
}
export interface SessionDetail {
  position: Position;
  session: SessionSummary;
}
/** `GET /sessions/:id/requests/:requestId`: what is asked, as its turn shows it. */
export interface RequestDetail {
  /** How many secrets are left out. Missing for a reader who is told everything. */
  redacted?: number;
  position: Position;
  request: RequestItem;
  /** The turn it stands in. */
  turnId: string | null;
}
export interface AgentList {
  position: Position;
  agents: AgentSummary[];
  /** Where the next page begins, as `after` takes it; opaque, null at the end. */
  next: string | null;
  /** How many agents pass the filter, listed or not; counted up to 100,000. */
  count: number;
}
export interface AgentDetail {
  position: Position;
  agent: AgentSummary;
  /** The 100 that were heard of last. */
  producers: ProducerSummary[];
  /** How many outboxes have ever delivered for it. */
  producerCount: number;
  /** The 100 with the newest events. */
  sessions: SessionSummary[];
  /** Where the next page of them begins, as `after` of `GET /sessions?agent=` takes it; opaque, null at the end. */
  nextSessions: string | null;
  quarantine: QuarantinedRecord[];
  /** The oldest 50 parked records; `agent.parkedCount` counts all. */
  parked: QuarantinedRecord[];
  /** The newest 50 failures and the newest 50 others. */
  insights: Insight[];
}
/** One line of an agent's log. */
export interface LogLine {
  position: Position;
  /** Its number in the agent's log, dense from 1: how many lines stand between two is their difference. */
  line: number;
  occurredAt: number;
  level: LogLevel;
  component: string;
  message: string;
  /** How many secrets the runner took out of it, if any. */
  redacted?: number;
  /** What the line marks, if it is a marker. */
  marker?: LogMarker;
}
/** Lines of an agent's log, ascending. */
export interface LogPage {
  position: Position;
  /** There are more lines in the direction asked for: newer ones with `after`, else older ones. */
  hasMore: boolean;
  /** There may be newer lines than those of the page. */
  hasNewer: boolean;
  lines: LogLine[];
  /** The log as a whole, whatever the page was asked to hold. */
  log: LogExtent;
  /** A search that ran out of time came this far: continue with `before` or `after` this position. */
  searchedTo?: Position;
}
/** The lines of a log that are kept: dense, from the first to the last. */
export interface LogExtent {
  firstLine: number;
  /** The number of the newest line; below `firstLine` while there are none. */
  lastLine: number;
  lines: number;
  /** UTF-8 bytes of their messages. */
  bytes: number;
}
/** The components that write to an agent's log, by name. */
export interface LogComponentList {
  position: Position;
  components: { name: string; lines: number }[];
}
