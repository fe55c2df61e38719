import type { AgentDetail } from '@/lib/protocol/read-models';
import { InsightItem } from './insight-item';

/** What an agent's log lines tell beside their words, the newest first. */
export function InsightList({ insights, sessions }: Pick<AgentDetail, 'insights' | 'sessions'>) {
  return (
    <ul>
      {insights.map((insight) => (
        <InsightItem
          key={insight.position}
          insight={insight}
          session={sessions.find(({ id }) => id === insight.sessionId) ?? null}
        />
      ))}
    </ul>
  );
}
