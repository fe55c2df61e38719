import { SILENT_MS } from '@interlude/protocol/limits';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { isStalled } from '@interlude/protocol/session-predicates';
import { AGENT_STATES, type AgentState } from '@interlude/protocol/session-states';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import type { ReactNode } from 'react';
import { GROUP_WORD, glyphOf, STATE_GLYPH } from '@/components/sessions/session-labels';
import { Ago, Time, useClock, useIsSilent } from '@/components/ui/clock';
import { formatAgo, plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Name } from '@/components/ui/name';
import { type AgentWork, hostOf, leadOf, missingInWords, missingOf, providerOf, TIMED_STATES } from './board-agent';

/** Keys of the columns, in display order. Stored, and part of links. */
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

interface Column {
  word: string;
  /** The most urgent, largest or newest first. `stalled`: agents with a session that makes no progress. */
  compare: (a: AgentSummary, b: AgentSummary, stalled: ReadonlySet<string>) => number;
  /** Sorts in descending order by default. */
  isDescending?: true;
  /** Right-aligned and as wide as its head. */
  isCount?: true;
  /** Characters of the content, for the width of the column. */
  lengthOf?: (agent: AgentSummary) => number;
  cell: (agent: AgentSummary, work?: AgentWork) => ReactNode;
}

/** The columns of the board: head, rows, sort menu and chooser all read them from here. */
export const COLUMNS: Record<Sort, Column> = {
  name: {
    word: 'Agent',
    compare: (a, b) => byName(a.id, b.id),
    lengthOf: ({ id }) => id.length + 2,
    cell: ({ id }) => <Name text={id} />,
  },
  state: {
    word: 'State',
    compare: (a, b, stalled) => rankOf(a, stalled) - rankOf(b, stalled) || waitingSince(a) - waitingSince(b),
    lengthOf: () => STATE_LENGTH,
    cell: (agent, work) => <AgentStateCell agent={agent} work={work} />,
  },
  provider: {
    word: 'Provider',
    compare: (a, b) => byText(providerText(a), providerText(b)),
    lengthOf: (agent) => (providerText(agent) ?? '').length,
    cell: (agent) => <Provider agent={agent} />,
  },
  host: {
    word: 'Host',
    compare: (a, b) => byText(hostOf(a), hostOf(b)),
    lengthOf: (agent) => (hostOf(agent) ?? '').length,
    cell: (agent) => <Known text={hostOf(agent)} />,
  },
  sessions: {
    word: 'Sessions',
    compare: (a, b) => b.sessionCount - a.sessionCount,
    isDescending: true,
    isCount: true,
    cell: ({ sessionCount }) => <Count of={sessionCount} />,
  },
  tasks: {
    word: 'Running tasks',
    compare: (a, b) => b.runningTaskCount - a.runningTaskCount,
    isDescending: true,
    isCount: true,
    cell: ({ runningTaskCount }) => <Count of={runningTaskCount} />,
  },
  owed: {
    word: 'Pending replies',
    compare: (a, b) => b.overdueCount - a.overdueCount || b.owedCount - a.owedCount,
    isDescending: true,
    isCount: true,
    cell: ({ owedCount, overdueCount }) => (
      <>
        <Count of={owedCount} />
        {overdueCount > 0 && <span className="block text-2xs text-waiting">{overdueCount} overdue</span>}
      </>
    ),
  },
  level: {
    word: 'Log level',
    compare: (a, b) => levelRank(a) - levelRank(b),
    lengthOf: () => 0,
    cell: ({ logLevel }) => <Known text={logLevel.level} />,
  },
  ledger: {
    word: 'Missing records',
    compare: (a, b) => missingOf(b) - missingOf(a),
    isDescending: true,
    lengthOf: (agent) => missingInWords(agent).length,
    cell: (agent) => <span className="text-waiting">{missingInWords(agent)}</span>,
  },
  seen: {
    word: 'Last seen',
    compare: (a, b) => b.lastSeenAt - a.lastSeenAt,
    isDescending: true,
    isCount: true,
    cell: ({ lastSeenAt }) => <Ago at={lastSeenAt} className="text-2xs text-ink-3" />,
  },
};

/** Columns that show exceptions only. Unless chosen, the row names an exception below the agent's name. */
const OF_EXCEPTIONS: ReadonlySet<Sort> = new Set(['owed', 'level', 'ledger']);

/** Columns shown before anyone chooses: one with the same value in every row is left out. */
export function usualColumns(agents: readonly AgentSummary[]): Sort[] {
  const values = { provider: agents.map(providerText), host: agents.map(hostOf) };
  const isSame = (all: (string | null)[]) => all.length > 1 && all.every((one) => one === all[0]);
  return SORTS.filter((sort) => {
    if (sort === 'provider' || sort === 'host') return !isSame(values[sort]);
    return sort !== 'name' && !OF_EXCEPTIONS.has(sort);
  });
}

/** Unusual facts about an agent that no column shows, apart from its state and connection. */
export function exceptionsOf(agent: AgentSummary, columns: readonly Sort[]): string {
  const { overdueCount } = agent;
  const overdue =
    overdueCount > 0 && !columns.includes('owed') && `${plural(overdueCount, 'reply', 'replies')} overdue`;
  const missing = !columns.includes('ledger') && missingInWords(agent);
  return [overdue, missing].filter(Boolean).join(' · ');
}

/** Average width of a letter in a column's head. In `ch`, head and rows would differ, because their fonts do. */
const PX_PER_CHARACTER = 6;
/** Longest width of a text column. Longer texts wrap. */
const MAX_CHARACTERS = 42;

