import type { EventRow } from '@/lib/event-log/batch-rows';
import { saidKey } from '@/lib/event-log/said-rows';
import { type SnapshotPart, snapshotParts } from '@/lib/projections/snapshot-parts';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import { MAX_SNAPSHOT_PARTS } from '@/lib/protocol/limits';
import { withInterlude } from '@/lib/protocol/with-interlude';

/** The parts of a request's snapshots, as far as there is room for them and they were looked up. */
export class SnapshotRoom {
  #room = MAX_SNAPSHOT_PARTS;
  readonly #lookedUp: ReadonlySet<string> | null;

  /** @param lookedUp the parts that were looked up, by `saidKey`; null while they are still to be read */
  constructor(lookedUp: ReadonlySet<string> | null) {
    this.#lookedUp = lookedUp;
  }

  /** @returns the newest that there is room for */
  partsOf(sessionId: string, event: AgUiEvent): readonly SnapshotPart[] {
    const all = snapshotParts(event).filter(({ id }) => this.#lookedUp?.has(saidKey(sessionId, id)) !== false);
    const parts = all.slice(Math.max(0, all.length - this.#room));
    this.#room -= parts.length;
    return parts;
  }
}

const MARKS = [
  'ofSnapshot',
  'derived',
  'replaces',
  'presumed',
  'again',
  'taskPosition',
  'origin',
  'delivery',
  'clientId',
  'removed',
] as const;
const NO_MARKS = Object.fromEntries(MARKS.map((mark) => [mark, undefined]));

/**
 * Only the server marks events: as parts of a snapshot, as derived or presumed, as what they take the place of or repeat,
 * as of a task, as what tells of removed turns, and a message as one that came through it.
 */
export function unmarked(event: AgUiEvent): AgUiEvent {
  const said = interludeOf(event);
  return MARKS.some((mark) => said[mark] !== undefined) ? withInterlude(event, NO_MARKS) : event;
}

/** A request's rows and those derived from its snapshots, in the order of their positions. */
export function withDerived(events: readonly EventRow[], derived: readonly EventRow[]): readonly EventRow[] {
  return derived.length === 0 ? events : [...events, ...derived].sort((a, b) => a.position - b.position);
}
