import { createReadStream } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseJson } from '@interlude/protocol/fields';

/**
 * Claude Code's own record of a conversation: JSON Lines under `<config>/projects/<folder>/<session>.jsonl`. It is what
 * a resumed process knows, so it answers whether a message has reached the agent.
 *
 * @see Claude Code 2.1.329; user entries carry the uuid we sent, those taken up in mid-turn stand in attachments
 */
export async function findConversation(
  env: Record<string, string | undefined>,
  conversationId: string,
): Promise<string | null> {
  const projects = join(env.CLAUDE_CONFIG_DIR || join(env.HOME || homedir(), '.claude'), 'projects');
  const folders = await readdir(projects).catch(() => []);
  for (const folder of folders) {
    const file = join(projects, folder, `${conversationId}.jsonl`);
    const isThere = await access(file).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return null;
}

export interface ConversationContent {
  /** Somebody has said something: there is something to resume. */
  begun: boolean;
  /** Which of the ids asked for the agent has taken up. */
  taken: Set<string>;
}

export async function readConversation(file: string, ids: readonly string[]): Promise<ConversationContent> {
  const content: ConversationContent = { begun: false, taken: new Set() };
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    const entry = parseJson(line) as { type?: unknown } | null;
    // The last line of a process that was killed may be cut short. What was only put into the queue of a process died with it.
    if (entry === null || entry.type === 'queue-operation') continue;
    if (entry.type === 'user' || entry.type === 'assistant') content.begun = true;
    for (const id of ids) if (line.includes(id)) content.taken.add(id);
  }
  return content;
}
