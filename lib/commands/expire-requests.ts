import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { appendFacts } from '@/lib/ingest/append-facts';
import type { EventFact } from '@/lib/ingest/facts';
import { rememberedFold } from '@/lib/ingest/remembered-fold';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import { REQUEST_GRACE_MS } from '@/lib/protocol/limits';

/**
 * Ends requests whose time is over and whose agent says nothing: their sessions would wait for ever.
 *
 * Ordering: told in the sessions' own logs, so that transcript, session list and every client say the same.
 * Failure: should the agent tell later in that turn how one ended, that is what is shown.
 */

const WAITING = shapeOf(sessions, 'id', 'agentId', 'memory');

/** Most sessions of one transaction, and most requests. */
const MAX_TOLD = 50;
const MAX_ENDED = 5_000;

/** The sessions with a request that has expired. */
export function overdueSessions(now: number): DueRows {
  return {
    table: 'sessions',
    key: 'id',
    where: `state = 'needs-input' AND answer_by <= ?1`,
    args: [now - REQUEST_GRACE_MS],
  };
}

/** @returns how many sessions there was something to tell; call again until it is 0 */
export async function expireRequests(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = selectDue(overdueSessions(now), choice, WAITING.columns(), MAX_TOLD);
  const { rows } = await transaction.execute(due);
  const events = rows.flatMap((row) => {
    const { id: sessionId, agentId, memory } = WAITING.read(row);
    const expired = (rememberedFold(memory).pendingRequests ?? []).filter(
      ({ answerBy }) => answerBy !== undefined && answerBy <= now - REQUEST_GRACE_MS,
    );
    return expired.map(({ id }): EventFact => {
      const value = { request_id: id, outcome: 'expired' };
      const event = { type: 'CUSTOM', name: CUSTOM.requestResolved, value } as const;
      return { agentId, sessionId, event };
    });
  });
  await appendFacts(transaction, now, events.slice(0, MAX_ENDED));
  return rows.length;
}
