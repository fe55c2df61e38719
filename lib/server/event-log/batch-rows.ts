import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { ProducerRef } from '@interlude/protocol/envelope';
import type { InboxMarks } from '@interlude/protocol/inbox';
import type { Attention } from '@interlude/protocol/inbox-rules';
import type { AgentSummary, Obligation, ProducerSummary, SessionSummary, Task } from '@interlude/protocol/read-models';
import type { FoldedType, TurnHeader, TurnPlaces } from '@interlude/protocol/turn-places';
import type { agentLogs, events, insights, logLines, quarantine } from '@/db/schema';

/** Everything that one ingest request changes, decided before any write. Positions are numbers of the counter. */
export interface BatchRows {
  source: ProducerRef;
  receivedAt: number;
  /** The counter after this batch. */
  position: number;
  producer: ProducerSummary;
  events: EventRow[];
  folds: StoredFold[];
  logLines: LogLineRow[];
  /** New extents of the logs that the batch writes to. */
  agentLogs: { agentId: string; log: AgentLog }[];
  insights: InsightRow[];
  logComponents: { agentId: string; component: string; lines: number }[];
  quarantine: QuarantineRow[];
  turns: { sessionId: string; header: TurnHeader }[];
  removedTurns: { sessionId: string; turnId: string }[];
  moves: TurnMove[];
  tasks: { task: Task; updatedPosition: number }[];
  sessions: SessionChange[];
  agents: AgentSummary[];
  /** Agents whose `lastSeenAt` is stored without publishing the row. */
  seenAgentIds: string[];
  obligations: { obligation: Obligation; updatedPosition: number }[];
  /** Sessions that became able or unable to reply: the next sweep judges their pending replies again. */
  replyChangedSessionIds: string[];
  /** In position order. */
  inbox: readonly InboxChange[];
  /** Messages that a turn has named, so their commands are done. */
  seenMessages: { sessionId: string; messageIds: string[] }[];
  /** Agents in whose sessions work has started. Their runner counts as missed if none listens. */
  startedAgentIds: string[];
  /** Agents whose runner reports at a known interval although no command stream is open. */
  reportingAgentIds: string[];
  /** Sessions that this producer writes to in this batch. */
  writtenSessionIds: string[];
}

export type InboxChange = { position: number } & (
  | { kind: 'open'; agentId: string; sessionId: string | null; attention: Attention; at: number }
  | { kind: 'done'; id: string; at: number; isHidden: boolean }
  | { kind: 'marked'; id: string; marks: InboxMarks }
);

type Columns<Table extends { $inferSelect: object }, Key extends keyof Table['$inferSelect']> = Pick<
  Table['$inferSelect'],
  Key
>;

/** An event row. `event` supplies its type and name. */
export type EventRow = Columns<
  typeof events,
  'position' | 'sessionId' | 'agentId' | 'seq' | 'occurredAt' | 'entityId' | 'turnId'
> & { event: AgUiEvent };

/**
 * Deltas of earlier batches that are complete now and fold into one row at the position of the last delta. If the last
 * delta is in this batch, `into` is its row, which already holds the text of this batch's deltas.
 */
export interface StoredFold {
  sessionId: string;
  entityId: string;
  type: FoldedType;
  fromPosition: number;
  /** The last position before this batch. */
  upToPosition: number;
  into: EventRow | null;
  /** Number of this batch's deltas in `into`. */
  deltaCount: number;
}

export type LogLineRow = Omit<typeof logLines.$inferSelect, 'receivedAt'>;

/** The extent of an agent's log. */
export type AgentLog = Columns<typeof agentLogs, 'lastLine' | 'bytes'>;

/**
 * The machine-readable part of a log line. `sessionId`: the named session, even if another agent owns it; '' for an
 * invalid id, null for none.
 */
export type InsightRow = Omit<typeof insights.$inferSelect, 'seenAt'>;

/** `task`: the task that the record is about, if the task's owner is unproven. */
export type QuarantineRow = Columns<
  typeof quarantine,
  'position' | 'seq' | 'agentId' | 'sessionId' | 'code' | 'message' | 'record'
> & { task: { id: string; runId: string | null } | null };

interface TurnMove {
  sessionId: string;
  entityId: string;
  fromTurnId: string;
  toTurnId: string;
  /** The one event that moves; null for all events of the entity. */
  position: number | null;
}

export interface SessionChange {
  summary: SessionSummary;
  places: TurnPlaces;
  memory: SessionMemory;
  /** Parts of `memory` that queries filter by. */
  hasEnded: boolean;
  isAway: boolean;
  awayPosition: number | null;
  givesUpAt: number | null;
  seenAt: number | null;
  seenPosition: number;
}

/** State of a session between batches, besides its summary and projection state. JSON. */
export interface SessionMemory {
  /** State of the session projection, opaque here. */
  fold?: unknown;
  /** State of the obligation projection, opaque here. */
  obligations?: unknown;
  /** State of `DerivedRequests`, opaque here. */
  wireRequests?: unknown;
  /** State and lists of the last status record. `listsKey` is absent if unlisted work has started since. */
  statusKey?: string;
  listsKey?: string;
  /** Source of the end of the process: `told` by the agent, `presumed` by ingest from a status record. */
  end?: 'told' | 'presumed' | null;
  /** Requests that the server gave up on while the session was silent. */
  givenUp?: string[];
  /** True if inbox items are derived from this session. */
  hasInbox?: true;
  /** Time of the row's last publication, on the server's clock. */
  announcedAt?: number;
  /** Position of the newest failure that ever marked the session. */
  markedUpTo?: number;
}
