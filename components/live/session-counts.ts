import type { SessionSummary } from '@interlude/protocol/read-models';
import { noSessions, type SessionState } from '@interlude/protocol/session-states';

export type CountsByState = Record<SessionState, number>;

export function countByState(sessions: readonly SessionSummary[]): CountsByState {
  const counts = noSessions();
  for (const { state } of sessions) counts[state] += 1;
  return counts;
}
