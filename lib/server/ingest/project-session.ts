import { CUSTOM, customName, customValue, pickId, taskEventId } from '@interlude/protocol/event-fields';
import { addTo } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import {
  NO_OBLIGATIONS,
  type ObligationChange,
  type ObligationFold,
  ObligationLedger,
} from '@interlude/protocol/projections/obligations';
import type { OpenRequest } from '@interlude/protocol/projections/open-requests';
import type { Placement } from '@interlude/protocol/projections/placement';
import { stateAt } from '@interlude/protocol/projections/resolve-state';
import {
  differsForReaders,
  newSession,
  type SessionFold,
  SessionLedger,
} from '@interlude/protocol/projections/session-summary';
import { TaskLedger } from '@interlude/protocol/projections/tasks';
import type { Arrangement, SessionSummary, Task } from '@interlude/protocol/read-models';
import { canReply, hasEnded, hasOpenWork } from '@interlude/protocol/session-predicates';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Yielder } from '@/db/yield-to-loop';
import type { BatchRows, EventRow, SessionChange } from '@/lib/server/event-log/batch-rows';
import { appendDelta, isFoldable, wholeEvent } from '@/lib/server/event-log/fold-deltas';
import type { SessionBatch, Stored } from './batch-sessions';
import { placeSession } from './place-session';
import { type Opening, stampRequests } from './stamp-requests';

/** Minimum interval between published rows of a session while only text grows. */
const QUIET_ANNOUNCE_MS = 5_000;

/** Rows that projecting a batch's sessions produces. */
export interface SessionRows
  extends Pick<
    BatchRows,
    'turns' | 'removedTurns' | 'moves' | 'folds' | 'seenMessages' | 'startedAgentIds' | 'replyChangedSessionIds'
  > {
  /** Requests opened for the first time, or with another question. */
  openings: Opening[];
  /** New events derived from snapshots, each placed after its snapshot. */
  derived: EventRow[];
  /** Rows of this batch that were folded into a later row. */
  foldedAway: Set<EventRow>;
}

/** `before` is null for a new task. */
export interface TaskChange {
  before: Task | null;
  after: Task;
}

export interface SessionProjection {
  change: SessionChange;
  /** True if the row is published with this batch. */
  announces: boolean;
  tasks: TaskChange[];
  obligations: ObligationChange[];
  /** Null if the session had no derived inbox items. */
  before: SessionFold | null;
  after: SessionFold;
}

/**
 * Projects a session's new events, adding to `rows`. Sets each event's `turnId` and `entityId`.
 *
 * @param skewMs milliseconds that the runner’s clock is ahead of the server’s
 */
