import type { ObligationWaivedValue } from '@interlude/protocol/ag-ui';
import type { Waive, WaiveAnswer } from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { Asked } from '@/lib/server/access/asked';
import { personOf } from '@/lib/server/access/person-of';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { askedBefore, namedAsk, noteAsk } from './asks';
import { findOwed, quoteOf } from './find-owed';

/**
 * `POST /sessions/:id/obligations/:messageId/waive`: a person says that a message no longer needs a reply. It asks
 * nothing of the runner, so it also works when the agent has ended.
 *
 * @returns once it is on disk; the same `clientId` again is answered the same
 * @throws AppError `not_found`, `conflict`: `obligation_settled`, `client_id_reused`
 */
export async function postWaive(
  {
    ids: { sessionId, messageId },
    body: { reason, clientId },
    principal,
  }: Asked<'sessionId' | 'messageId', { body: Waive }>,
  server: ServerContext,
): Promise<WaiveAnswer> {
  const now = server.now();
  const named = namedAsk(sessionId, clientId, { type: 'obligation.waive', messageId, reason });
  return server.database.writes.run(async (transaction): Promise<WaiveAnswer> => {
    if ((await askedBefore(transaction, named)) !== null) return { messageId, state: 'waived' };
    const obligation = await findOwed(transaction, sessionId, messageId);
    const value: ObligationWaivedValue = {
      message_id: messageId,
      about: quoteOf(obligation.text),
      by: personOf(principal),
      ...(reason?.trim() ? { reason: reason.trim() } : {}),
      ...(clientId === undefined ? {} : { client_id: clientId }),
    };
    const event = { type: 'CUSTOM', name: CUSTOM.obligationWaived, value };
    await appendFacts(transaction, now, [{ agentId: obligation.agentId, sessionId: obligation.sessionId, event }]);
    await noteAsk(transaction, named, null);
    return { messageId, state: 'waived' };
  });
}
