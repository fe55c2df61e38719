import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AttachmentFile } from '@interlude/runner/host/attachment-store';

/** A one-pixel PNG. */
export const PNG = Uint8Array.from(
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
);

export const bytesOf = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text));

export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Writes a file in the form in which a host passes it to a source. */
export async function attachedFile(
  folder: string,
  name: string,
  mediaType: string,
  content: Uint8Array,
): Promise<AttachmentFile> {
  const path = join(folder, name);
  await writeFile(path, content);
  return { hash: hashOf(content), name, mediaType, bytes: content.byteLength, path };
}
