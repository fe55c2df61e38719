import { fieldsOf, numberOf } from '@/lib/protocol/fields';

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
  const { depth, oldestAgeMs, poisoned, lost } = fieldsOf(status?.outbox);
  if (typeof depth !== 'number') return null;
  return { depth, oldestAgeMs: numberOf(oldestAgeMs), poisoned: numberOf(poisoned) ?? 0, lost: numberOf(lost) ?? 0 };
}
