import type { AttachmentRef } from '@interlude/protocol/attachments';
import type { MessageAnswer } from '@interlude/protocol/commands';
import { postJson, RequestError } from '@/components/live/fetch-json';
import type { OutgoingMessage } from './draft-store';
import { isKept } from './kept-attachment';
import type { SendOutcome } from './outgoing-queue';

/** Said by the server of the moment, not of the message. */
const PASSING = [408, 421, 429];

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
    // Its writer is signed out. It waits for them, and is not tried again for whoever signs in next.
    if (error.status === 401 || error.code === 'other_principal') return { kind: 'signed-out', reason: error.message };
    const passes = error.status >= 500 || PASSING.includes(error.status);
    if (passes) return { kind: 'unreachable', reason: error.message };
    const lack = error.status === 400 ? await lackOf(sessionId, attachments ?? []) : null;
    return { kind: 'refused', reason: lack ?? error.message };
  }
}

/** The server's own sentence about what it has forgotten is for programs. */
async function lackOf(sessionId: string, attachments: readonly AttachmentRef[]): Promise<string | null> {
  const kept = await Promise.all(attachments.map((attachment) => isKept(sessionId, attachment)));
  const names = attachments.flatMap(({ name }, at) => (kept[at] === false ? [name] : []));
  if (names.length === 0) return null;
  return `The server no longer keeps ${names.join(', ')}: edit the message and attach it again.`;
}
