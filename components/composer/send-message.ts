import { postJson, RequestError } from '@/components/live/fetch-json';
import type { MessageAnswer } from '@/lib/protocol/commands';
import type { OutgoingMessage } from './draft-store';
import type { SendOutcome } from './outgoing-queue';

/** Said by the server of the moment, not of the message. */
const PASSING = [401, 408, 421, 429];

/** One attempt. Only the server's own word about this message is final. */
export async function sendMessage(sessionId: string, message: OutgoingMessage): Promise<SendOutcome> {
  const { text, clientId, replyTo, attachments } = message;
  try {
    const { messageId } = await postJson<MessageAnswer>(`/sessions/${encodeURIComponent(sessionId)}/messages`, {
      text,
      clientId,
      ...(replyTo === null ? {} : { replyTo }),
      ...(attachments === undefined ? {} : { attachments: attachments.map(({ hash, name }) => ({ hash, name })) }),
    });
    return { kind: 'sent', messageId };
  } catch (error) {
    if (!(error instanceof RequestError)) return { kind: 'unreachable', reason: 'The server can’t be reached.' };
    const passes = error.status >= 500 || PASSING.includes(error.status);
    return { kind: passes ? 'unreachable' : 'refused', reason: error.message };
  }
}
