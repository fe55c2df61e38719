import type { MarkInbox, SeeInsights } from '@interlude/protocol/commands';
import type { InboxItem, InboxMarked, InboxMarks, InboxPerson } from '@interlude/protocol/inbox';
import { HOOK_FATAL } from '@interlude/protocol/insight';
import { WEBHOOK_SETTLE_MS } from '@interlude/protocol/limits';
import { comparePositions, type Position, positionToNumber } from '@interlude/protocol/position';
import type { InsightsSeen, SessionSummary } from '@interlude/protocol/read-models';
import type { Scope } from '@interlude/protocol/scope';
import { failedSince, seenStateOf } from '@interlude/protocol/session-predicates';
import { DONE_ONCE_SEEN } from '@interlude/protocol/vocabulary';
import type { Row } from '@libsql/client';
import {
  inboxColumns,
  inboxItemFromRow,
  SESSION_ROW,
  sessionFromRow,
  TASK_ROW,
  taskFromRow,
} from '@/db/read-model-rows';
import { positionIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { Writes, WriteTransaction } from '@/db/writes';
import { inboxPerson } from '@/lib/server/access/principal';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { type FailureTally, NO_FAILURES } from '@/lib/server/ingest/batch-sessions';
import type { AgentFact } from '@/lib/server/ingest/facts';
import { requireAgent } from './accept-command';

/** Items per transaction, so other writers get a turn in between. */
const AT_ONCE = 50;

/**
 * `POST /inbox/marks`: marks inbox items as seen, snoozed or claimed, or reverts that.
 *
 * A mark applies to the item as it was shown: an item that has changed since stays unmarked, and only the failures that
 * were shown become seen. A seen failure is done, also in its session or agent. A claim stays with its owner unless
 * `takeOver` is set.
 *
 * Failure: many items take several transactions. After an interruption, repeating the request completes the work.
 *
 * @returns the items as they are now; idempotent
 */
export async function postMarks(
  { body, principal }: RequestContext<never, { body: MarkInbox }>,
  { database: { writes }, ...server }: ServerContext,
): Promise<InboxMarked> {
  const now = server.now();
  const { scope } = principal;
  const by = inboxPerson(principal);
  const shown = [...shownItems(body)];
  const changed: string[] = [];
  const applied: string[] = [];
  for (let index = 0; index < shown.length; index += AT_ONCE) {
    const some = new Map(shown.slice(index, index + AT_ONCE));
    const result = await writes.run((transaction) => markSome(transaction, some, body, by, scope, now));
    changed.push(...result.changed);
    applied.push(...result.applied);
    await markFailuresSeen(writes, result.failures, now);
  }
  return writes.run(async (transaction) => {
    const { rows } = await transaction.execute(positionIn(scope));
    const items = await readItems(
      transaction,
      shown.map(([id]) => id),
      scope,
    );
    return { items, changed, applied, position: String(rows[0]?.position) };
  });
}

/**
 * @returns `changed`: items that have changed since they were shown; `applied`: items that the mark changes; `failures`:
 *   the last seen position, by agent
 */
async function markSome(
  transaction: WriteTransaction,
  shown: ReadonlyMap<string, Position | undefined>,
  body: MarkInbox,
  by: InboxPerson,
  scope: Scope,
  now: number,
): Promise<{ changed: string[]; applied: string[]; failures: Map<string, number> }> {
  const changed: string[] = [];
  const applied: string[] = [];
  const failures = new Map<string, number>();
  const facts: AgentFact[] = [];
  const marks = new Map<string, Map<string, InboxMarks>>();
  const unseen: Position[] = [];
  const items = await readItems(transaction, shown.keys(), scope);
  const sessions = await readSessions(transaction, items);
  for (const item of items) {
    const isDone = item.doneAt !== null;
    if (isDone && body.mark !== 'unseen') continue;
    transaction.touch(`agent:${item.agentId}`);
    const session = sessions.get(item.sessionId ?? '');
    const upTo = shown.get(item.id) ?? item.updatedPosition;
    const isChanged = isDone
      ? comparePositions(item.updatedPosition, upTo) > 0 || !(await isReopenable(transaction, item, session))
      : comparePositions(item.openedPosition, upTo) > 0;
    if (isChanged) changed.push(item.id);
    // The item changes with each failure that it counts, so its position is an upper bound of the failures that were
    // shown.
    const isSeen = body.mark === 'seen';
    const isHook = isSeen && item.kind === 'hook-failure';
    if (isHook) failures.set(columnText(item.agentId), positionToNumber(upTo));
    if (isChanged) continue;
    const isArranged = item.kind === 'failure' && session !== undefined && (isSeen || isDone);
    if (isArranged) facts.push(arranged(session, isSeen));
    const after = marked(item, body, by, now);
    if (isArranged || isHook || after !== null) applied.push(item.id);
    if (after === null) continue;
    if (body.mark === 'unseen') unseen.push(item.openedPosition);
    const ofAgent = marks.get(item.agentId) ?? new Map();
    marks.set(item.agentId, ofAgent.set(item.id, after));
  }
  for (const [agentId, ofAgent] of marks) facts.push({ kind: 'inbox-marked', agentId, marks: ofAgent });
  await appendFacts(transaction, now, facts);
  if (unseen.length > 0) await sendAgain(transaction, unseen, now);
  return { changed, applied, failures };
}

/** Queues webhook deliveries again that were withdrawn because their items had been seen. */
async function sendAgain(transaction: WriteTransaction, opened: readonly Position[], now: number): Promise<void> {
  await transaction.execute({
    sql: `UPDATE webhook_deliveries SET state = 'waiting', due_at = ?
          WHERE state = 'withdrawn' AND position IN (SELECT value FROM json_each(?))`,
    args: [now + WEBHOOK_SETTLE_MS, JSON.stringify(opened.map(positionToNumber))],
  });
}

/** The items to mark, each with the position at which it was shown; undefined means the current one. */
function shownItems({ items, ids = [] }: MarkInbox): Map<string, Position | undefined> {
  if (items === undefined) return new Map(ids.map((id) => [id, undefined]));
  return new Map(items.map(({ id, updatedPosition }) => [id, updatedPosition]));
}

/** @returns null if the mark changes nothing */
function marked(
  item: InboxItem,
  { mark, until, takeOver }: MarkInbox,
  by: InboxPerson,
  now: number,
): InboxMarks | null {
  const { seenAt, snoozedUntil, claim, doneAt } = item;
  const marks = { seenAt, snoozedUntil, claim, doneAt };
  switch (mark) {
    case 'seen':
      // This item derives from other rows, which the same transaction changes.
      if (item.kind === 'failure' || item.kind === 'hook-failure') return null;
      return seenAt === null
        ? { ...marks, seenAt: now, doneAt: DONE_ONCE_SEEN.includes(item.kind) ? now : null }
        : null;
    case 'unseen':
      return seenAt === null ? null : { ...marks, seenAt: null, doneAt: null };
    case 'snoozed':
      return snoozedUntil === until ? null : { ...marks, snoozedUntil: until ?? null };
    case 'unsnoozed':
      return snoozedUntil === null ? null : { ...marks, snoozedUntil: null };
    case 'claimed': {
      const isOwnClaim = claim !== null && claim.by.id === by.id;
      const isClaimedByOther = claim !== null && !isOwnClaim && takeOver !== true;
      if (isClaimedByOther || (isOwnClaim && claim.by.name === by.name)) return null;
      return { ...marks, claim: { by, at: isOwnClaim ? claim.at : now } };
    }
    case 'released':
      return claim === null ? null : { ...marks, claim: null };
  }
}

/** A fact that marks a session's state seen or unseen. The projection completes or reopens the failure's item. */
function arranged(session: SessionSummary, isSeen: boolean): AgentFact {
  const { id, agentId, arrangement } = session;
  const seenState = isSeen ? seenStateOf(session) : null;
  return { kind: 'session-arranged', agentId, sessionId: id, arrangement: { ...arrangement, seenState } };
}

/** True if the cause of a done item remains and `unseen` may reopen it. */
async function isReopenable(
  transaction: WriteTransaction,
  { kind, seenAt, task }: InboxItem,
  session: SessionSummary | undefined,
): Promise<boolean> {
  if (session === undefined) return false;
  const { arrangement, lostCount, quarantinedCount } = session;
  if (kind === 'failure') return arrangement.archivedAt === null && failedSince(session) !== null;
  if (seenAt === null || !DONE_ONCE_SEEN.includes(kind)) return false;
  if (task === undefined) return arrangement.archivedAt === null && lostCount + quarantinedCount > 0;
  const { rows } = await transaction.execute({
    sql: `SELECT ${TASK_ROW.columns('t')} FROM tasks AS t WHERE t.session_id = ? AND t.position = ?`,
    args: [columnText(session.id), positionToNumber(task.position)],
  });
  return rows.some((row) => taskFromRow(row).isUndelivered === true);
}

/** Sessions of failures and of done items, by id. */
async function readSessions(
  transaction: WriteTransaction,
  items: readonly InboxItem[],
): Promise<Map<string, SessionSummary>> {
  const wanted = items.filter(({ kind, doneAt }) => kind === 'failure' || doneAt !== null);
  if (wanted.length === 0) return new Map();
  const { rows } = await transaction.execute({
    sql: `SELECT ${SESSION_ROW.columns('s')} FROM json_each(?) AS wanted JOIN sessions AS s ON s.id = wanted.value`,
    args: [JSON.stringify(wanted.map(({ sessionId }) => columnText(sessionId ?? '')))],
  });
  return new Map(rows.map(sessionFromRow).map((session) => [session.id, session]));
}

async function readItems(transaction: WriteTransaction, ids: Iterable<string>, scope: Scope): Promise<InboxItem[]> {
  const { rows } = await transaction.execute({
    sql: `SELECT ${inboxColumns('i')} FROM json_each(?) AS wanted JOIN inbox AS i ON i.id = wanted.value
            AND ${sessionsIn(scope, 'i.session_id', 'i.agent_id')}
          ORDER BY wanted.key`,
    args: [JSON.stringify([...ids].map(columnText))],
  });
  return rows.map(inboxItemFromRow);
}

/** Maximum sessions recounted, and maximum failures marked, per transaction. */
const MAX_SESSIONS = 50;
const MAX_FAILURES = 2_000;

/** The failures of one agent to mark. */
interface Range {
  agentId: string;
  upTo: number;
  /** The agent's sessions up to this number have been recounted. */
  countedTo: number;
}

/**
 * Marks agents' failures as seen, each up to a position.
 *
 * Ordering: first the agents' sessions are recounted, then the failures are marked, the oldest of each agent first, and
 * in the last of these transactions the agents are recounted. So an agent's seen failures are always older than its
 * unseen ones.
 * Failure: sessions and failures may be numerous, so the work takes several transactions. After an interruption the
 * newest failures are still unseen, and repeating the call completes the work.
 *
 * @param upTo position by agent, with ids as their column stores them
 * @returns the number of newly seen failures by agent
 */
async function markFailuresSeen(
  writes: Writes,
  upTo: ReadonlyMap<string, number>,
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const seen = new Map<string, number>();
  let ranges = [...upTo].map(([agentId, at]): Range => ({ agentId, upTo: at, countedTo: 0 }));
  while (ranges.length > 0) {
    const current = ranges;
    const keys = current.map(({ agentId }) => `agent:${agentId}` as const);
    const { rangesLeft, marked } = await writes.run((transaction) => markStep(transaction, current, now), { keys });
    for (const agentId of marked) seen.set(agentId, (seen.get(agentId) ?? 0) + 1);
    ranges = rangesLeft;
  }
  return seen;
}

/** @returns the remaining ranges, and the agent of each failure that was marked */
async function markStep(
  transaction: WriteTransaction,
  ranges: readonly Range[],
  now: number,
): Promise<{ rangesLeft: Range[]; marked: string[] }> {
  const open = await unseenIn(transaction, ranges);
  const facts: AgentFact[] = [];
  const found = await batchEach(transaction, open, MARKED, ({ agentId, countedTo }) => [agentId, countedTo]);
  const { rangesLeft, recounted } = takeSessions(open, found);
  const counts = await batchEach(transaction, recounted, UNSEEN, ({ agentId, upTo, sessionIds }) => [
    ...[HOOK_FATAL, agentId, upTo],
    JSON.stringify(sessionIds),
  ]);
  for (const [index, { agentId, upTo, sessionIds }] of recounted.entries()) {
    const textOrNull = (value: unknown) => (value === null ? null : String(value));
    const unseen = new Map((counts[index] ?? []).map((row) => [textOrNull(row.session_id), tallyOf(row)]));
    facts.push({ kind: 'marks-seen', agentId, upTo, unseen, sessionIds });
  }
  if (rangesLeft.length > 0) {
    await appendFacts(transaction, now, facts);
    return { rangesLeft, marked: [] };
  }
  const wanted = JSON.stringify(open.map(({ agentId, upTo }) => [agentId, upTo]));
  const { rows } = await transaction.execute({ sql: MARK, args: [wanted, now, MAX_FAILURES] });
  const unfinished = await unseenIn(transaction, open);
  const done = open.filter((range) => !unfinished.includes(range));
  const remaining = await batchEach(transaction, done, LEFT, ({ agentId, upTo }) => [HOOK_FATAL, agentId, upTo]);
  for (const [index, { agentId }] of done.entries()) {
    facts.push({ kind: 'failures-seen', agentId, remaining: tallyOf(remaining[index]?.[0]) });
  }
  await appendFacts(transaction, now, facts);
  return {
    rangesLeft: unfinished.map((range) => ({ ...range, countedTo: Number.MAX_SAFE_INTEGER })),
    marked: rows.map(({ agent_id }) => String(agent_id)),
  };
}

/** The ranges with an unseen failure. */
async function unseenIn(transaction: WriteTransaction, ranges: readonly Range[]): Promise<Range[]> {
  const newest = await batchEach(transaction, ranges, NEWEST, ({ agentId, upTo }) => [agentId, upTo]);
  return ranges.filter((_, index) => newest[index]?.[0]?.seen_at === null);
}

/** Selects as many sessions as one transaction may recount. */
function takeSessions(ranges: readonly Range[], found: readonly Row[][]) {
  const rangesLeft: Range[] = [];
  const recounted: (Range & { sessionIds: string[] })[] = [];
  let room = MAX_SESSIONS;
  let isMore = false;
  for (const [index, range] of ranges.entries()) {
    const all = found[index] ?? [];
    const rows = all.slice(0, room);
    room -= rows.length;
    isMore ||= all.length > rows.length;
    if (rows.length > 0) recounted.push({ ...range, sessionIds: rows.map(({ id }) => String(id)) });
    rangesLeft.push({ ...range, countedTo: Number(rows.at(-1)?.number ?? range.countedTo) });
  }
  return { rangesLeft: isMore ? rangesLeft : [], recounted };
}

/** Runs a statement for each item, all in one round trip. */
async function batchEach<T>(
  transaction: WriteTransaction,
  items: readonly T[],
  sql: string,
  argsOf: (item: T) => (string | number)[],
): Promise<Row[][]> {
  if (items.length === 0) return [];
  const results = await transaction.batch(items.map((item) => ({ sql, args: argsOf(item) })));
  return results.map(({ rows }) => rows);
}

function tallyOf(row: Row | undefined): FailureTally {
  return row === undefined ? NO_FAILURES : { all: Number(row.failures), other: Number(row.other ?? 0) };
}

const FAILURES = 'insights INDEXED BY insights_by_agent';

/** If the newest failure is seen, so are all earlier ones. */
const NEWEST = `SELECT seen_at FROM ${FAILURES} WHERE agent_id = ? AND is_failure = 1 AND position <= ?
  ORDER BY position DESC LIMIT 1`;

const MARKED = `SELECT id, number FROM sessions INDEXED BY sessions_with_insights
  WHERE agent_id = ? AND insight_count > 0 AND number > ? ORDER BY number LIMIT ${MAX_SESSIONS + 1}`;

const TALLY = 'count(*) AS failures, sum(signal <> ?1) AS other';
const UNSEEN_AFTER = 'agent_id = ?2 AND is_failure = 1 AND position > ?3 AND seen_at IS NULL';

/** The database counts them, because there may be tens of thousands. */
const UNSEEN = `SELECT session_id, ${TALLY} FROM ${FAILURES}
  WHERE ${UNSEEN_AFTER} AND (session_id IS NULL OR session_id IN (SELECT value FROM json_each(?4))) GROUP BY session_id`;
const LEFT = `SELECT ${TALLY} FROM ${FAILURES} WHERE ${UNSEEN_AFTER}`;

/** Skips the seen failures, which all precede the unseen ones. */
const MARK = `UPDATE insights SET seen_at = ?2 WHERE position IN (
    SELECT one.position FROM json_each(?1) AS wanted CROSS JOIN insights AS one INDEXED BY insights_by_agent
      ON one.agent_id = wanted.value->>0 AND one.is_failure = 1 AND one.position <= wanted.value->>1
        AND one.position > ifnull((SELECT seen.position FROM insights AS seen INDEXED BY insights_by_agent
          WHERE seen.agent_id = wanted.value->>0 AND seen.is_failure = 1 AND seen.position <= wanted.value->>1
            AND seen.seen_at IS NOT NULL ORDER BY seen.position DESC LIMIT 1), -1)
    ORDER BY wanted.key, one.position LIMIT ?3) RETURNING agent_id`;

/**
 * `POST /agents/:id/insights/seen` `{"upTo"}`: marks an agent's failures as seen up to a position.
 *
 * @returns the number of newly seen and of unseen failures
 * @throws AppError `not_found`
 */
export async function postInsightsSeen(
  { ids: { agentId }, body: { upTo } }: RequestContext<'agentId', { body: SeeInsights }>,
  { database: { writes }, now }: ServerContext,
): Promise<InsightsSeen> {
  const id = columnText(agentId);
  const seen = (await markFailuresSeen(writes, new Map([[id, positionToNumber(upTo)]]), now())).get(id) ?? 0;
  const { insightCount, updatedPosition } = await writes.run((transaction) => requireAgent(transaction, agentId));
  return { seen, unseen: insightCount, position: updatedPosition };
}
