import type { RequestOption } from '@interlude/protocol/ag-ui';
import type {
  AnsweredRequest,
  AnswerQuestion,
  CommandBodies,
  CommandResponse,
  DecidePermission,
} from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { readRequestOptions } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { answerDeadline } from '@interlude/protocol/time';
import { events } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { RequestContext } from '@/lib/server/access/request-context';
import { mayAnswer, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { AnswerableRequest } from '@/lib/server/ingest/project-session';
import { acceptCommand, type CommandServer, conflict, type WritableSession } from './accept-command';
import { findOpenCommand } from './queue-command';

/**
 * `POST /sessions/:id/requests/:requestId`: `{"behavior", …}` for a permission, `{"answers"}` for a question.
 * @throws AppError `forbidden` from an embed; `invalid_argument`, `not_found`, `conflict`
 */
export async function postRequestAnswer(
  {
    ids: { sessionId, requestId },
    body: { clientId, ...content },
    principal,
    digests,
  }: RequestContext<'sessionId' | 'requestId', { body: DecidePermission | AnswerQuestion }>,
  server: CommandServer,
): Promise<CommandResponse> {
  // The embedding page has the frame's token, and could answer in the viewer's name.
  if (!mayAnswer(principal)) {
    throw new AppError(
      'forbidden',
      'Requests can’t be answered in a frame of another page. Open the session in the dashboard and answer there.',
    );
  }
  const isAnswer = 'answers' in content;
  const kind = isAnswer ? 'question' : 'permission';
  const { digest, ...answer } = content;
  const accepted = await acceptCommand(server, {
    sessionId,
    clientId,
    request: { type: isAnswer ? 'question.answer' : 'permission.decision', requestId, ...content },
    prepare: async (transaction, session) => {
      const request = await requireOpen(transaction, session, { requestId, kind, digest, digests }, server.now());
      if (!isAnswer && content.optionId !== undefined) {
        requireOffered(await offeredOptions(transaction, session, requestId), content.optionId, content.behavior);
      }
      return { body: { ...request, ...answer } as CommandBodies['question.answer' | 'permission.decision'] };
    },
  });
  return accepted.answer;
}

/** Requires that the agent offers the option, and that the option's kind equals the decision. */
function requireOffered(options: readonly RequestOption[], optionId: string, behavior: 'allow' | 'deny'): void {
  const option = options.find(({ id }) => id === optionId);
  if (option?.kind === behavior) return;
  const offered = options.map(({ id, kind }) => ({ optionId: id, behavior: kind }));
  const message =
    option === undefined
      ? `The request does not offer ${JSON.stringify(optionId)}. Choose one of "offered", or omit optionId.`
      : `The option ${JSON.stringify(optionId)} means ${option.kind}. Send "behavior": "${option.kind}" with it.`;
  throw new AppError('invalid_argument', message, { details: { offered } });
}

/**
 * @param answered `digest`: digest of the request that the sender saw; undefined if the sender sent none
 * @returns the request that is open now; the answer applies only to this opening
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
  const open = await findRequest(transaction, session, requestId);
  if (open === null) {
    const message = `There is no request ${JSON.stringify(requestId)}. The transcript lists the agent’s requests.`;
    throw new AppError('not_found', message);
  }
  if (open === 'resolved') {
    throw conflict('request_resolved', 'The request is already resolved. The agent no longer waits for an answer.');
  }
  if (open.answerBy !== undefined && now >= open.answerBy) {
    throw conflict('request_expired', 'The request has expired. The agent no longer waits for an answer.');
  }
  if (digest !== undefined && digest !== digests.request(open.digest)) {
    const message = 'The agent reopened this request with different content. Review it, and answer with its digest.';
    throw conflict('request_changed', message, { digest: digests.request(open.digest) });
  }
  if (open.kind !== kind) {
    const expected = open.kind === 'question' ? '{"answers": {…}}' : '{"behavior": "allow" | "deny"}';
    throw new AppError('invalid_argument', `The request is a ${open.kind}. Answer it with ${expected}.`);
  }
  for (const type of ['permission.decision', 'question.answer'] as const) {
    const isSame = (answer: AnsweredRequest) => answer.requestId === requestId;
    const pending = await findOpenCommand(transaction, session.agentId, session.id, type, isSame);
    if (pending === null) continue;
    const message = 'The request was already answered. The answer is on its way to the agent.';
    throw conflict('request_answered', message, { commandId: pending.command.id });
  }
  return { requestId, digest: open.digest, openedPosition: open.openedPosition };
}

const REQUEST_EVENT = shapeOf(events, 'position', 'name', 'payload', 'occurredAt', 'receivedAt');

/**
 * Finds a request in the session's memory or, if the memory holds only some of the open ones, in the session's events.
 *
 * @returns `resolved` if the request is no longer open; null if it never was
 */
async function findRequest(
  transaction: WriteTransaction,
  session: WritableSession,
  requestId: string,
): Promise<AnswerableRequest | 'resolved' | null> {
  const remembered = session.pendingRequests.find((request) => request.id === requestId);
  if (remembered !== undefined) return remembered;
  const last = await lastRequestEvent(transaction, session, requestId);
  if (last === undefined) return null;
  if (!session.hasMorePending || last.name !== 'request:opened') return 'resolved';
  return (await isCancelled(transaction, session, last.position)) ? 'resolved' : requestFromEvent(requestId, last);
}

async function offeredOptions(
  transaction: WriteTransaction,
  session: WritableSession,
  requestId: string,
): Promise<RequestOption[]> {
  const last = await lastRequestEvent(transaction, session, requestId);
  return readRequestOptions(fieldsOf(last?.payload.value).options);
}

async function lastRequestEvent(transaction: WriteTransaction, session: WritableSession, requestId: string) {
  return REQUEST_EVENT.first(
    await transaction.execute({
      sql: `SELECT ${REQUEST_EVENT.columns()} FROM events
            WHERE session_id = ? AND type = 'CUSTOM' AND entity_id = ? AND name IN ('request:opened', 'request:resolved')
            ORDER BY position DESC LIMIT 1`,
      args: [session.id, columnText(requestId)],
    }),
  );
}

function requestFromEvent(
  id: string,
  { payload, occurredAt, receivedAt }: ReturnType<typeof REQUEST_EVENT.read>,
): AnswerableRequest {
  // Ingest adds the digest and the position.
  const value = payload.value as {
    kind?: unknown;
    expires_at?: unknown;
    expiresAt?: unknown;
    digest: string;
    opened_position: string;
  };
  const until = answerDeadline(value.expires_at ?? value.expiresAt, { occurredAt, receivedAt });
  return {
    id,
    kind: value.kind === 'question' ? 'question' : 'permission',
    digest: value.digest,
    openedPosition: value.opened_position,
    ...(until === null ? {} : { answerBy: until }),
  };
}

/**
 * True if the agent has continued without an answer: its process ended, or a turn that was open at `position` or later
 * was cut off.
 */
async function isCancelled(transaction: WriteTransaction, session: WritableSession, position: number) {
  const broken = "kind <> 'none' AND state IN ('failed', 'interrupted')";
  const { rows } = await transaction.execute({
    sql: `WITH around AS (
            SELECT id, position, kind, state FROM turns
            WHERE session_id = ?1 AND kind <> 'none' AND position <= ?2 ORDER BY position DESC LIMIT 1
          )
          SELECT EXISTS (
              SELECT 1 FROM events WHERE session_id = ?1 AND position > ?2
                AND type = 'CUSTOM' AND name = 'session:ended'
            ) OR EXISTS (
              SELECT 1 FROM turns WHERE session_id = ?1 AND position > ?2 AND ${broken}
            ) OR EXISTS (
              SELECT 1 FROM around WHERE ${broken} AND NOT EXISTS (
                SELECT 1 FROM events AS e WHERE e.session_id = ?1 AND e.position > around.position AND e.position < ?2
                  AND (e.turn_id = around.id AND e.type IN ('RUN_FINISHED', 'RUN_ERROR')
                    OR e.type = 'CUSTOM' AND e.name = 'session:ended')
              )
            ) AS is_cancelled`,
    args: [session.id, position],
  });
  return Number(rows[0]?.is_cancelled) === 1;
}
