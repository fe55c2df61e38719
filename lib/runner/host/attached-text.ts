import type { Attachment } from '@interlude/protocol/field-schemas';
import type { AttachmentFile } from './attachment-store';

/** A longer text in a message would fill the context: it is named, and the agent reads what it needs of it. */
export const MAX_TEXT_BYTES = 64 * 1024;

/**
 * For an agent that has no other way to be given a file, or none that is large enough: it reads it from the disk.
 * @param lost what is on the disk no more: it is said that it is missing
 */
export function withFiles(
  text: string,
  files: readonly AttachmentFile[],
  lost: readonly AttachmentFile[] = [],
): string {
  const lines = files.map((file) => `- ${described(file)}: ${file.path}`);
  const named = files.length === 0 ? '' : `\n\nAttached to this message:\n${lines.join('\n')}`;
  return `${text}${named}${lost.length === 0 ? '' : `\n\n${lostText(lost)}`}`;
}

/** To the agent, which can ask for it. */
export function lostText(files: readonly Attachment[]): string {
  const lines = files.map((file) => `- ${described(file)}`);
  return `Attached to this message, and lost before it could be given to you:\n${lines.join('\n')}`;
}

function described({ name, mediaType, bytes }: Attachment): string {
  return `${JSON.stringify(name)} (${mediaType}, ${bytes} bytes)`;
}
