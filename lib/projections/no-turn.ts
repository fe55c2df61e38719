import type { TurnHeader } from '@/lib/protocol/turn-places';
import type { EventEntry } from './event-entry';

/** The header of a turn that is none: what stands outside of any from this event on. */
export function noTurn({ position, occurredAt }: EventEntry): TurnHeader {
  return {
    id: `none:${position}`,
    kind: 'none',
    state: 'finished',
    position,
    trigger: null,
    userMessageIds: [],
    parentTurnId: null,
    startedAt: occurredAt,
    endedAt: occurredAt,
    error: null,
  };
}
