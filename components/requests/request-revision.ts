import type { SessionSummary } from '@interlude/protocol/read-models';

/** Changes with the session's open requests; empty if it has none. */
export function requestRevision({ pendingRequestCount, observations: { request } }: SessionSummary): string {
  return pendingRequestCount === 0 ? '' : `${pendingRequestCount}@${request?.observedAt}`;
}
