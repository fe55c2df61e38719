import type { MarkInbox } from '@interlude/protocol/commands';
import {
  DONE_ONCE_SEEN,
  type InboxItem,
  type InboxMarked,
  type InboxMarks,
  type InboxPerson,
} from '@interlude/protocol/inbox';
import { comparePositions, type Position, positionToNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import { standsSince } from '@interlude/protocol/session-standing';
import { INBOX_ROW, inboxItemFromRow, SESSION_ROW, sessionFromRow } from '@/db/read-model-rows';
import { positionIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from '@/lib/server/access/asked';
import { inboxPersonOf } from '@/lib/server/access/person-of';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { AgentFact } from '@/lib/server/ingest/facts';
import { seeFailures } from './see-failures';

/** Items of one transaction: others write in between. */
const AT_ONCE = 50;

/**
 * `POST /inbox/marks`: people have seen items, put them off, or take care of them.
 *
 * A mark is for what was shown: an item that has come up again since is left as it is, and of the failures around an
 * agent only those count as seen that were there. A failure that was seen is done, and its session or agent shows the
 * same. An item that somebody else has claimed stays theirs, unless it is taken over.
 *
 * Failure: many are marked some at a time. Whatever ends it half-way, the same again does the rest.
 *
 * @returns the items as they are now; the same again changes nothing
 */
export async function postMarks(
  { body, principal }: Asked<never, { body: MarkInbox }>,
  { database: { writes }, ...server }: ServerContext,
): Promise<InboxMarked> {
  const now = server.now();
  const { scope } = principal;
  const by = inboxPersonOf(principal);
  const shown = [...shownBy(body)];
  const changed: string[] = [];
  for (let at = 0; at < shown.length; at += AT_ONCE) {
    const some = new Map(shown.slice(at, at + AT_ONCE));
    const made = await writes.run((transaction) => markSome(transaction, some, body, by, scope, now));
    changed.push(...made.changed);
    await seeFailures(writes, made.failures, now);
  }
  return writes.run(async (transaction) => {
    const { rows } = await transaction.execute(positionIn(scope));
    const items = await readItems(
      transaction,
      shown.map(([id]) => id),
      scope,
    );
    return { items, changed, position: String(rows[0]?.position) };
  });
}

/** @returns those that have changed, and up to where people have seen the failures around agents */
async function markSome(
  transaction: WriteTransaction,
  shown: ReadonlyMap<string, Position | undefined>,
  body: MarkInbox,
  by: InboxPerson,
  scope: Scope,
  now: number,
): Promise<{ changed: string[]; failures: Map<string, number> }> {
  const changed: string[] = [];
  const failures = new Map<string, number>();
  const failed: InboxItem[] = [];
  const marks = new Map<string, Map<string, InboxMarks>>();
  for (const item of await readItems(transaction, shown.keys(), scope)) {
    if (item.doneAt !== null) continue;
    transaction.touch(`agent:${item.agentId}`);
    const upTo = shown.get(item.id) ?? item.updatedPosition;
    const isChanged = comparePositions(item.openedPosition, upTo) > 0;
    if (isChanged) changed.push(item.id);
    // it has changed with each failure that it counts
    const isSeen = body.mark === 'seen';
    if (isSeen && item.kind === 'hook-failure') failures.set(columnText(item.agentId), positionToNumber(upTo));
    if (isChanged) continue;
    if (isSeen && item.kind === 'failure') failed.push(item);
    const after = marked(item, body, by, now);
    if (after === null) continue;
    const ofAgent = marks.get(item.agentId) ?? new Map();
    marks.set(item.agentId, ofAgent.set(item.id, after));
  }
  const facts = await seenFailures(transaction, failed);
  for (const [agentId, ofAgent] of marks) facts.push({ kind: 'inbox-marked', agentId, marks: ofAgent });
  await appendFacts(transaction, now, facts);
  return { changed, failures };
}

/** What is marked, each with the position at which it was shown; undefined: as it is now. */
function shownBy({ items, ids = [] }: MarkInbox): Map<string, Position | undefined> {
  if (items === undefined) return new Map(ids.map((id) => [id, undefined]));
  return new Map(items.map(({ id, updatedPosition }) => [id, updatedPosition]));
}

/** What a mark makes of an item; null if nothing changes. */
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
      // it follows from other rows, which the same transaction has changed
      if (item.kind === 'failure' || item.kind === 'hook-failure') return null;
      return seenAt === null
        ? { ...marks, seenAt: now, doneAt: DONE_ONCE_SEEN.includes(item.kind) ? now : null }
        : null;
    case 'unseen':
      return seenAt === null ? null : { ...marks, seenAt: null };
    case 'snoozed':
      return snoozedUntil === until ? null : { ...marks, snoozedUntil: until ?? null };
    case 'unsnoozed':
      return snoozedUntil === null ? null : { ...marks, snoozedUntil: null };
    case 'claimed': {
      const isTheirs = claim !== null && claim.by.id === by.id;
      const isTaken = claim !== null && !isTheirs && takeOver !== true;
      if (isTaken || (isTheirs && claim.by.name === by.name)) return null;
      return { ...marks, claim: { by, at: isTheirs ? claim.at : now } };
    }
    case 'released':
      return claim === null ? null : { ...marks, claim: null };
  }
}

/** Their sessions show as seen too, and the failures are done by that. */
async function seenFailures(transaction: WriteTransaction, failed: readonly InboxItem[]): Promise<AgentFact[]> {
  if (failed.length === 0) return [];
  const { rows } = await transaction.execute({
    sql: `SELECT ${SESSION_ROW.columns('s')} FROM json_each(?) AS wanted JOIN sessions AS s ON s.id = wanted.value`,
    args: [JSON.stringify(failed.map(({ sessionId }) => columnText(sessionId ?? '')))],
  });
  return rows.map(sessionFromRow).map((session) => {
    const { id, agentId, arrangement } = session;
    const seen = { ...arrangement, seenState: standsSince(session) };
    return { kind: 'session-arranged', agentId, sessionId: id, arrangement: seen };
  });
}

/** Those that are there, for whoever has the scope. */
async function readItems(transaction: WriteTransaction, ids: Iterable<string>, scope: Scope): Promise<InboxItem[]> {
  const { rows } = await transaction.execute({
    sql: `SELECT ${INBOX_ROW.columns('i')} FROM json_each(?) AS wanted JOIN inbox AS i ON i.id = wanted.value
            AND ${sessionsIn(scope, 'i.session_id', 'i.agent_id')}
          ORDER BY wanted.key`,
    args: [JSON.stringify([...ids].map(columnText))],
  });
  return rows.map(inboxItemFromRow);
}
