import type { FleetCounts } from '@interlude/protocol/inbox';
import {
  AGENT_STATES,
  LISTED_STATES,
  type ListedState,
  SESSION_GROUPS,
  type SessionGroup,
} from '@interlude/protocol/session-states';
import { type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import type { Row } from '@libsql/client';
import { agentsIn, listedSessionsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { ReadScope } from '@/lib/server/access/request-context';
import { countsByListedState, type ListedCount } from './read-sessions';
import { query, rawRow, readSnapshot } from './read-snapshot';

/** Maximum number of open items counted. */
const MAX_ITEMS = 20_000;

/** `needsPerson` as SQL. Parameters: `?1` the time, `?2` the reader. */
const NEEDS_PERSON = `(seen_at IS NULL AND ifnull(snoozed_until, 0) <= ?1
  AND (claim IS NULL OR claim->>'$.by.id' = ?2))`;

/**
 * All counts of the dashboard, in one snapshot.
 *
 * @param person `InboxPerson.id` of the reader
 * @param now epoch milliseconds
 */
export async function readCounts(view: ReadScope, person: string, now = Date.now()): Promise<FleetCounts> {
  const open = `WITH open AS MATERIALIZED (
      SELECT kind, ifnull('s' || session_id, 'a' || agent_id) AS owner, ${NEEDS_PERSON} AS needs_person, snoozed_until
      FROM inbox WHERE done_at IS NULL AND ${sessionsIn(view.scope, 'session_id')} LIMIT ${MAX_ITEMS})
    SELECT kind, NULL AS requests, NULL AS owners, count(DISTINCT owner) AS needing, NULL AS changes_at
      FROM open WHERE needs_person GROUP BY kind
    UNION ALL SELECT NULL, sum(needs_person AND kind IN ('permission', 'question')), count(DISTINCT owner),
      count(DISTINCT iif(needs_person, owner, NULL)), min(iif(snoozed_until > ?1, snoozed_until, NULL)) FROM open`;
  const { position, found } = await readSnapshot<[Row, AgentCount, RegroupedCount, ...ListedCount[]]>(view, [
    query(rawRow, open, now, columnText(person)),
    query(toAgentCount, `${AGENTS} WHERE ${agentsIn(view.scope, 'id')} GROUP BY is_retired, state, has_failed`),
    query(toRegroupedCount, `${REGROUPED} AND ${listedSessionsIn(view.scope)} GROUP BY grouped_as, listed_as, state`),
    ...countsByListedState(view),
  ]);
  const [inbox, agents, regrouped, ...states] = found;
  const kinds = noItems();
  const sessions = zeros(LISTED_STATES);
  for (const [state, count] of states.flat()) sessions[state] += count;
  const groups = { ...zeros(SESSION_GROUPS), ...sessions };
  for (const [from, to, count] of regrouped) {
    // `sessions` may be capped
    groups[from] = Math.max(0, groups[from] - count);
    groups[to] += count;
  }
  const agentStates = zeros([...AGENT_STATES, 'none']);
  const retiredStates = { ...agentStates };
  const alsoFailed = { active: 0, retired: 0 };
  for (const [isRetired, state, count, hasFailed] of agents) {
    (isRetired ? retiredStates : agentStates)[state] += count;
    if (hasFailed) alsoFailed[isRetired ? 'retired' : 'active'] += count;
  }
  for (const { kind, needing } of inbox) if (kind !== null) kinds[kind as InboxKind] = Number(needing);
  const all = inbox.at(-1);
  return {
    position,
    needsYou: Number(all?.needing ?? 0),
    inbox: { all: Number(all?.owners ?? 0), kinds, requests: Number(all?.requests ?? 0) },
    sessions,
    groups,
    agents: agents.reduce((sum, [, , count]) => sum + count, 0),
    agentStates,
    retiredStates,
    alsoFailed,
    changesAt: all?.changes_at == null ? null : Number(all.changes_at),
  };
}

type AgentCount = [isRetired: boolean, state: keyof FleetCounts['agentStates'], count: number, hasFailed: boolean];
/** Sessions that lists show in a group other than their listed state. */
type RegroupedCount = [from: ListedState, to: SessionGroup, count: number];

// `state` is an agent's most urgent one. Only `needs-input` ranks above `failed`.
const AGENTS = `SELECT is_retired, ifnull(state, 'none') AS state, count(*) AS count,
  iif(state = 'needs-input', body->>'$.listedStates.failed' > 0, 0) AS has_failed FROM agents`;

function toAgentCount({ is_retired, state, count, has_failed }: Row): AgentCount {
  return [Number(is_retired) === 1, String(state) as AgentCount[1], Number(count), Number(has_failed) === 1];
}

const REGROUPED = `SELECT listed_as, state, grouped_as, count(*) AS count
  FROM sessions WHERE grouped_as IS NOT NULL`;

function toRegroupedCount({ listed_as, state, grouped_as, count }: Row): RegroupedCount {
  return [String(listed_as ?? state) as ListedState, String(grouped_as) as SessionGroup, Number(count)];
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
