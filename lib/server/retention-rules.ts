import { SESSION_STATES } from '@interlude/protocol/session-states';
import type { RetentionRules } from '@interlude/protocol/storage';
import type { Retention } from '@/lib/server/log-store/remove-old-lines';
import type { HistoryRetention } from '@/lib/server/retention/retention-settings';

const DAY_MS = 24 * 60 * 60_000;

/** What the server is set to keep, as it is told: JSON has no `Infinity`. */
export function retentionRules({ logs, history }: { logs: Retention; history: HistoryRetention }): RetentionRules {
  const days = (ms: number) => limit(ms / DAY_MS);
  return {
    days: Object.fromEntries(
      SESSION_STATES.map((state) => [state, days(history.maxAgeMs[state])]),
    ) as RetentionRules['days'],
    elsewhereDays: days(history.elsewhereMs),
    auditDays: days(history.auditMs),
    maxBytes: limit(history.maxBytes),
    logs: { days: logs.maxAgeMs / DAY_MS, maxBytes: logs.maxBytes },
  };
}

function limit(most: number): number | null {
  return Number.isFinite(most) ? most : null;
}
