import { stateAt } from '@interlude/protocol/projections/resolve-state';
import type { SessionSummary } from '@interlude/protocol/read-models';

/** A session as it stands now: time alone may have changed its state since its row was written. */
export function sessionNow(session: SessionSummary, now: number): SessionSummary {
  return stateAt(session, now);
}