export async function projectSession(
  session: SessionBatch,
  stored: Stored,
  rows: SessionRows,
  receivedAt: number,
  skewMs: number,
  yielder: Yielder,
): Promise<SessionProjection> {
  const { id: sessionId, agentId } = session;
  const owner = { sessionId, agentId };
  const { tasks, obligations, position: basePosition } = stored;
  const { places, placements, entries, derived } = await placeSession(session, stored, yielder);
  for (const row of derived) rows.derived.push(row);
  const folder = new RowFolder(sessionId, basePosition, rows);
  const turns = new TurnChanges();
  for (const [index, placement] of placements.entries()) {
    const row = entries[index]?.row;
    if (row === undefined) continue;
    // Assigns an id to a chunk that has none.
    row.event = placement.entry.event;
    row.turnId = placement.turnId;
    row.entityId = placement.entityId;
    folder.add(row);
    turns.apply(placement);
    for (const { position, ...move } of placement.moves) {
      rows.moves.push({ sessionId, ...move, position: position === null ? null : Number(position) });
    }
    for (const fold of placement.folds) folder.fold(fold);
    if (yielder.isDue) await yielder.yieldIfDue();
  }

  turns.addTo(rows, sessionId);
  const before = foldOf(session, receivedAt);
  rows.openings.push(
    ...(await stampRequests({ ...owner, alias: stored.alias }, before.pendingRequests, placements, yielder)),
  );
  await yielder.yieldIfDue();
  const taskLedger = new TaskLedger(owner);
  const known = new Map<string, Task>();
  await yielder.each(tasks, (task) => {
    taskLedger.load(task);
    known.set(task.position, task);
  });
  // An agent without a runner counts as back from its first record on.
  if (session.isActive && before.away?.isSilent)
    for (const _ of taskLedger.revertUnheard()) if (yielder.isDue) await yielder.yieldIfDue();
  for (const [index, placement] of placements.entries()) {
    for (const _ of taskLedger.apply(placement)) if (yielder.isDue) await yielder.yieldIfDue();
    const row = entries[index]?.row;
    if (row !== undefined) linkOutput(row, taskLedger);
    if (yielder.isDue) await yielder.yieldIfDue();
  }
  const storedReplies = (session.before?.memory.obligations as ObligationFold | undefined) ?? NO_OBLIGATIONS;
  const replies = new ObligationLedger(storedReplies, obligations, owner);
  await yielder.each(placements, (placement) => replies.apply(placement));
  if (session.overdue.length > 0) replies.setOverdue(session.overdue, canReply(stateAt(before.summary, receivedAt)));
  const obligationChanges = replies.changes();
  const summaryLedger = session.isActive
    ? new SessionLedger(before, receivedAt, skewMs)
    : new SessionLedger(before, null);
  const statuses = [...session.statuses];
  const applyStatusesUpTo = (position: number) => {
    while (statuses[0] !== undefined && statuses[0].position < position) {
      const { status, occurredAt } = statuses.shift() as (typeof statuses)[number];
      summaryLedger.applyStatus(status, receivedAt, occurredAt);
    }
  };
  await yielder.each(placements, (placement) => {
    applyStatusesUpTo(Number(placement.entry.position));
    summaryLedger.apply(placement);
  });
  applyStatusesUpTo(Number.POSITIVE_INFINITY);
  taskLedger.markUndelivered(session.undelivered);
  const taskChanges: TaskChange[] = [];
  await yielder.each(taskLedger.changed(), (after) => {
    const before = known.get(after.position) ?? null;
    taskChanges.push({ before, after });
    summaryLedger.countTask(before, after);
  });
  const after = summaryLedger.result(obligationChanges, receivedAt, session.usualSilenceMs);
  await yielder.yieldIfDue();
  if (session.isActive) after.seenPosition = basePosition;
  after.summary.arrangement = arrangementOf(session, before.summary, after.summary);
  if (session.wakeRule !== null) after.summary.wakeRule = session.wakeRule.when;
  after.summary.quarantinedCount += session.quarantined;
  after.summary.insightCount += session.failures.all;
  after.summary.otherFailureCount += session.failures.other;
  const announcedAt = session.before?.memory.announcedAt;
  const isDue =
    announcedAt === undefined || (Math.abs(receivedAt - announcedAt) >= QUIET_ANNOUNCE_MS && placements.length > 0);
  const announces = isDue || differsForReaders(before, after);
  // From now on, the agent's runner counts as missed if no command stream is open.
  const isStarted =
    session.before === null || before.away !== null || hasEnded(before.summary) || !hasOpenWork(before.summary);
  const { summary, ...fold } = after;
  if (isStarted && session.isActive && !hasEnded(summary)) rows.startedAgentIds.push(agentId);
  if (summary.owedCount > 0 && canReply(summary) !== canReply(before.summary))
    rows.replyChangedSessionIds.push(sessionId);
  return {
    change: {
      summary,
      places,
      memory: {
        fold,
        obligations: replies.fold,
        wireRequests: session.requests.memory,
        announcedAt: announces ? receivedAt : announcedAt,
        ...(session.requests.passedIds.length > 0 ? { givenUp: session.requests.passedIds } : {}),
        ...(hasEnded(summary) ? { end: session.end } : {}),
        ...(session.statusKey === null ? {} : { statusKey: session.statusKey }),
        ...(session.listsKey === null ? {} : { listsKey: session.listsKey }),
        markedUpTo: session.markedUpTo,
        hasInbox: true,
      },
      hasEnded: hasEnded(summary),
      isAway: fold.away !== null,
      awayPosition: fold.awayPosition,
      givesUpAt: fold.givesUpAt,
      seenAt: fold.seenAt,
      seenPosition: fold.seenPosition ?? 0,
    },
    announces,
    tasks: taskChanges,
    obligations: obligationChanges,
    before: session.before?.memory.hasInbox === true ? before : null,
    after,
  };
}

/** Links task output to the run that it names, else to the newest run. Output of an unknown task is not shown. */
function linkOutput(row: EventRow, tasks: TaskLedger): void {
  if (customName(row.event) !== CUSTOM.taskOutput) return;
  const id = taskEventId(row.event);
  const task = id === null ? undefined : tasks.find(id, pickId(customValue(row.event), 'run_id', 'runId'));
  if (task === undefined) return;
  row.event.metadata = withInterlude(row.event, { taskPosition: task.position }).metadata ?? {};
  row.entityId = task.position;
}

