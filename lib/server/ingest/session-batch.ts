import type { WakeRule } from '@interlude/protocol/commands';
import type { Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { StatusTold } from '@interlude/protocol/projections/status-told';
import type { Arrangement, Obligation, Task } from '@interlude/protocol/read-models';
import type { EventRow, SessionChange, SessionMemory } from '@/lib/server/event-log/batch-rows';
import type { SaidRow } from '@/lib/server/event-log/read-batch-state';
import type { DerivedRequests } from './derived-requests';

/** How many failures there are, and how many of them are not hooks that died. */
export interface FailureTally {
  all: number;
  other: number;
}

export interface SessionEntry {
  entry: EventEntry;
  row: EventRow;
  /** Its parts, if it is a snapshot. As many positions after its own are reserved for the parts that are news. */
  parts: readonly SnapshotPart[];
}

export interface SessionBatch {
  id: string;
  agentId: string;
  /** Null before its first row. */
  before: SessionChange | null;
  startedAt: number;
  /** Its events of this batch in position order, each with the row it becomes. */
  entries: SessionEntry[];
  /** Requests that its agent opened, and those that follow from its other events. */
  requests: DerivedRequests;
  /** Failures around it in this batch. */
  failures: FailureTally;
  /** How many more of its records are in quarantine after this batch, those that were settled or removed taken off. */
  quarantined: number;
  /** The position of the newest failure that ever marked it. */
  markedUpTo: number;
  /** Its states according to status records, each with the counter when the record came. */
  told: { position: number; status: StatusTold }[];
  /** State and lists of the last status record; null if the same record may be news by now. */
  statusKey: string | null;
  listsKey: string | null;
  /** How its log has the end of its process; null if it has none, or the process is back. */
  end: NonNullable<SessionMemory['end']> | null;
  /** The agent itself said something about it in this batch, if only that it is still there. */
  isHeard: boolean;
  /** Time may have changed its state. */
  isDue: boolean;
  /** The 99th percentile of its kind's silences; null where it was not computed. */
  usualSilenceMs: number | null;
  /** Messages to which a reply is owed for too long by now. */
  overdue: string[];
  /** Positions of the tasks whose results were not delivered in time. */
  undelivered: Position[];
  /** What a person makes of it now; null if nothing changes. */
  arrangement: Arrangement | null;
  /** When its agent is to be woken from now on; null if nothing changes. */
  wakeRule: { when: WakeRule | null } | null;
}

/** What is stored about a session that its new events may touch. */
export interface Stored {
  tasks: readonly Task[];
  obligations: readonly Obligation[];
  said: readonly SaidRow[];
  /** The id by which its runner knows it, where that is another. */
  alias: string | null;
  /** The counter before the batch: rows up to it are in the database. */
  position: number;
}
