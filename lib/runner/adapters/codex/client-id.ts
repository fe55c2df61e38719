/**
 * What Interlude writes into `clientUserMessageId`, and Codex gives back in `userMessage.clientId`, live and in its
 * history: which message of the dashboard a turn answers, or which tasks it was woken for. It is all that is known of
 * that after both have been started anew.
 *
 * @see `codex app-server`, @openai/codex 0.171.0
 */
const PREFIX = 'interlude:';
const WAKE = `${PREFIX}wake:`;
/** Most tasks that one wake names. */
export const MAX_WOKEN_FOR = 16;

export function clientIdOfMessage(messageId: string): string {
  return `${PREFIX}${messageId}`;
}

/** @param name the same for the same wake, told again */
export function clientIdOfWake(name: string, taskIds: readonly string[]): string {
  return `${WAKE}${[name, ...taskIds.slice(0, MAX_WOKEN_FOR)].map(encodeURIComponent).join(',')}`;
}

export type SentBy = { kind: 'message'; messageId: string } | { kind: 'wake'; taskIds: string[] };

/** @returns null for what came in another way: from a terminal, say */
export function sentBy(clientId: string | null): SentBy | null {
  if (clientId === null || !clientId.startsWith(PREFIX)) return null;
  if (!clientId.startsWith(WAKE)) return { kind: 'message', messageId: clientId.slice(PREFIX.length) };
  const [, ...taskIds] = clientId.slice(WAKE.length).split(',').map(decoded);
  return { kind: 'wake', taskIds: taskIds.slice(0, MAX_WOKEN_FOR) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
