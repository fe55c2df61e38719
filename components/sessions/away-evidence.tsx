import type { SessionAway } from '@interlude/protocol/read-models';
import { Ago, TimeOfDay } from '@/components/ui/clock';

/** `since 12:03 (4m), last heard 12:02:58` */
export function Evidence({ away }: { away: SessionAway }) {
  return (
    <span className="tabular text-ink-2">
      since <TimeOfDay at={away.since} /> (<Ago at={away.since} />
      ), last heard <TimeOfDay at={away.lastHeardAt} seconds />
    </span>
  );
}
