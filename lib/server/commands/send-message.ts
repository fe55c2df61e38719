import type { CommandBodies, MessageAnswer, SendMessage } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import type { Sending } from '@interlude/protocol/sending';
import type { Reader } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import { personOf } from '@/lib/server/access/person-of';
import { findEnded } from './ask-agent';
import { askAndSay } from './ask-session';
import { nameAttachments } from './attachment-rows';
import type { CommandServer } from './command-hub';

/**
 * `POST /sessions/:id/messages`: a person writes to the agent.
 *
 * @returns once the message is on disk; the same again under the same `clientId` is answered the same and sent once
 * @throws AppError `not_found`, also for a task of `results`, `conflict`, also while that runs; `invalid_argument` for an attachment that the session does not have
 */
export async function postMessage(
  {
    ids: { sessionId },
    body: { text, clientId, replyTo, attachments = [], results },
    principal,
    digests,
  }: Asked<'sessionId', { body: SendMessage }>,
  server: CommandServer,
): Promise<MessageAnswer> {
  const isReplyToNothing = replyTo !== undefined && !(await isSaid(server.database.reader, sessionId, replyTo));
  const { commandId, state, said } = await askAndSay(server, {
    sessionId,
    clientId,
    // without any, as a message was digested before there were attachments, and before it could carry results
    ask: {
      type: 'message',
      text,
      replyTo,
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(results === undefined ? {} : { results }),
    },
    bytes: text.length * 4,
    prepare: async (transaction, { id, sending }, messageId) => {
      if (isReplyToNothing) {
        throw new AppError(
          'not_found',
          `Nobody said ${JSON.stringify(replyTo)} in this session. Reply to a message of its transcript, or leave replyTo out.`,
        );
      }
      const named = await nameAttachments(transaction, id, attachments, digests);
      const carried: CommandBodies['message']['results'] = [];
      for (const { taskId, ...run } of results ?? []) {
        const { runId, position } = await findEnded(transaction, id, taskId, run);
        carried.push({ taskId, ...(runId === undefined ? {} : { runId }), position });
      }
      const body = {
        messageId,
        text,
        from: { kind: 'person' as const, id: personOf(principal) },
        ...(replyTo === undefined ? {} : { replyTo }),
        ...(named.length === 0 ? {} : { attachments: named }),
        ...(carried.length === 0 ? {} : { results: carried }),
      };
      return { body, said: sending };
    },
  });
  return { messageId: commandId, delivery: DELIVERY[state], sending: (said as Sending | null) ?? TAKEN };
}

/** A message of a database that did not keep what its sender was told: it was taken. */
const TAKEN: Sending = { kind: 'allowed', reason: null };

const DELIVERY = {
  queued: 'queued',
  delivered: 'delivered',
  done: 'seen',
  failed: 'failed',
  expired: 'failed',
} as const;

/** Rows to look at before other requests get a turn: a few milliseconds. */
const PAGE_ROWS = 5_000;

/**
 * Whether the session has this message. People mostly reply to something new, so the log is read from its end; it is
 * read to the beginning only for a message that does not exist.
 */
async function isSaid(reader: Reader, sessionId: string, messageId: string): Promise<boolean> {
  const [session, message] = [columnText(sessionId), columnText(messageId)];
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const { rows } = await reader.execute({
      sql: `SELECT max(entity_id = ? AND substr(type, 1, 13) = 'TEXT_MESSAGE_') AS is_said, min(position) AS oldest
            FROM (SELECT position, entity_id, type FROM events WHERE session_id = ? AND position < ?
                  ORDER BY position DESC LIMIT ?)`,
      args: [message, session, before, PAGE_ROWS],
    });
    if (Number(rows[0]?.is_said) === 1) return true;
    if (rows[0]?.oldest === null) return false;
    before = Number(rows[0]?.oldest);
  }
}
