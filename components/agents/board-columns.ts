import type { AgentSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES } from '@interlude/protocol/session-states';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import { hostOf, missingOf, providerOf, urgentState } from './board-agent';

/** Sort keys, in column order. */
export const SORTS = [
  'name',
  'state',
  'provider',
  'host',
  'sessions',
  'tasks',
  'owed',
  'level',
  'ledger',
  'seen',
] as const;
export type Sort = (typeof SORTS)[number];

export const SORT_WORD: Record<Sort, string> = {
  name: 'Agent',
  state: 'State',
  provider: 'Provider',
  host: 'Host',
  sessions: 'Sessions',
  tasks: 'Tasks',
  owed: 'Replies due',
  level: 'Log level',
  ledger: 'Ledger',
  seen: 'Last seen',
};

/** Keys that sort in descending order by default. */
const GREATEST_FIRST: ReadonlySet<Sort> = new Set(['sessions', 'tasks', 'owed', 'ledger', 'seen']);

export function isDescending(sort: Sort, isReversed: boolean): boolean {
  return GREATEST_FIRST.has(sort) !== isReversed;
}

/** The most urgent, largest or newest first. */
const COMPARE: Record<Sort, (a: AgentSummary, b: AgentSummary) => number> = {
  name: () => 0,
  state: (a, b) => rankOf(a) - rankOf(b),
  provider: (a, b) => byText(textOf(a), textOf(b)),
  host: (a, b) => byText(hostOf(a), hostOf(b)),
  sessions: (a, b) => b.sessionCount - a.sessionCount,
  tasks: (a, b) => b.runningTaskCount - a.runningTaskCount,
  owed: (a, b) => b.overdueCount - a.overdueCount || b.owedCount - a.owedCount,
  level: (a, b) => levelRank(a) - levelRank(b),
  ledger: (a, b) => missingOf(b) - missingOf(a),
  seen: (a, b) => b.lastSeenAt - a.lastSeenAt,
};

/**
 * Sorts agents repeatedly. Ties are ordered by name. Comparing names is slow and few agents move at a time, so each sort
 * starts from the previous order.
 */
export class BoardSorter {
  #before: readonly AgentSummary['id'][] = [];

  sort(agents: readonly AgentSummary[], { sort, isReversed }: { sort: Sort; isReversed: boolean }): string[] {
    const byId = new Map(agents.map((agent) => [agent.id, agent]));
    const nearly = this.#before.flatMap((id) => byId.get(id) ?? []);
    for (const { id } of nearly) byId.delete(id);
    nearly.push(...byId.values());
    const sign = isReversed ? -1 : 1;
    const compare = COMPARE[sort];
    const named = (a: AgentSummary, b: AgentSummary) => byName(a.id, b.id);
    nearly.sort(sort === 'name' ? (a, b) => sign * named(a, b) : (a, b) => sign * compare(a, b) || named(a, b));
    this.#before = nearly.map(({ id }) => id);
    return [...this.#before];
  }
}

function rankOf(agent: AgentSummary): number {
  const state = urgentState(agent);
  return state === null ? SESSION_STATES.length : SESSION_STATES.indexOf(state);
}

function levelRank({ logLevel: { level } }: AgentSummary): number {
  return level === null ? LOG_LEVELS.length : LOG_LEVELS.indexOf(level);
}

function textOf(agent: AgentSummary): string | null {
  const { name, version } = providerOf(agent);
  return name === null ? null : `${name} ${version ?? ''}`;
}

/** Nulls last. */
function byText(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return byName(a, b);
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Natural order: `runner-2` before `Runner-10`. Names that differ only in case have a fixed order. */
export function byName(a: string, b: string): number {
  return collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}
