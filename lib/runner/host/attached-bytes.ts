import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AttachmentFile } from './attachment-store';

/** SHA-256 in lower-case hex, as attachments are named by. */
export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * The bytes of a file, read in this step: what is said behind its message must not overtake it.
 * @returns null if they are not there any more, or are not those that were attached
 */
export function attachedBytes({ path, hash }: AttachmentFile): Buffer | null {
  try {
    const bytes = readFileSync(path);
    return hashOf(bytes) === hash ? bytes : null;
  } catch {
    return null;
  }
}
