import type { PlanEntry } from './ag-ui';
import { cutText } from './cut-text';
import { isObject } from './fields';
import { MAX_CAPTION, MAX_PLAN_ENTRIES } from './limits';

const STATUSES: readonly unknown[] = ['pending', 'in_progress', 'completed'] satisfies PlanEntry['status'][];

/**
 * The entries of a plan: at most MAX_PLAN_ENTRIES, each with MAX_CAPTION of its text. One without a text is left out, and
 * one whose status is not known is still to be done.
 *
 * @returns null if it is no list
 */
export function planEntries(said: unknown): { entries: PlanEntry[]; omitted: number } | null {
  if (!Array.isArray(said)) return null;
  const told = said.flatMap((entry) => entryOf(entry) ?? []);
  const entries = told.slice(0, MAX_PLAN_ENTRIES);
  return { entries, omitted: told.length - entries.length };
}

function entryOf(told: unknown): PlanEntry | null {
  if (!isObject(told) || typeof told.content !== 'string') return null;
  const { content, status, priority } = told;
  return {
    content: cutText(content, MAX_CAPTION),
    status: STATUSES.includes(status) ? (status as PlanEntry['status']) : 'pending',
    ...(typeof priority === 'string' ? { priority: cutText(priority, MAX_PRIORITY) } : {}),
  };
}

/** It is a word. */
const MAX_PRIORITY = 40;
