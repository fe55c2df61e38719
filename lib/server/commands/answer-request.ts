import type { RequestOption } from '@interlude/protocol/ag-ui';
import type {
  AnsweredRequest,
  AnswerQuestion,
  CommandAnswer,
  CommandBodies,
  DecidePermission,
} from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import type { WriteTransaction } from '@/db/writes';
import type { RequestContext } from '@/lib/server/access/request-context';
import { mayAnswer, type ShownDigests } from '@/lib/server/access/shown-digests';
import { askSession } from './ask-session';
import type { CommandServer } from './command-hub';
import { offeredOptions, openRequest } from './open-request';
import { findEffective } from './queue-command';
import { conflict, missing } from './refusals';
import type { WritableSession } from './writable-session';

/**
 * `POST /sessions/:id/requests/:requestId`: `{"behavior", …}` for a permission, `{"answers"}` for a question.
 * @throws AppError `invalid_argument`, `not_found`, `conflict`
 */
export async function postRequestAnswer(
  {
    ids: { sessionId, requestId },
    body: { clientId, ...said },
    principal,
    digests,
  }: RequestContext<'sessionId' | 'requestId', { body: DecidePermission | AnswerQuestion }>,
  server: CommandServer,
): Promise<CommandAnswer> {
  // Whoever shows the frame has its token, and could answer in the name of whoever looks at it.
  if (!mayAnswer(principal)) {
    throw new AppError(
      'forbidden',
      'A request is answered in a window of the dashboard, not in a frame of another page.',
    );
  }
  const isAnswer = 'answers' in said;
  const kind = isAnswer ? 'question' : 'permission';
  const { digest, ...answer } = said;
  return askSession(server, {
    sessionId,
    clientId,
    ask: { type: isAnswer ? 'question.answer' : 'permission.decision', requestId, ...said },
    prepare: async (transaction, session) => {
      const asked = await requireOpen(transaction, session, { requestId, kind, digest, digests }, server.now());
      if (!isAnswer && said.optionId !== undefined) {
        requireOffered(await offeredOptions(transaction, session, requestId), said.optionId, said.behavior);
      }
      return { body: { ...asked, ...answer } as CommandBodies['question.answer' | 'permission.decision'] };
    },
  });
}

/** What is chosen is one of the answers that the agent offers, and says what the decision says. */
function requireOffered(options: readonly RequestOption[], optionId: string, behavior: 'allow' | 'deny'): void {
  const option = options.find(({ id }) => id === optionId);
  if (option?.kind === behavior) return;
  const offered = options.map(({ id, kind }) => ({ optionId: id, behavior: kind }));
  const message =
    option === undefined
      ? `The request does not offer ${JSON.stringify(optionId)}. Choose one of "offered", or leave optionId out.`
      : `${JSON.stringify(optionId)} is a way to ${option.kind} it. Send "behavior": "${option.kind}" with it.`;
  throw new AppError('invalid_argument', message, { details: { offered } });
}

/**
 * @param answered which request; `digest`: of what was answered, where the sender says so, as the sender was shown it
 * @returns the request as it is open now: an answer is meant for this and nothing else
 */
async function requireOpen(
  transaction: WriteTransaction,
  session: WritableSession,
  answered: {
    requestId: string;
    kind: 'permission' | 'question';
    digest: string | null | undefined;
    digests: ShownDigests;
  },
  now: number,
): Promise<AnsweredRequest> {
  const { requestId, kind, digest, digests } = answered;
  const open = await openRequest(transaction, session, requestId);
  if (open === null) throw missing('request', requestId, 'The transcript shows what the agent asks.');
  if (open === 'resolved') {
    throw conflict('request_resolved', 'The request is resolved: the agent waits for no answer any more.');
  }
  if (open.answerBy !== undefined && now >= open.answerBy) {
    throw conflict('request_expired', 'The time to answer the request is over: the agent waits for it no more.');
  }
  if (digest !== undefined && digest !== digests.request(open.digest)) {
    const message =
      'The agent asks something else under this id now. Read what it asks, and answer that with its digest.';
    throw conflict('request_changed', message, { digest: digests.request(open.digest) });
  }
  if (open.kind !== kind) {
    const wanted = open.kind === 'question' ? '{"answers": {…}}' : '{"behavior": "allow" | "deny"}';
    throw new AppError('invalid_argument', `The request is a ${open.kind}. Answer it with ${wanted}.`);
  }
  for (const type of ['permission.decision', 'question.answer'] as const) {
    const isIts = (answer: AnsweredRequest) => answer.requestId === requestId;
    const pending = await findEffective(transaction, session.agentId, session.id, type, isIts);
    if (pending === null) continue;
    const message = 'The request was answered already, and the answer is on its way to the agent.';
    throw conflict('request_answered', message, { commandId: pending.command.id });
  }
  return { requestId, digest: open.digest, openedPosition: open.openedPosition };
}
