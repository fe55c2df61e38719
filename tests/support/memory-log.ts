import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM, customName, customValue } from '@interlude/protocol/event-fields';
import { comparePositions } from '@interlude/protocol/position';
import { foldShownItems } from '@interlude/protocol/projections/items';
import {
  NO_OBLIGATIONS,
  type ObligationChange,
  type ObligationFold,
  ObligationLedger,
} from '@interlude/protocol/projections/obligations';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { NO_PLACES, type Placement } from '@interlude/protocol/projections/placement';
import { type SessionFold, SessionLedger } from '@interlude/protocol/projections/session-summary';
import { affectsEveryTask, startsWithoutCause, TaskLedger } from '@interlude/protocol/projections/tasks';
import { settleTurn } from '@interlude/protocol/projections/transcript';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { Obligation, RemovedHistory, Task, TranscriptPage, Turn } from '@interlude/protocol/read-models';
import type { TurnHeader, TurnPlaces } from '@interlude/protocol/turn-places';
import { mentionedTasks } from '@/lib/server/ingest/task-router';

interface Row {
  entry: EventEntry;
  turnId: string | null;
  entityId: string | null;
}

interface PageRange {
  before?: string | null;
  limit?: number;
}

const OWNER = { sessionId: 's1', agentId: 'a1' };

/**
 * An in-memory model of how the database applies placements: rows with a turn, moves, folded deltas. Reference for the
 * projections' own properties; ingest is tested against the same ones on libSQL.
 */
export class MemoryLog {
  rows: Row[] = [];
  readonly headers = new Map<string, TurnHeader>();
  readonly tasks = new Map<string, Task>();
  readonly obligations = new Map<string, Obligation>();
  places: TurnPlaces = NO_PLACES;
  #obligations: ObligationFold = NO_OBLIGATIONS;
  #position = 0;
  #removed: RemovedHistory | undefined;

