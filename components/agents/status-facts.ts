import { fieldsOf, numberOf } from '@interlude/protocol/fields';

interface OutboxFacts {
  /** Records that wait to be delivered. */
  depth: number;
  oldestAgeMs: number | null;
  /** Records the server refused for good, set aside on the runner's disk. */
  poisoned: number;
  lost: number;
}

/** What a status record says of its runner's outbox. @returns null if it says nothing */
export function outboxFacts(status: Record<string, unknown> | null): OutboxFacts | null {
  const { depth, oldestAgeMs, poisoned, lost } = fieldsOf(status?.outbox);
  if (typeof depth !== 'number') return null;
  return { depth, oldestAgeMs: numberOf(oldestAgeMs), poisoned: numberOf(poisoned) ?? 0, lost: numberOf(lost) ?? 0 };
}

/**
 * Which programs an agent is made of, as its status record says it.
 * @returns as they are shown, in order; empty if it says nothing
 */
export function versionsOf(status: Record<string, unknown> | null): { of: string; text: string }[] {
  const { runner, protocol, provider } = fieldsOf(status?.versions);
  return [
    { of: 'runner', text: isText(runner) ? `runner ${runner}` : '' },
    { of: 'protocol', text: isText(protocol) ? `protocol ${protocol}` : '' },
    { of: 'provider', text: isText(provider) ? provider : '' },
  ].filter(({ text }) => text !== '');
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
