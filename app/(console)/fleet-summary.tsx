'use client';

import { useFleet } from '@/components/live/use-fleet';
import { needsAttention } from '@/components/sessions/session-labels';
import { useServerNow } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';

/** `2 need you · 3 working · 4 tasks running`. Zero and partly known counts are left out. */
export function FleetSummary() {
  const list = useFleet(({ listedSessions }) => listedSessions);
  const urgent = useServerNow((now) => list?.sessions.filter((session) => needsAttention(session, now)).length ?? 0);
  if (list === undefined || list.sessions.length === 0) return null;
  const { sessions, counts, next } = list;
  const needing = next === null ? urgent : counts.failed + counts['needs-input'];
  const working = counts.working;
  const tasks = sessions.reduce((sum, { away, runningTaskCount }) => sum + (away === null ? runningTaskCount : 0), 0);
  const parts = [
    needing > 0 && `${needing.toLocaleString('en')} ${needing === 1 ? 'needs' : 'need'} you`,
    working > 0 && `${working.toLocaleString('en')} working`,
    next === null && tasks > 0 && `${plural(tasks, 'task')} running`,
  ].filter((part) => part !== false);
  return <p className="tabular hidden truncate text-ink-3 text-xs sm:block">{parts.join(' · ')}</p>;
}
