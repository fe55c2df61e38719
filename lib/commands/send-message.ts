import type { Asked } from '@/lib/access/asked';
import { type MessageAnswer, OPERATOR, type SendMessage } from '@/lib/protocol/commands';
import { AppError } from '@/lib/protocol/errors';
import { askedBefore, namedAsk, noteAsk } from './asks';
import type { CommandServer } from './command-hub';
import type { StoredCommand } from './command-row';
import { isSaid } from './is-said';
import { queueCommand } from './queue-command';
import { writableSession } from './writable-session';

/**
 * `POST /sessions/:id/messages`: a person writes to the agent.
 *
 * @returns once the message is on disk; the same again under the same `clientId` is
 *   answered the same and sent once
 * @throws AppError `not_found`, `conflict`
 */
export async function postMessage(
  { ids: { sessionId }, body: { text, clientId, replyTo } }: Asked<'sessionId', { body: SendMessage }>,
  server: CommandServer,
): Promise<MessageAnswer> {
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
  return answer;
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
