import { readFileSync } from 'node:fs';
import { partOfMessage } from '@/lib/adapters/opencode/user-message';
import { isTextType } from '@/lib/protocol/attachments';
import { withFiles } from '@/lib/runner/host/attached-text';
import type { AttachmentFile } from '@/lib/runner/host/attachment-store';
import type { HandedMessage } from '@/lib/runner/host/messages-in-hand';

/** A longer text would fill the context: it is named, and read by the agent's own tools. */
const MAX_TEXT_BYTES = 64 * 1024;

/**
 * A message as the parts of a prompt. Bytes go along, since the server may run on another machine; text does as a part
 * that is `synthetic`: no words of a person's. Files are read in this step: what is said behind must not overtake it.
 *
 * @see OpenCode 1.x, TextPartInput and FilePartInput
 */
export function promptParts({ messageId, text, files = [] }: HandedMessage): object[] {
  const parts = files.map((file) => [file, partOf(file)] as const);
  const named = parts.flatMap(([file, part]) => (part === null ? [file] : []));
  return [partOfMessage(messageId, withFiles(text, named)), ...parts.flatMap(([, part]) => part ?? [])];
}

/** @returns null for what is only named */
function partOf({ path, name, mediaType, bytes }: AttachmentFile): object | null {
  try {
    if (!isTextType(mediaType)) {
      const url = `data:${mediaType};base64,${readFileSync(path, 'base64')}`;
      return { type: 'file', mime: mediaType, filename: name, url };
    }
    if (bytes > MAX_TEXT_BYTES) return null;
    const text = `The file ${JSON.stringify(name)}, attached to this message:\n\n${readFileSync(path, 'utf8')}`;
    return { type: 'text', text, synthetic: true };
  } catch {
    return null;
  }
}
