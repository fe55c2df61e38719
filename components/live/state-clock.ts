'use client';

import { useEffect, useRef } from 'react';
import { useServerNow } from '@/components/ui/now';
import type { FleetStore } from './fleet-store';

/** Changes the states of the sessions on the page as time passes: an agent that is still for a while is at rest. */
export function StateClock({ fleet }: { fleet: FleetStore }) {
  const dueAt = useServerNow((now) => {
    const first = fleet.stateDueAt;
    return first !== null && first <= now ? now : null;
  });
  const last = useRef(0);
  useEffect(() => {
    if (dueAt === null || dueAt === last.current) return;
    last.current = dueAt;
    // The rules come when they are needed for the first time. Without them the server tells all the same.
    import('@interlude/protocol/projections/resolve-state').then(
      ({ stateAt }) => fleet.passTime(dueAt, stateAt),
      () => {},
    );
  }, [fleet, dueAt]);
  return null;
}
