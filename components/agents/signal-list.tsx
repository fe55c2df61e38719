import type { AgentDetail } from '@/lib/protocol/read-models';
import { InsightItem } from './insight-item';

/** What else an agent's log lines tell beside their words, of whatever name, the newest first. Nobody has to look at it. */
export function SignalList({ insights, sessions }: Pick<AgentDetail, 'insights' | 'sessions'>) {
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
