import type { Outbox } from './outbox';

/** How an outbox is, for status records and for people. */
export type OutboxFacts = {
  /** Records that wait. */
  depth: number;
  /** How long ago the oldest of them happened, milliseconds; null when none waits. */
  oldestAgeMs: number | null;
  /** Records the server will never take. */
  poisoned: number;
  /** Declared lost since the process began. */
  lost: number;
};

/** Never rejects: a file that can't be read has no figures, and its trouble is told elsewhere. */
export async function outboxFacts(outbox: Outbox, lost = 0): Promise<OutboxFacts> {
  const { oldestAt, poisoned } = await outbox.figures().catch(() => ({ oldestAt: null, poisoned: 0 }));
  return {
    depth: outbox.status.waiting,
    oldestAgeMs: oldestAt === null ? null : Math.max(0, Date.now() - oldestAt),
    poisoned,
    lost,
  };
}
