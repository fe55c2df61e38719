import type { AgentSummary } from '@interlude/protocol/read-models';
import { LOG_LEVELS, SESSION_STATES } from '@interlude/protocol/vocabulary';
import { hostOf, missingOf, providerOf, urgentStanding } from './board-agent';
import { byName } from './by-name';

/** What agents can be sorted by, in the order of the columns. */
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
  owed: 'Owed',
  level: 'Log level',
  ledger: 'Ledger',
  seen: 'Last heard',
};

/** Those by which the greatest comes first, unless it is turned round. */
const GREATEST_FIRST: ReadonlySet<Sort> = new Set(['sessions', 'tasks', 'owed', 'ledger', 'seen']);

export function isDescending(sort: Sort, isReversed: boolean): boolean {
  return GREATEST_FIRST.has(sort) !== isReversed;
}

/** What comes first is what one looks for: the most urgent, the most, the newest. */
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
 * Sorts agents again and again. Those that are alike in it stand by name, so that each has its place whichever was heard
 * last. To compare names takes long, and few agents move at a time: it begins with the order of the last time.
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
  const state = urgentStanding(agent);
  return state === null ? SESSION_STATES.length : SESSION_STATES.indexOf(state);
}

function levelRank({ logLevel: { level } }: AgentSummary): number {
  return level === null ? LOG_LEVELS.length : LOG_LEVELS.indexOf(level);
}

function textOf(agent: AgentSummary): string | null {
  const { name, version } = providerOf(agent);
  return name === null ? null : `${name} ${version ?? ''}`;
}

/** What says nothing stands last. */
function byText(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return byName(a, b);
}