  /** Appends a batch. @returns the entries as a live subscriber receives them */
  append(events: readonly AgUiEvent[], at = 1_000): EventEntry[] {
    const entries = events.map((event): EventEntry => {
      this.#position += 1;
      const position = String(this.#position);
      return { position, occurredAt: at + this.#position, receivedAt: at, event: stamped(event, position) };
    });
    // Other rows share the position counter, so leave gaps as the server does.
    this.#position += 3;
    const { places, placements } = placeEvents(this.places, entries);
    this.places = places;
    for (const { entry, turnId, entityId, turns, moves, removedTurnIds, folds } of placements) {
      this.rows.push({ entry, turnId, entityId });
      for (const header of turns) {
        const known = this.headers.get(header.id);
        this.headers.set(
          header.id,
          known ? { ...header, position: known.position, startedAt: known.startedAt } : header,
        );
      }
      for (const move of moves) {
        for (const row of this.rows) {
          if (row.entityId !== move.entityId || row.turnId !== move.fromTurnId) continue;
          if (move.position === null || row.entry.position === move.position) row.turnId = move.toTurnId;
        }
      }
      for (const id of removedTurnIds) this.headers.delete(id);
      for (const { entityId: folded, type, fromPosition } of folds) this.#fold(folded, type, fromPosition);
    }
    const folded = foldObligations(this.#obligations, [...this.obligations.values()], placements, OWNER);
    this.#obligations = folded.fold;
    for (const { after } of folded.changes) this.obligations.set(after.messageId, after);
    const ids = entries.flatMap(({ event }) => mentionedTasks(event).map(({ id }) => id));
    const everyone = entries.some(({ event }) => affectsEveryTask(event) || startsWithoutCause(event));
    const touched = [...this.tasks.values()].filter((task) => everyone || ids.includes(task.id));
    for (const task of foldTasks(touched, placements, OWNER)) this.tasks.set(task.position, task);
    return placements.map(({ entry }) => entry);
  }

  /**
   * Removes turns that started in the first `percent` of all positions, as retention does, regardless of pending
   * replies. @returns the entries that a live subscriber receives
   */
  remove(percent: number): EventEntry[] {
    const at = ({ position }: { position: string }) => Number(position);
    let cut = Math.floor((this.#position * percent) / 100);
    const isOpen = ({ id, state }: TurnHeader) =>
      state === 'open' || this.rows.some((row) => row.turnId === id && at(row.entry) > cut);
    for (;;) {
      const late = [...this.headers.values()].filter((header) => at(header) <= cut && isOpen(header));
      if (late.length === 0) break;
      cut = Math.min(...late.map(at)) - 1;
    }
    const gone = [...this.headers.values()].filter((header) => at(header) <= cut);
    if (gone.length === 0) return [];
    const turns = (this.#removed?.turns ?? 0) + gone.filter(({ kind }) => kind !== 'none').length;
    const removed = { upTo: String(cut), turns };
    const appended = this.append([{ type: 'CUSTOM', name: CUSTOM.removed, metadata: { interlude: { removed } } }]);
    for (const { id } of gone) this.headers.delete(id);
    const isLeft = ({ turnId, entry }: Row) =>
      at(entry) > cut || (turnId !== null && (this.headers.has(turnId) || turnId.startsWith('task:')));
    this.rows = this.rows.filter(isLeft);
    this.#removed = { ...removed, at: appended[0]?.receivedAt ?? 0 };
    return appended;
  }

  /** True if events after a position are missing. */
  hasGapAfter(position: string): boolean {
    return position !== '0' && comparePositions(position, this.#removed?.upTo ?? '0') < 0;
  }

  /** Returns the newest page, or with `before` an older one, which has no placements. */
  page({ before = null, limit = Number.POSITIVE_INFINITY }: PageRange = {}): TranscriptPage {
    const headers = [...this.headers.values()]
      .filter(({ position }) => before === null || comparePositions(position, before) < 0)
      .sort((a, b) => comparePositions(a.position, b.position));
    const first = Math.max(0, headers.length - limit);
    const turns = headers.slice(first).map((header) =>
      turnFromEvents(
        header,
        this.rows.filter((row) => row.turnId === header.id).map((row) => row.entry),
      ),
    );
    const places = before === null ? { places: structuredClone(this.places) } : {};
    const removed = this.#removed && { removed: this.#removed };
    return { position: String(this.#position), hasMore: first > 0, turns, ...places, ...removed };
  }

  /** Events after a position, as a resuming subscriber receives them. */
  after(position: string): EventEntry[] {
    return this.rows.map((row) => row.entry).filter((entry) => comparePositions(entry.position, position) > 0);
  }

  #fold(entityId: string, type: string, fromPosition: string): void {
    const deltas = this.rows.filter(
      (row) =>
        row.entityId === entityId &&
        row.entry.event.type === type &&
        comparePositions(row.entry.position, fromPosition) >= 0,
    );
    const last = deltas.at(-1);
    if (last === undefined) return;
    const text = deltas.reduce(
      (whole, { entry: { event } }) =>
        event.metadata?.interlude?.whole === true ? String(event.delta) : whole + String(event.delta),
      '',
    );
    const event = { ...last.entry.event, delta: text, metadata: { interlude: { whole: true as const } } };
    const folded = { ...last, entry: { ...last.entry, event } };
    this.rows = this.rows
      .filter((row) => !deltas.includes(row) || row === last)
      .map((row) => (row === last ? folded : row));
  }
}

/** Adds a unique request digest, as the server does. */
function stamped(event: AgUiEvent, position: string): AgUiEvent {
  if (customName(event) !== CUSTOM.requestOpened) return event;
  return { ...event, value: { ...customValue(event), digest: `digest ${position}`, opened_position: position } };
}

/** Runs the projections over all placements; a server runs them one by one. */

type Owner = Pick<Task, 'sessionId' | 'agentId'>;

/** @returns the new and changed tasks after all placements */
export function foldTasks(tasks: readonly Task[], placements: readonly Placement[], owner: Owner): Task[] {
  const ledger = new TaskLedger(owner);
  for (const task of [...tasks].sort((a, b) => comparePositions(a.position, b.position))) ledger.load(task);
  for (const placement of placements) for (const _ of ledger.apply(placement));
  return [...ledger.changed()];
}

/** @param known stored obligations that the placements may touch, including settled ones */
export function foldObligations(
  fold: ObligationFold,
  known: readonly Obligation[],
  placements: readonly Placement[],
  owner: Owner,
): { fold: ObligationFold; changes: ObligationChange[] } {
  const ledger = new ObligationLedger(fold, known, owner);
  for (const placement of placements) ledger.apply(placement);
  return { fold: ledger.fold, changes: ledger.changes() };
}

/** @param heardAt when the agent itself last reported on the session; null for other writers */
export function foldSession(
  fold: SessionFold,
  placements: readonly Placement[],
  tasks: readonly { before: Task | null; after: Task }[],
  obligations: readonly ObligationChange[] = [],
  heardAt: number | null = null,
): SessionFold {
  const ledger = new SessionLedger(fold, heardAt);
  for (const placement of placements) ledger.apply(placement);
  for (const { before, after } of tasks) ledger.countTask(before, after);
  return ledger.result(obligations);
}

/** @param entries the turn's events in position order */
export function turnFromEvents(header: TurnHeader, entries: readonly EventEntry[]): Turn {
  return settleTurn({ ...header, ...foldShownItems({ items: [] }, entries, header.kind === 'none') });
}