/** An archived session is restored by its next turn. */
function arrangementOf({ arrangement }: SessionBatch, before: SessionSummary, after: SessionSummary): Arrangement {
  const current = arrangement ?? before.arrangement;
  const isBack = current.archivedAt !== null && after.turnCount > before.turnCount;
  return isBack ? { ...current, archivedAt: null } : current;
}

/** Restores the projection's state: the summary from its columns, the rest from `memory`. */
export function foldOf({ id, agentId, before, startedAt }: SessionBatch, lastSeenAt: number): SessionFold {
  const initial = newSession(id, agentId, startedAt, lastSeenAt);
  if (before === null) return initial;
  // stored in a column, because a clock step clamps it
  const { summary, givesUpAt } = before;
  return { ...initial, ...storedFold(before.memory), summary, givesUpAt };
}

/** Nothing is in progress, so a missing runner is irrelevant. */
export function isAtRest(session: SessionBatch): boolean {
  const { before } = session;
  return before !== null && !before.isAway && !hasOpenWork(before.summary);
}

/** The last header of each turn that the batch opened or changed, except turns that a move emptied. */
class TurnChanges {
  /** All messages that a turn has named, even if a later header omits them. */
  readonly #messageIds = new Set<string>();
  readonly #headers = new Map<string, TurnHeader>();
  readonly #removed = new Set<string>();

  apply({ turns, removedTurnIds }: Placement): void {
    for (const header of turns) {
      const first = this.#headers.get(header.id);
      if (first?.userMessageIds !== header.userMessageIds)
        for (const id of header.userMessageIds) this.#messageIds.add(id);
      // Keeps the first position and start time within the batch. The upsert keeps those of a stored turn.
      const start = first === undefined ? header : { ...header, position: first.position, startedAt: first.startedAt };
      this.#headers.set(header.id, start);
      this.#removed.delete(header.id);
    }
    for (const id of removedTurnIds) {
      this.#headers.delete(id);
      this.#removed.add(id);
    }
  }

  addTo({ turns, removedTurns, seenMessages }: SessionRows, sessionId: string): void {
    for (const header of this.#headers.values()) turns.push({ sessionId, header });
    for (const turnId of this.#removed) removedTurns.push({ sessionId, turnId });
    if (this.#messageIds.size > 0) seenMessages.push({ sessionId, messageIds: [...this.#messageIds] });
  }
}

/**
 * Folds the deltas of entities that end in this batch: before writing if all deltas are in the batch, otherwise together
 * with the stored ones, in the event log.
 */
class RowFolder {
  readonly #rows: Pick<SessionRows, 'folds' | 'foldedAway'>;
  readonly #sessionId: string;
  readonly #basePosition: number;
  readonly #byEntity = new Map<string, EventRow[]>();

  constructor(sessionId: string, basePosition: number, rows: Pick<SessionRows, 'folds' | 'foldedAway'>) {
    this.#rows = rows;
    this.#sessionId = sessionId;
    this.#basePosition = basePosition;
  }

  add(row: EventRow): void {
    if (row.entityId !== null) addTo(this.#byEntity, `${row.event.type} ${row.entityId}`, row);
  }

  fold({ entityId, fromPosition, type }: Placement['folds'][number]): void {
    const from = Number(fromPosition);
    const key = `${type} ${entityId}`;
    const all = this.#byEntity.get(key) ?? [];
    const deltas = all.filter((row) => row.position >= from);
    const last = deltas.at(-1) ?? null;
    const allHere = from > this.#basePosition;
    if (last !== null && deltas.length > 1) {
      const startsOver = deltas.some((row) => row.event.metadata?.interlude?.whole === true);
      const text = deltas.reduce((joined, row) => appendDelta(joined, row.event), '');
      if (!isFoldable(text)) return;
      last.event = allHere || startsOver ? wholeEvent(last.event, text) : { ...last.event, delta: text };
      for (const row of deltas) if (row !== last) this.#rows.foldedAway.add(row);
      this.#byEntity.set(key, [...all.filter((row) => row.position < from), last]);
    }
    if (allHere) return;
    const upToPosition = this.#basePosition;
    const fold = { sessionId: this.#sessionId, entityId, type, fromPosition: from, upToPosition };
    this.#rows.folds.push({ ...fold, into: last, deltaCount: deltas.length });
  }
}

/** The session with its current state, which time may have changed since the row was written. */
export function sessionNow(session: SessionSummary, now: number): SessionSummary {
  return stateAt(session, now);
}

/** Reads the session projection from a session's `memory`; empty for a new session. */
export function storedFold(memory: { fold?: unknown } | undefined): Partial<SessionFold> {
  return (memory?.fold as Partial<SessionFold> | undefined) ?? {};
}

export type AnswerableRequest = Omit<OpenRequest, 'title'>;
