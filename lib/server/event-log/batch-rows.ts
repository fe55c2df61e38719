import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { LogMarker, ProducerRef } from '@interlude/protocol/envelope';
import type { Attention, InboxMarks } from '@interlude/protocol/inbox';
import type { LogLevel } from '@interlude/protocol/log-levels';
import type { AgentSummary, Obligation, ProducerSummary, SessionSummary, Task } from '@interlude/protocol/read-models';
import type { FoldedType, TurnHeader, TurnPlaces } from '@interlude/protocol/turn-places';

/** Everything one ingest request changes, decided before anything is written. Positions are the counter's numbers. */
export interface BatchRows {
  source: ProducerRef;
  receivedAt: number;
  /** The counter after this batch. */
  position: number;
  producer: ProducerSummary;
  events: EventRow[];
  folds: StoredFold[];
  logLines: LogLineRow[];
  /** How far the logs of the agents that wrote lines go now. */
  agentLogs: { agentId: string; log: AgentLog }[];
  insights: InsightRow[];
  /** How many lines each component wrote. */
  logComponents: { agentId: string; component: string; lines: number }[];
  quarantine: QuarantineRow[];
  turns: { sessionId: string; header: TurnHeader }[];
  removedTurns: { sessionId: string; turnId: string }[];
  moves: TurnMove[];
  tasks: { task: Task; updatedPosition: number }[];
  sessions: SessionChange[];
  agents: AgentSummary[];
  /** Agents that were seen, without news for any reader. */
  seenAgentIds: string[];
  obligations: { obligation: Obligation; updatedPosition: number }[];
  /** Sessions that became able or unable to reply: their owed replies are judged again. */
  replyChangedSessionIds: string[];
  /** In the order of their positions. */
  inbox: readonly InboxChange[];
  /** Messages that a turn has named: their commands are done. */
  seenMessages: { sessionId: string; messageIds: string[] }[];
  /** Agents in whose sessions something began: if no runner listens for them, it must count as missed. */
  startedAgentIds: string[];
  /** Agents that are away and for which a runner speaks that says how often it reports. */
  reportingAgentIds: string[];
  /** Sessions this producer has written to in this batch. */
  writtenSessionIds: string[];
}

/** What becomes of an inbox item. */
export type InboxChange = { position: number } & (
  | { kind: 'open'; agentId: string; sessionId: string | null; attention: Attention; at: number }
  | { kind: 'done'; id: string; at: number; isHidden: boolean }
  | { kind: 'marked'; id: string; marks: InboxMarks }
);

export interface EventRow {
  position: number;
  sessionId: string;
  agentId: string;
  seq: number;
  occurredAt: number;
  entityId: string | null;
  turnId: string | null;
  event: AgUiEvent;
}

/**
 * Deltas of earlier batches that are complete now: they become one, at the last delta's position.
 * If that last delta is in this batch, `into` is its row, which already has the text of this batch's deltas.
 */
export interface StoredFold {
  sessionId: string;
  entityId: string;
  type: FoldedType;
  fromPosition: number;
  /** The last position before this batch. */
  upToPosition: number;
  into: EventRow | null;
  /** How many deltas of this batch are in `into`. */
  deltaCount: number;
}

export interface LogLineRow {
  position: number;
  agentId: string;
  occurredAt: number;
  level: LogLevel;
  component: string;
  message: string;
  /** Its number in the agent's log. */
  line: number;
  redacted: number;
  marker: LogMarker | null;
}

/** An agent's log as a whole. */
export interface AgentLog {
  /** The number of its newest line; 0 where there is none. */
  lastLine: number;
  /** UTF-8 bytes of the messages that are kept. */
  bytes: number;
}

/** What a log line says about an agent besides its message. */
export interface InsightRow {
  /** The position of the log line. */
  position: number;
  agentId: string;
  /** The session that it names, even another agent's; '' if that can't be a session's id, null if it names none. */
  sessionId: string | null;
  signal: string;
  value: number | string | boolean | null;
  outcome: string | null;
  source: string;
  detail: string;
  /** A person should look at it. */
  isFailure: boolean;
  occurredAt: number;
}

export interface QuarantineRow {
  position: number;
  seq: number;
  agentId: string | null;
  sessionId: string | null;
  code: string;
  message: string;
  /** Whole, as it came. */
  record: unknown;
  /** The task it is about, if nothing proves whose task that is. */
  task: { id: string; runId: string | null } | null;
}

export interface TurnMove {
  sessionId: string;
  entityId: string;
  fromTurnId: string;
  toTurnId: string;
  /** The one event that moves; null: all of the entity's. */
  position: number | null;
}

export interface SessionChange {
  summary: SessionSummary;
  places: TurnPlaces;
  memory: SessionMemory;
  /** What queries need to find of its memory. */
  hasEnded: boolean;
  isAway: boolean;
  awayPosition: number | null;
  givesUpAt: number | null;
  seenAt: number | null;
  seenPosition: number;
}

/** What must be remembered of a session besides its summary and its places. JSON. */
export interface SessionMemory {
  /** The projection's own, opaque here. */
  fold?: unknown;
  /** What the obligation projection remembers, opaque here. */
  obligations?: unknown;
  /** What is remembered of the requests that follow from what the agent says, opaque here. */
  wireRequests?: unknown;
  /** What its last status record told, and what it listed; that is absent if anything has begun since that it did not. */
  statusKey?: string;
  listsKey?: string;
  /** Who told the end of its process, if that has ended and its log says so: its agent, or ingest by a status record. */
  end?: 'told' | 'presumed' | null;
  /** Its requests that were given up while nothing was heard of it. */
  givenUp?: string[];
  /** Inbox items are kept for it. */
  hasInbox?: true;
  /** When the row was last given a new position, on the server's clock. */
  announcedAt?: number;
  /** The position of the newest failure that ever marked it. */
  markedUpTo?: number;
}
