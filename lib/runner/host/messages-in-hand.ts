import type { Cursor } from '../outbox/statements';
import type { AttachmentFile } from './attachment-store';
import type { SourceSurroundings } from './source';

/** A message that was handed to the agent and that no turn has answered. */
export interface HandedMessage {
  messageId: string;
  text: string;
  /** The text before its files were named in it, where that is how its agent is given them. */
  words?: string;
  /** What it carries; left out if that is nothing. */
  files?: readonly AttachmentFile[];
}

/** @param files as they come with a message: most carry nothing */
export function handed(messageId: string, text: string, files: readonly AttachmentFile[] = []): HandedMessage {
  return { messageId, text, ...(files.length === 0 ? {} : { files }) };
}

/** Where messages in hand are stored, by the beginnings of the names: in the second place those of Claude Code. */
export const IN_HAND_CURSORS = ['in-hand:', 'claude-in-hand:'] as const;

/** Messages that an earlier process had in hand, with their files where those are now. */
export async function withFilesHere(
  around: Pick<SourceSurroundings, 'attached'>,
  sessionId: string,
  messages: readonly HandedMessage[],
): Promise<HandedMessage[]> {
  const here = async ({ files, ...message }: HandedMessage) =>
    files === undefined ? message : { ...message, files: await around.attached(sessionId, files) };
  return await Promise.all(messages.map(here));
}

/**
 * The messages of one session that its agent has, by the runner's own account: stored before the word that they were
 * delivered, so that the next process knows which to ask about, or to give again.
 */
export class MessagesInHand {
  readonly #around: SourceSurroundings;
  readonly #sessionId: string;
  #messages: readonly HandedMessage[];

  /** What the processes before this one left in hand. */
  static async recall(around: SourceSurroundings, sessionId: string): Promise<MessagesInHand> {
    const stored = (await around.cursors(cursorName(sessionId))).get(cursorName(sessionId));
    const messages = JSON.parse(stored ?? '[]') as HandedMessage[];
    return new MessagesInHand(around, sessionId, await withFilesHere(around, sessionId, messages));
  }

  private constructor(around: SourceSurroundings, sessionId: string, messages: readonly HandedMessage[]) {
    this.#around = around;
    this.#sessionId = sessionId;
    this.#messages = messages;
  }

  /** Oldest first. */
  get all(): readonly HandedMessage[] {
    return this.#messages;
  }

  has(messageId: string): boolean {
    return this.#messages.some((message) => message.messageId === messageId);
  }

  /**
   * Resolves once it is stored: from then on the message is not forgotten with this process. One that is in hand already
   * keeps its place, as it is given now.
   */
  async take(message: HandedMessage): Promise<void> {
    this.#messages = this.has(message.messageId)
      ? this.#messages.map((one) => (one.messageId === message.messageId ? message : one))
      : [...this.#messages, message];
    this.#around.changed();
    await this.#around.emit(this.#sessionId, [], [this.#cursor()]);
  }

  /** A turn has answered them, or they will never reach the agent. */
  letGo(messageIds: readonly string[]): void {
    const kept = this.#messages.filter(({ messageId }) => !messageIds.includes(messageId));
    if (kept.length === this.#messages.length) return;
    this.#messages = kept;
    void this.#around.emit(this.#sessionId, [], [this.#cursor()]);
    this.#around.changed();
  }

  #cursor(): Cursor {
    const value = this.#messages.length === 0 ? null : JSON.stringify(this.#messages);
    return { name: cursorName(this.#sessionId), value };
  }
}

function cursorName(sessionId: string): string {
  return `${IN_HAND_CURSORS[0]}${sessionId}`;
}
