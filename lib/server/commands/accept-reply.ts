import type { ObligationAcceptedValue } from '@interlude/protocol/ag-ui';
import type { AcceptReply, AcceptReplyAnswer } from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { Asked } from '@/lib/server/access/asked';
import { personOf } from '@/lib/server/access/person-of';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { askedBefore, namedAsk, noteAsk } from './asks';
import { findOwed, quoteOf } from './find-owed';
import { conflict } from './refusals';

/**
 * `POST /sessions/:id/obligations/:messageId/accept`: a person takes a text of the agent for the reply to a message. It
 * asks nothing of the runner, so it also works when the agent has ended.
 *
 * @returns once it is on disk; the same `clientId` again is answered the same
 * @throws AppError `not_found`, `conflict`: `obligation_settled`, `candidate_changed`, `client_id_reused`
 */
export async function postAcceptReply(
  asked: Asked<'sessionId' | 'messageId', { body: AcceptReply }>,
  server: ServerContext,
): Promise<AcceptReplyAnswer> {
  const { sessionId, messageId } = asked.ids;
  const { candidateId, candidatePosition, clientId } = asked.body;
  const now = server.now();
  const named = namedAsk(sessionId, clientId, { type: 'obligation.accept', messageId, candidateId, candidatePosition });
  return server.database.writes.run(async (transaction): Promise<AcceptReplyAnswer> => {
    if ((await askedBefore(transaction, named)) !== null) return { messageId, state: 'answered' };
    const { agentId, candidate, text } = await findOwed(transaction, sessionId, messageId);
    const isShown = candidatePosition === undefined || candidate?.position === candidatePosition;
    if (candidate?.messageId !== candidateId || !isShown) {
      throw conflict(
        'candidate_changed',
        'The agent has written something else since this was shown. Look at what it wrote last, and accept that.',
        { candidate },
      );
    }
    const value: ObligationAcceptedValue = {
      message_id: messageId,
      reply_message_id: candidate.messageId,
      turn_id: candidate.turnId,
      about: quoteOf(text),
      by: personOf(asked.principal),
      ...(clientId === undefined ? {} : { client_id: clientId }),
    };
    const event = { type: 'CUSTOM', name: CUSTOM.obligationAccepted, value };
    await appendFacts(transaction, now, [{ agentId, sessionId, event }]);
    await noteAsk(transaction, named, null);
    return { messageId, state: 'answered' };
  });
}
