import { createHash } from 'node:crypto';
import { fieldsOf, textOf } from '@interlude/protocol/fields';

/** The name of a transcript's line: its own, or for bookkeeping that has none one made of its text. */
export function lineKey(line: unknown, text: string): string {
  return textOf(fieldsOf(line).uuid) ?? createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
