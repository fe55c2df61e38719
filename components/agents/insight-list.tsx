import { InsightItem } from './insight-item';
import type { LiveAgent } from './use-agents';

/** What an agent's log lines tell beside their words, the newest first. */
export function InsightList({ insights, sessions }: Pick<LiveAgent, 'insights' | 'sessions'>) {
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
