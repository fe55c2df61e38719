import { columnText } from '@/db/column-text';
import { obligationFromRow } from '@/db/fleet-rows';
import type { WriteTransaction } from '@/db/write-queue';
import type { Asked } from '@/lib/access/asked';
import type { ServerContext } from '@/lib/access/server-context';
import { appendFacts } from '@/lib/ingest/append-facts';
import { CUSTOM, type ObligationWaivedValue } from '@/lib/protocol/ag-ui';
import { OPERATOR, type Waive, type WaiveAnswer } from '@/lib/protocol/commands';
import { AppError } from '@/lib/protocol/errors';
import type { Obligation } from '@/lib/protocol/read-models';
import { askedBefore, namedAsk, noteAsk } from './asks';
import { conflict } from './refusals';

/** How much of its message a waiver quotes. */
const QUOTE_LENGTH = 80;

/**
 * `POST /sessions/:id/obligations/:messageId/waive`: a person says that a message no longer needs a reply. It asks
 * nothing of the runner, so it also works when the agent has ended.
 *
 * @returns once it is on disk; the same `clientId` again is answered the same
 * @throws AppError `not_found`, `conflict`: `obligation_settled`, `client_id_reused`
 */
export async function postWaive(
  { ids: { sessionId, messageId }, body: { reason, clientId } }: Asked<'sessionId' | 'messageId', { body: Waive }>,
  server: ServerContext,
): Promise<WaiveAnswer> {
  const now = server.now();
  const named = namedAsk(sessionId, clientId, { type: 'obligation.waive', messageId, reason });
  return server.database.writes.run(async (transaction): Promise<WaiveAnswer> => {
    if ((await askedBefore(transaction, named)) !== null) return { messageId, state: 'waived' };
    const obligation = await findObligation(transaction, sessionId, messageId);
    const { state } = obligation;
    if (state !== 'owed') {
      const how = state === 'answered' ? 'The message was answered' : 'The reply was waived before';
      throw conflict('obligation_settled', `${how}: nothing is owed any more.`, { state });
    }
    const value: ObligationWaivedValue = {
      message_id: messageId,
      about: quoteOf(obligation.text),
      by: OPERATOR.id,
      ...(reason?.trim() ? { reason: reason.trim() } : {}),
      ...(clientId === undefined ? {} : { client_id: clientId }),
    };
    const event = { type: 'CUSTOM', name: CUSTOM.obligationWaived, value };
    await appendFacts(transaction, now, [{ agentId: obligation.agentId, sessionId: obligation.sessionId, event }]);
    await noteAsk(transaction, named, null);
    return { messageId, state: 'waived' };
  });
}

async function findObligation(
  transaction: WriteTransaction,
  sessionId: string,
  messageId: string,
): Promise<Obligation> {
  const { rows } = await transaction.execute({
    sql: 'SELECT * FROM obligations WHERE session_id = ? AND message_id = ?',
    args: [columnText(sessionId), columnText(messageId)],
  });
  if (rows[0] !== undefined) return obligationFromRow(rows[0]);
  throw new AppError(
    'not_found',
    `No reply was ever owed to ${JSON.stringify(messageId)} in the session ${JSON.stringify(sessionId)}. GET /api/v1/agents/:id/reply-obligations lists what is owed.`,
  );
}

function quoteOf(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  const characters = [...line];
  return characters.length > QUOTE_LENGTH ? `${characters.slice(0, QUOTE_LENGTH).join('')}…` : line;
}
