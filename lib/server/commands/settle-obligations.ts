import type { ObligationAcceptedValue, ObligationWaivedValue } from '@interlude/protocol/ag-ui';
import type { AcceptReply, AcceptReplyResponse, Waive, WaiveResponse } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { Obligation } from '@interlude/protocol/read-models';
import { obligationFromRow } from '@/db/read-model-rows';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { operatorName } from '@/lib/server/access/principal';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { conflict, dedupeKey, findRepeat, recordRequest } from './accept-command';

/** Maximum length of the message excerpt in the event that records a decision. */
const QUOTE_LENGTH = 80;

type Place = 'sessionId' | 'messageId';

/**
 * `POST /sessions/:id/obligations/:messageId/waive`: marks a message as needing no reply. Works without a runner.
 *
 * @returns once the decision is on disk; idempotent per `clientId`
 * @throws AppError `not_found`, `conflict`: `obligation_settled`, `client_id_reused`
 */
export async function postWaive(
  context: RequestContext<Place, { body: Waive }>,
  server: ServerContext,
): Promise<WaiveResponse> {
  const { reason } = context.body;
  await decide(server, context, { type: 'obligation.waive', reason }, (_obligation, decision) => {
    const value: ObligationWaivedValue = { ...decision, ...(reason?.trim() ? { reason: reason.trim() } : {}) };
    return { name: CUSTOM.obligationWaived, value };
  });
  return { messageId: context.ids.messageId, state: 'waived' };
}

/**
 * `POST /sessions/:id/obligations/:messageId/accept`: accepts a text of the agent as the reply. Works without a runner.
 *
 * @returns once the decision is on disk; idempotent per `clientId`
 * @throws AppError `not_found`, `conflict`: `obligation_settled`, `candidate_changed`, `client_id_reused`
 */
export async function postAcceptReply(
  context: RequestContext<Place, { body: AcceptReply }>,
  server: ServerContext,
): Promise<AcceptReplyResponse> {
  const { candidateId, candidatePosition } = context.body;
  const request = { type: 'obligation.accept', candidateId, candidatePosition } as const;
  await decide(server, context, request, ({ candidate }, decision) => {
    const isShown = candidatePosition === undefined || candidate?.position === candidatePosition;
    if (candidate?.messageId !== candidateId || !isShown) {
      const message = 'The agent has written something newer. Review its latest text, and accept that.';
      throw conflict('candidate_changed', message, { candidate });
    }
    const value: ObligationAcceptedValue = {
      ...decision,
      reply_message_id: candidate.messageId,
      turn_id: candidate.turnId,
    };
    return { name: CUSTOM.obligationAccepted, value };
  });
  return { messageId: context.ids.messageId, state: 'answered' };
}

type Decision = Pick<ObligationAcceptedValue, 'message_id' | 'about' | 'by' | 'client_id'>;

/** Appends the event of a decision, once per `clientId`. */
async function decide(
  { database, now: clock }: ServerContext,
  {
    ids: { sessionId, messageId },
    body: { clientId },
    principal,
  }: RequestContext<Place, { body: { clientId?: string } }>,
  request: { type: 'obligation.waive' | 'obligation.accept'; [field: string]: unknown },
  eventOf: (obligation: Obligation, decision: Decision) => { name: string; value: object },
): Promise<void> {
  const now = clock();
  const key = dedupeKey(sessionId, clientId, { ...request, messageId });
  await database.writes.run(async (transaction) => {
    if ((await findRepeat(transaction, key)) !== null) return;
    const obligation = await requireOpen(transaction, sessionId, messageId);
    const event = eventOf(obligation, {
      message_id: messageId,
      about: quoteOf(obligation.text),
      by: operatorName(principal),
      ...(clientId === undefined ? {} : { client_id: clientId }),
    });
    const { agentId } = obligation;
    await appendFacts(transaction, now, [
      { agentId, sessionId: obligation.sessionId, event: { type: 'CUSTOM', ...event } },
    ]);
    await recordRequest(transaction, key, null);
  });
}

async function requireOpen(transaction: WriteTransaction, sessionId: string, messageId: string): Promise<Obligation> {
  const { rows } = await transaction.execute({
    sql: 'SELECT * FROM obligations WHERE session_id = ? AND message_id = ?',
    args: [columnText(sessionId), columnText(messageId)],
  });
  if (rows[0] === undefined) {
    throw new AppError(
      'not_found',
      `The message ${JSON.stringify(messageId)} has no pending reply in the session ${JSON.stringify(sessionId)}. GET /api/v1/agents/:id/reply-obligations lists pending replies.`,
    );
  }
  const obligation = obligationFromRow(rows[0]);
  transaction.touch(`agent:${obligation.agentId}`);
  const { state } = obligation;
  if (state === 'owed') return obligation;
  const how = state === 'answered' ? 'The message is already answered' : 'The reply was already waived';
  throw conflict('obligation_settled', `${how}, so no reply is pending.`, { state });
}

function quoteOf(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  const characters = [...line];
  return characters.length > QUOTE_LENGTH ? `${characters.slice(0, QUOTE_LENGTH).join('')}…` : line;
}
