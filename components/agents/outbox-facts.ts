export interface OutboxFacts {
  /** Records that wait to be delivered. */
  depth: number;
  oldestAgeMs: number | null;
  /** Records the server refused for good, set aside on the runner's disk. */
  poisoned: number;
  lost: number;
}

/** What a status record says of its runner's outbox. @returns null where it says nothing */
export function outboxFacts(status: Record<string, unknown> | null): OutboxFacts | null {
  const outbox = status?.outbox;
  if (typeof outbox !== 'object' || outbox === null) return null;
  const { depth, oldestAgeMs, poisoned, lost } = outbox as Record<string, unknown>;
  if (typeof depth !== 'number') return null;
  const count = (value: unknown) => (typeof value === 'number' ? value : 0);
  return {
    depth,
    oldestAgeMs: typeof oldestAgeMs === 'number' ? oldestAgeMs : null,
    poisoned: count(poisoned),
    lost: count(lost),
  };
}
