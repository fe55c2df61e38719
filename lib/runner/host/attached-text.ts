import type { AttachmentFile } from './attachment-store';

/** For an agent that has no other way to be given a file, or none that is large enough: it reads it from the disk. */
export function withFiles(text: string, files: readonly AttachmentFile[]): string {
  if (files.length === 0) return text;
  const lines = files.map(({ name, mediaType, bytes, path }) => {
    return `- ${JSON.stringify(name)} (${mediaType}, ${bytes} bytes): ${path}`;
  });
  return `${text}\n\nAttached to this message:\n${lines.join('\n')}`;
}
