import { type MessageAnswer, OPERATOR, sendMessageSchema } from '@/lib/protocol/commands';
import { AppError } from '@/lib/protocol/errors';
import { askedBefore, namedAsk, noteAsk } from './asks';
import type { CommandServer } from './command-hub';
import type { StoredCommand } from './command-row';
import { isSaid } from './is-said';
import { queueCommand } from './queue-command';
import { readInput } from './read-input';
import { writableSession } from './writable-session';

/**
 * `POST /sessions/:id/messages`: a person writes to the agent.
 *
 * @returns 202 with a MessageAnswer once the message is on disk; the same again under the same `clientId` is
 *   answered the same and sent once
 * @throws AppError `invalid_argument`, `not_found`, `conflict`
 */
export async function postMessage(
  request: Request,
  server: CommandServer,
  { sessionId = '' }: Record<string, string>,
): Promise<Response> {
  const { text, clientId, replyTo } = await readInput(request, sendMessageSchema);
  const isReplyToNothing = replyTo !== undefined && !(await isSaid(server.database.reader, sessionId, replyTo));
  const now = server.now();
  const named = namedAsk(sessionId, clientId, { type: 'message', text, replyTo });
  const { agentId, answer } = await server.database.writes.run(async (transaction) => {
    const known = (await askedBefore(transaction, named))?.command ?? null;
    if (known !== null) return { agentId: null, answer: answerOf(known) };
    const session = await writableSession(transaction, sessionId);
    if (isReplyToNothing) {
      throw new AppError(
        'not_found',
        `Nobody said ${JSON.stringify(replyTo)} in this session. Reply to a message of its transcript, or leave replyTo out.`,
      );
    }
    const id = crypto.randomUUID();
    const body = { messageId: id, text, from: OPERATOR, ...(replyTo === undefined ? {} : { replyTo }) };
    await queueCommand(transaction, {
      id,
      agentId: session.agentId,
      sessionId: session.id,
      type: 'message',
      body,
      clientId,
      now,
    });
    await noteAsk(transaction, named, id);
    return { agentId: session.agentId, answer: { messageId: id, delivery: 'queued' } satisfies MessageAnswer };
  }, text.length * 4);
  if (agentId !== null) server.commands.wake(agentId);
  return Response.json(answer, { status: 202, headers: { 'cache-control': 'no-store' } });
}

const DELIVERY = {
  queued: 'queued',
  delivered: 'delivered',
  done: 'seen',
  failed: 'failed',
  expired: 'failed',
} as const;

function answerOf({ command, state }: StoredCommand): MessageAnswer {
  return { messageId: command.id, delivery: DELIVERY[state] };
}