/** Value of `grid-template-columns`. Text columns share the width in proportion to their contents. */
export function gridOf(columns: readonly Sort[], agents: readonly AgentSummary[]): string {
  const tracks = columns.map((sort) => {
    const { word, isCount, lengthOf } = COLUMNS[sort];
    if (isCount === true || lengthOf === undefined) return `${(word.length + 2) * PX_PER_CHARACTER}px`;
    let length = word.length + 2;
    for (const agent of agents) length = Math.max(length, lengthOf(agent));
    return `minmax(0,${Math.round(Math.min(length, MAX_CHARACTERS))}fr)`;
  });
  return `20px ${tracks.join(' ')}`;
}

export function isDescending(sort: Sort, isReversed: boolean): boolean {
  return (COLUMNS[sort].isDescending ?? false) !== isReversed;
}

/**
 * Sorts agents repeatedly. Ties are ordered by name. Comparing names is slow and few agents move at a time, so each sort
 * starts from the previous order.
 */
export class BoardSorter {
  #before: readonly AgentSummary['id'][] = [];

  sort(
    agents: readonly AgentSummary[],
    { sort, isReversed }: { sort: Sort; isReversed: boolean },
    stalled: ReadonlySet<string>,
  ): string[] {
    const byId = new Map(agents.map((agent) => [agent.id, agent]));
    const nearly = this.#before.flatMap((id) => byId.get(id) ?? []);
    for (const { id } of nearly) byId.delete(id);
    nearly.push(...byId.values());
    const sign = isReversed ? -1 : 1;
    const { compare } = COLUMNS[sort];
    nearly.sort((a, b) => sign * compare(a, b, stalled) || byName(a.id, b.id));
    this.#before = nearly.map(({ id }) => id);
    return [...this.#before];
  }
}

const RANK = new Map<AgentState | null, number>(AGENT_STATES.map((state, index) => [state, index]));

function rankOf({ id, state }: AgentSummary, stalled: ReadonlySet<string>): number {
  const rank = RANK.get(state) ?? AGENT_STATES.length;
  return state === 'working' && stalled.has(id) ? rank - 0.5 : rank;
}

/** Start of the agent's state if a person waits for it to end; else 0, so that names decide the order. */
function waitingSince({ state, stateSince }: AgentSummary): number {
  return TIMED_STATES.has(state) ? (stateSince ?? 0) : 0;
}

function levelRank({ logLevel: { level } }: AgentSummary): number {
  return level === null ? LOG_LEVELS.length : LOG_LEVELS.indexOf(level);
}

function providerText(agent: AgentSummary): string | null {
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

/** `Needs input for 12m 2 failed` */
const STATE_LENGTH = 32;

/** The agent's state and since when, what its most urgent session does about it, and its failed sessions. */
export function AgentStateCell({ agent, work }: { agent: AgentSummary; work: AgentWork | undefined }) {
  const { state, stateSince, listedStates, sessionCount, sessionStates } = agent;
  const isSilent = useIsSilent(agent.lastSeenAt, SILENT_MS);
  if (state === null) return <span className="text-ink-3">No sessions</span>;
  const lead = leadOf(agent, work);
  const { openCount = 0, endingCount = 0 } = work ?? {};
  const areAllLoaded = openCount === sessionCount - sessionStates.exited;
  return (
    <span className="flex flex-wrap items-baseline gap-x-1.5">
      <span className="whitespace-nowrap">
        <Glyph
          name={lead === undefined ? STATE_GLYPH[state] : glyphOf(lead)}
          isStill={isSilent}
          className={GLYPH_PLACE}
        />
        {GROUP_WORD[state]}
        {lead !== undefined && isStalled(lead) && <span className="text-waiting">, no progress</span>}
      </span>
      {TIMED_STATES.has(state) && stateSince !== null && (
        <StateAge since={Math.min(stateSince, lead?.stateOccurredAt ?? stateSince)} />
      )}
      {state !== 'failed' && listedStates.failed > 0 && (
        <span className="tabular whitespace-nowrap text-failed">
          <Glyph name="failed" className={GLYPH_PLACE} />
          {listedStates.failed.toLocaleString('en')} failed
        </span>
      )}
      {endingCount > 0 && (
        <span className="tabular text-waiting">
          {areAllLoaded && endingCount === openCount
            ? 'ending'
            : `${endingCount.toLocaleString('en')}${areAllLoaded ? '' : '+'} ending`}
        </span>
      )}
    </span>
  );
}

const GLYPH_PLACE = 'relative top-[1.5px] mr-1.5 inline-block align-baseline';

function StateAge({ since }: { since: number }) {
  const age = useClock((now) => formatAgo(now - since));
  return (
    <Time at={since} className="tabular text-2xs text-ink-3">
      {age === 'now' ? 'just' : 'for'} {age}
    </Time>
  );
}

function Provider({ agent }: { agent: AgentSummary }) {
  const { name, version } = providerOf(agent);
  return (
    <>
      <Known text={name} />
      {version !== null && (
        <span className="text-2xs text-ink-3">
          {' '}
          <Name text={version} />
        </span>
      )}
    </>
  );
}

function Known({ text }: { text: string | null }) {
  if (text !== null) return <Name text={text} />;
  return (
    <span className="text-ink-3">
      <span aria-hidden="true">–</span>
      <span className="sr-only">unknown</span>
    </span>
  );
}

/** A count, dimmed if it is zero. */
function Count({ of }: { of: number }) {
  return <span className={of === 0 ? 'text-ink-3' : undefined}>{of.toLocaleString('en')}</span>;
}
