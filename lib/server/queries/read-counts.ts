import type { FleetCounts } from '@interlude/protocol/inbox';
import { LISTED_STATES } from '@interlude/protocol/session-states';
import { type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import type { Row } from '@libsql/client';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { ReadScope } from '@/lib/server/access/request-context';
import { countListed } from './read-agents';
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
    SELECT kind, count(DISTINCT owner) AS owners, NULL AS needing, NULL AS changes_at FROM open GROUP BY kind
    UNION ALL SELECT NULL, count(DISTINCT owner), count(DISTINCT iif(needs_person, owner, NULL)),
      min(iif(snoozed_until > ?1, snoozed_until, NULL)) FROM open`;
  const { position, found } = await readSnapshot<[Row, number, ...ListedCount[]]>(view, [
    query(rawRow, open, now, columnText(person)),
    countListed(agentsIn(view.scope, 'id')),
    ...countsByListedState(view),
  ]);
  const [inbox, [agents = 0], ...states] = found;
  const kinds = noItems();
  const sessions = Object.fromEntries(LISTED_STATES.map((state) => [state, 0])) as FleetCounts['sessions'];
  for (const [state, count] of states.flat()) sessions[state] += count;
  for (const { kind, owners } of inbox) if (kind !== null) kinds[kind as InboxKind] = Number(owners);
  const all = inbox.at(-1);
  return {
    position,
    needsYou: Number(all?.needing ?? 0),
    inbox: { all: Number(all?.owners ?? 0), kinds },
    sessions,
    agents,
    changesAt: all?.changes_at == null ? null : Number(all.changes_at),
  };
}
