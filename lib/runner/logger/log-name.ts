import { createHash } from 'node:crypto';

/** Longest base name: with a suffix and a rotation number it still fits every file system. */
const LONGEST = 180;

/**
 * The name an agent's files have. Everything outside `[a-zA-Z0-9_.-]` becomes `_`; wherever that changed the id, a short
 * hash of the id follows, so that two ids never meet in one file.
 */
export function fileNameOf(agentId: string): string {
  const plain = agentId.replace(/[^a-zA-Z0-9_.-]/g, '_');
  // Case is changed as well as far as some file systems are concerned, and a leading dot would hide the file.
  const kept = plain === agentId && plain.length <= LONGEST && /^[a-z0-9_][a-z0-9_.-]*$/.test(plain);
  if (kept) return plain;
  const hash = createHash('sha256').update(agentId).digest('hex').slice(0, 10);
  return `${plain.replace(/^[.-]*/, (odd) => (odd === '' && plain !== '' ? '' : '_')).slice(0, LONGEST - hash.length - 1)}-${hash}`;
}
