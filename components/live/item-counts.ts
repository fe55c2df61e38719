import { type InboxItem, type InboxKind, noItems } from '@/lib/protocol/inbox';

/** What counts as one of its kind: what is not done. */
export function countedAs({ kind, doneAt }: InboxItem): InboxKind | null {
  return doneAt === null ? kind : null;
}

export function countByKind(items: readonly InboxItem[]): Record<InboxKind, number> {
  const counts = noItems();
  for (const { kind, doneAt } of items) if (doneAt === null) counts[kind] += 1;
  return counts;
}

/** @param kinds those that count; none for all */
export function sumOfItems(counts: Record<InboxKind, number>, kinds: readonly InboxKind[] = []): number {
  const counted = kinds.length === 0 ? Object.values(counts) : kinds.map((kind) => counts[kind]);
  return counted.reduce((sum, count) => sum + count, 0);
}
