import { type HandedMessage, IN_HAND_CURSORS } from '../../host/messages-in-hand';
import type { Outbox } from '../../outbox/outbox';
import type { Cursor } from '../../outbox/statements';

/**
 * What a runner must know of a session that an earlier one ran, in the outbox's file: which conversation of Claude Code
 * it is, and which messages were in the CLI's hands.
 */
export interface ClaudeMemory {
  sessionId: string;
  /** Claude Code's own name for the session. */
  conversationId: string;
  cwd: string;
  /** The CLI, while it runs. */
  pid: number | null;
  /** The runner is at it. Still set at a start: the one before was killed. */
  running: boolean;
}

const SESSION = 'claude-session:';
const IN_HAND = IN_HAND_CURSORS[1];

export function memoryCursor(memory: ClaudeMemory): Cursor {
  return { name: `${SESSION}${memory.sessionId}`, value: JSON.stringify(memory) };
}

export function inHandCursor(sessionId: string, messages: readonly HandedMessage[]): Cursor {
  return { name: `${IN_HAND}${sessionId}`, value: messages.length === 0 ? null : JSON.stringify(messages) };
}

/** All sessions this outbox has carried. */
export async function readMemories(outbox: Outbox): Promise<ClaudeMemory[]> {
  return [...(await outbox.cursors(SESSION)).values()].map((value) => JSON.parse(value) as ClaudeMemory);
}

export async function readInHand(outbox: Outbox, sessionId: string): Promise<HandedMessage[]> {
  return JSON.parse((await outbox.cursor(`${IN_HAND}${sessionId}`)) ?? '[]') as HandedMessage[];
}

/** The session that a name means: the dashboard's, or Claude Code's own. */
export function recall(memories: readonly ClaudeMemory[], name: string): ClaudeMemory | undefined {
  return (
    memories.find(({ sessionId }) => sessionId === name) ??
    memories.find(({ conversationId }) => conversationId === name)
  );
}
