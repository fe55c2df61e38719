import { positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import { NO_PLACES, type Placement } from '@interlude/protocol/projections/placement';
import { aliasEvent, snapshotEvent } from '@interlude/protocol/projections/snapshot-parts';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { TurnPlaces } from '@interlude/protocol/turn-places';
import type { Yielder } from '@/db/yield-to-loop';
import type { EventRow } from '@/lib/server/event-log/batch-rows';
import type { SessionBatch, SessionEntry, Stored } from './batch-sessions';
import { KnownParts, matchParts } from './known-parts';

/** Maximum events to place before yielding to the event loop. */
const PLACED_AT_ONCE = 500;

interface Placed {
  places: TurnPlaces;
  placements: Placement[];
  /** The batch's entries and those derived from its snapshots, parallel to `placements`. */
  entries: SessionEntry[];
  derived: EventRow[];
}

/** Runs `placeEvents` in slices. Places the new parts of a snapshot right after it. */
export async function placeSession(session: SessionBatch, stored: Stored, yielder: Yielder): Promise<Placed> {
  const hasSnapshots = session.entries.some(({ parts }) => parts.length > 0);
  const { removed } = session.before?.summary ?? {};
  const removedUpTo = removed === undefined ? 0 : positionToNumber(removed.upTo);
  const known = hasSnapshots ? await KnownParts.of(stored.parts, stored.obligations, yielder, removedUpTo) : null;
  const placed: Placed = {
    places: session.before?.places ?? NO_PLACES,
    placements: [],
    entries: [],
    derived: [],
  };
  const place = async (entries: readonly SessionEntry[]) => {
    for (let index = 0; index < entries.length; index += PLACED_AT_ONCE) {
      const some = entries.slice(index, index + PLACED_AT_ONCE);
      const next = placeEvents(
        placed.places,
        some.map(({ entry }) => entry),
      );
      placed.places = next.places;
      for (const entry of some) placed.entries.push(entry);
      for (const placement of next.placements) {
        placed.placements.push(placement);
        known?.add(placement);
      }
      await yielder.yieldIfDue();
    }
  };
  let from = 0;
  for (const [at, snapshot] of session.entries.entries()) {
    if (snapshot.parts.length === 0 || known === null) continue;
    await place(session.entries.slice(from, at + 1));
    from = at + 1;
    const added: SessionEntry[] = [];
    const first = removed === undefined ? 0 : known.firstKept(snapshot.parts, removed.lastId);
    const matches = await matchParts(snapshot.parts, known, yielder);
    await yielder.each(snapshot.parts.entries(), ([index, part]) => {
      if (index < first) return;
      const place = known.placeFor(part, matches);
      if (place === undefined) return;
      const { turnId, sameAs, id = part.id } = place;
      const isAlias = sameAs !== undefined && turnId !== null;
      const event = isAlias ? aliasEvent(part, turnId, sameAs) : snapshotEvent({ ...part, id }, turnId);
      added.push(derivedFrom(snapshot, index + 1, event));
    });
    await place(added);
    for (const { row } of added) placed.derived.push(row);
  }
  await place(session.entries.slice(from));
  return placed;
}

function derivedFrom({ entry, row }: SessionEntry, offset: number, event: EventRow['event']): SessionEntry {
  const position = row.position + offset;
  return {
    entry: { ...entry, position: positionFromNumber(position), event },
    row: { ...row, position, entityId: null, turnId: null, event },
    parts: [],
  };
}
