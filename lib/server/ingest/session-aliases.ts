import type { ProducerRef } from '@interlude/protocol/envelope';
import { readInsight, type SentInsight } from '@interlude/protocol/insight';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { reachesAgent, type Scope } from '@interlude/protocol/scope';
import { truncateText } from '@interlude/protocol/text';
import type { Database } from '@/db/client';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { keyedDigest } from '@/lib/server/access/secret';
import { aliasKey, type BatchScope } from '@/lib/server/event-log/batch-scope';
import type { BatchState } from '@/lib/server/event-log/read-batch-state';
import { collectScope } from './collect-scope';
import { namesOf, type ValidatedRecord, type Validation } from './validate-record';

/**
 * A session belongs to the first agent that writes to its id. Refusing a runner whose token does not cover that agent
 * would reveal that the id is in use, and would let a runner claim an id before its agent does. So the server gives
 * that runner a separate session under a generated id, which the runner never sees: ingest renames the session in the
 * runner's records, and everything sent to the runner uses the runner's own id, the alias.
 *
 * Ordering: an alias is stored with the first record of its session and never changes, even if the other session is
 * removed or the token gains access to the other agent.
 */

/** Characters appended to the alias: `~` and 16 hex digits. */
const SUFFIX_LENGTH = 17;
const MAX_CACHED_ALIASES = 10_000;

/** The part of a batch that decides its aliases. */
export interface AliasedBatch {
  source: ProducerRef;
  records: readonly ValidatedRecord[];
  scope: BatchScope;
  /** Agents for which the sender may write. */
  reach: Scope;
  /** The server key for new aliases; null for a sender that reaches every agent. */
  aliasSecret: Uint8Array | null;
}

/** Session ids by `aliasKey`. */
export type AliasedIds = ReadonlyMap<string, string>;

/** Stored aliases by database, so most batches can be renamed without a read. */
const cachedAliases = new WeakMap<Database['reader'], Map<string, string>>();

export function knownAliases({ reader }: Pick<Database, 'reader'>, scope: BatchScope): AliasedIds {
  return idsOf(scope, (key) => cachedAliases.get(reader)?.get(key) ?? null);
}

export function rememberAliases({ reader }: Pick<Database, 'reader'>, ids: AliasedIds): void {
  if (ids.size === 0) return;
  const all = cachedAliases.get(reader) ?? new Map<string, string>();
  cachedAliases.set(reader, all);
  for (const [key, id] of ids) all.set(key, id);
  for (const oldest of all.keys()) {
    if (all.size <= MAX_CACHED_ALIASES) break;
    all.delete(oldest);
  }
}

/**
 * Session ids for the aliases in a batch: stored ones, and new ones for sessions of agents outside the sender's scope.
 */
export function resolveAliases(
  { scope, reach, aliasSecret }: Pick<AliasedBatch, 'scope' | 'reach' | 'aliasSecret'>,
  { sessionByAlias, sessions }: Pick<BatchState, 'sessionByAlias' | 'sessions'>,
): AliasedIds {
  return idsOf(scope, (key, alias) => {
    const owner = sessions.get(alias)?.summary.agentId;
    const isForeign = owner !== undefined && !reachesAgent(reach, owner);
    return sessionByAlias.get(key) ?? (aliasSecret !== null && isForeign ? newId(aliasSecret, key, alias) : null);
  });
}

function idsOf(scope: BatchScope, find: (key: string, alias: string) => string | null): AliasedIds {
  const ids = new Map<string, string>();
  for (const [alias, agentId] of scope.names()) {
    const key = agentId === null ? null : aliasKey(agentId, alias);
    const id = key === null ? null : find(key, alias);
    if (key !== null && id !== null) ids.set(key, id);
  }
  return ids;
}

function newId(secret: Uint8Array, key: string, alias: string): string {
  const suffix = keyedDigest(secret, key).slice(0, SUFFIX_LENGTH - 1);
  return `${truncateText(columnText(alias), MAX_ID_LENGTH - SUFFIX_LENGTH)}~${suffix}`;
}

export async function storeAliases(
  transaction: WriteTransaction,
  ids: AliasedIds,
  { sessionByAlias }: Pick<BatchState, 'sessionByAlias'>,
): Promise<void> {
  const unstored = [...ids].filter(([key]) => !sessionByAlias.has(key)).map(([key, id]) => [id, ...JSON.parse(key)]);
  if (unstored.length === 0) return;
  await transaction.execute({
    sql: `INSERT INTO session_aliases (session_id, agent_id, alias)
      SELECT value->>0, value->>1, value->>2 FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`,
    args: [JSON.stringify(unstored)],
  });
}

/** @returns the same batch if there is nothing to rename */
export async function renameSessions<B extends Pick<AliasedBatch, 'source' | 'records' | 'scope'>>(
  batch: B,
  ids: AliasedIds,
): Promise<B> {
  if (ids.size === 0) return batch;
  const idOf = (agentId: string, alias: string) => ids.get(aliasKey(agentId, alias)) ?? alias;
  const records = batch.records.map(({ raw, validation }) => ({ raw, validation: renameRecord(validation, idOf) }));
  return { ...batch, records, scope: await collectScope(batch.source, records) };
}

function insightOf(validation: Validation) {
  return validation.isValid && validation.record.kind === 'log' ? readInsight(validation.record.log.insight) : null;
}

function renameRecord(validation: Validation, sessionOf: (agentId: string, alias: string) => string): Validation {
  const { agentId, sessionId } = namesOf(validation);
  const insightSessionId = insightOf(validation)?.session?.id;
  const idOf = (alias: string) => (agentId === null ? alias : sessionOf(agentId, alias));
  const names = [sessionId, insightSessionId].filter((id): id is string => typeof id === 'string');
  if (names.every((id) => idOf(id) === id)) return validation;
  if (!validation.isValid) return { ...validation, sessionId: validation.sessionId && idOf(validation.sessionId) };
  const { record } = validation;
  const next = { ...record };
  if ('sessionId' in next && typeof next.sessionId === 'string') next.sessionId = idOf(next.sessionId);
  if (next.kind === 'log' && insightSessionId) {
    const insight = next.log.insight as SentInsight;
    next.log = { ...next.log, insight: { ...insight, sessionId: idOf(insight.sessionId ?? '') } };
  }
  return { isValid: true, record: next };
}
