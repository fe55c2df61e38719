import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { serverKey } from '@/db/server-keys';
import { keyedDigest } from '@/lib/access/secret';
import { cutText } from '@/lib/protocol/cut-text';
import { readInsight, type SentInsight } from '@/lib/protocol/insight';
import { MAX_ID_LENGTH } from '@/lib/protocol/limits';
import { reachesAgent, type Scope } from '@/lib/protocol/scope';
import type { Judgement } from './judge-record';
import type { JudgedRecord } from './plan-batch';

/**
 * A session belongs to the first agent that writes to its id. Refusing a runner whose token does not reach that agent
 * would reveal that the id is in use, and a runner could take an id before its agent does. So the server gives that runner
 * a session of its own, under an id that the server makes. The runner never sees the id: ingest renames what it sends,
 * and everything sent to it names the session by the runner's own id, the alias.
 *
 * Ordering: an alias is stored before the first record of its session, and never changes.
 */

/** Characters added to the alias: `~` and 16 hex digits. */
const SUFFIX_LENGTH = 17;
/** Most aliases of a database that a process remembers. */
const MOST_KNOWN = 10_000;

/** The session that an alias stands for, and the agent that has a session of the alias's own name. */
interface Aliased {
  id: string;
  owner: string;
}

/** By agent and alias, by database. */
const known = new WeakMap<Database['reader'], Map<string, Aliased>>();

/**
 * Records with the sessions renamed whose aliases this process knows, as far as the agents that have those ids are out of
 * reach. Without any, the same array.
 */
export function renamed(
  { reader }: Pick<Database, 'reader'>,
  records: readonly JudgedRecord[],
  reach: Scope,
): readonly JudgedRecord[] {
  const aliases = known.get(reader);
  if (aliases === undefined || reach.kind === 'everything') return records;
  const idOf = (agentId: string, alias: string) => {
    const aliased = aliases.get(keyOf(agentId, alias));
    return aliased === undefined || reachesAgent(reach, aliased.owner) ? alias : aliased.id;
  };
  return records.map(({ raw, judgement }) => ({ raw, judgement: renameIn(judgement, idOf) }));
}

/**
 * Makes aliases for sessions that belong to agents out of the sender's reach, or finds those that are there. `renamed`
 * knows them then.
 *
 * @param foreign those sessions, each with the agent that has it
 */
export async function makeAliases(
  database: Pick<Database, 'reader' | 'writes'>,
  records: readonly JudgedRecord[],
  foreign: ReadonlyMap<string, string>,
): Promise<void> {
  const key = await serverKey(database, 'session-alias');
  const wanted = new Map<string, { id: string; agentId: string; alias: string; owner: string }>();
  for (const { judgement } of records) {
    const { agentId, sessionIds } = namedIn(judgement);
    for (const alias of sessionIds) {
      const owner = foreign.get(alias);
      if (agentId === null || owner === undefined) continue;
      const of = keyOf(agentId, alias);
      const suffix = keyedDigest(key, of).slice(0, SUFFIX_LENGTH - 1);
      const id = `${cutText(columnText(alias), MAX_ID_LENGTH - SUFFIX_LENGTH)}~${suffix}`;
      wanted.set(of, { id, agentId: columnText(agentId), alias: columnText(alias), owner });
    }
  }
  const rows = JSON.stringify([...wanted.values()].map(({ id, agentId, alias }) => [id, agentId, alias]));
  // The stored id counts: it was made with another key if the server's key has been replaced since.
  const stored = await database.writes.run(async (transaction) => {
    await transaction.execute({
      sql: `INSERT INTO session_aliases (session_id, agent_id, alias)
        SELECT value->>0, value->>1, value->>2 FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`,
      args: [rows],
    });
    return transaction.execute({
      sql: `SELECT wanted.key AS place, a.session_id FROM json_each(?) AS wanted
        CROSS JOIN session_aliases AS a ON a.alias = wanted.value->>2 AND a.agent_id = wanted.value->>1`,
      args: [rows],
    });
  });
  const aliases = known.get(database.reader) ?? new Map<string, Aliased>();
  known.set(database.reader, aliases);
  const idAt = new Map(stored.rows.map(({ place, session_id: id }) => [Number(place), String(id)]));
  [...wanted].forEach(([of, { owner }], place) => {
    const id = idAt.get(place);
    if (id !== undefined) aliases.set(of, { id, owner });
  });
  for (const oldest of aliases.keys()) {
    if (aliases.size <= MOST_KNOWN) break;
    aliases.delete(oldest);
  }
}

function keyOf(agentId: string, alias: string): string {
  return JSON.stringify([agentId, alias]);
}

/** The agent of a record and the sessions that it names. */
function namedIn(judgement: Judgement): { agentId: string | null; sessionIds: string[] } {
  const about: { agentId: string | null; sessionId?: unknown } = judgement.taken ? judgement.record : judgement;
  const inLog = insightOf(judgement)?.session?.id;
  const sessionIds = [about.sessionId, inLog].filter((id): id is string => typeof id === 'string');
  return { agentId: about.agentId, sessionIds };
}

function insightOf(judgement: Judgement) {
  return judgement.taken && judgement.record.kind === 'log' ? readInsight(judgement.record.log.insight) : null;
}

function renameIn(judgement: Judgement, sessionOf: (agentId: string, alias: string) => string): Judgement {
  const { agentId, sessionIds } = namedIn(judgement);
  const idOf = (alias: string) => (agentId === null ? alias : sessionOf(agentId, alias));
  if (sessionIds.every((id) => idOf(id) === id)) return judgement;
  if (!judgement.taken) return { ...judgement, sessionId: judgement.sessionId && idOf(judgement.sessionId) };
  const { record } = judgement;
  const next = { ...record };
  if ('sessionId' in next && typeof next.sessionId === 'string') next.sessionId = idOf(next.sessionId);
  if (next.kind === 'log' && insightOf(judgement)?.session?.id) {
    const insight = next.log.insight as SentInsight;
    next.log = { ...next.log, insight: { ...insight, sessionId: idOf(insight.sessionId ?? '') } };
  }
  return { taken: true, record: next };
}
