import { isTextType } from '@interlude/protocol/attachments';
import { partOfMessage } from '../../adapters/opencode/user-message';
import { attachedBytes } from '../../host/attached-bytes';
import { MAX_TEXT_BYTES, withFiles } from '../../host/attached-text';
import type { AttachmentFile } from '../../host/attachment-store';
import type { HandedMessage } from '../../host/messages-in-hand';

/**
 * A message as the parts of a prompt. Bytes go along, since the server may run on another machine; text does as a part
 * that is `synthetic`: no words of a person's. A longer one is named, and read by the agent's own tools. Files are read in
 * this step: what is said behind must not overtake it.
 *
 * @see OpenCode 1.x, TextPartInput and FilePartInput
 */
export function promptParts({ messageId, text, files = [] }: HandedMessage): object[] {
  const parts: object[] = [];
  const [named, lost]: [AttachmentFile[], AttachmentFile[]] = [[], []];
  for (const file of files) {
    const bytes = attachedBytes(file);
    if (bytes === null) lost.push(file);
    else if (isOnlyNamed(file)) named.push(file);
    else parts.push(partOf(file, bytes));
  }
  return [partOfMessage(messageId, withFiles(text, named, lost)), ...parts];
}

/** @returns why an OpenCode on another machine can't be given them, or null */
export function notThere(files: readonly AttachmentFile[]): string | null {
  const name = files.find(isOnlyNamed)?.name;
  if (name === undefined) return null;
  const most = `${MAX_TEXT_BYTES / 1024} KiB`;
  return `OpenCode on another machine can’t be given a text of more than ${most} (${JSON.stringify(name)}); attach a shorter part of it, or name the server as 127.0.0.1 if it runs here`;
}

function isOnlyNamed({ mediaType, bytes }: AttachmentFile): boolean {
  return isTextType(mediaType) && bytes > MAX_TEXT_BYTES;
}

function partOf({ name, mediaType }: AttachmentFile, bytes: Buffer): object {
  if (!isTextType(mediaType)) {
    const url = `data:${mediaType};base64,${bytes.toString('base64')}`;
    return { type: 'file', mime: mediaType, filename: name, url };
  }
  const text = `The file ${JSON.stringify(name)}, attached to this message:\n\n${bytes.toString('utf8')}`;
  return { type: 'text', text, synthetic: true };
}
