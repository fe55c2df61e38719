import type { PlanEntry } from '@interlude/protocol/ag-ui';
import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';

const MAX_ENTRIES = 64;
const STATUSES = new Set(['pending', 'in_progress', 'completed']);

/** @see ACP v1, Plan */
export function planEntries(entries: unknown): PlanEntry[] {
  return listOf(entries)
    .slice(0, MAX_ENTRIES)
    .map((entry) => {
      const { content, status, priority } = fieldsOf(entry);
      return {
        content: textOf(content) ?? '',
        status: STATUSES.has(String(status)) ? (status as PlanEntry['status']) : 'pending',
        ...(textOf(priority) === null ? {} : { priority: String(priority) }),
      };
    });
}
