import { readFileSync } from 'node:fs';
import { type AttachmentFile, hashOf } from './attachment-store';

/**
 * Reads a file synchronously, so that later messages can't overtake it. Separate from `attachment-store`, whose types the
 * library exports: they don't need Node's.
 *
 * @returns null if it is missing or changed
 */
export function readAttachment({ path, hash }: AttachmentFile): Buffer | null {
  try {
    const bytes = readFileSync(path);
    return hashOf(bytes) === hash ? bytes : null;
  } catch {
    return null;
  }
}
