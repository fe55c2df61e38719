import type { RequiredText } from '@interlude/protocol/projections/required-text';

/** How many trigrams of one text to ask for: all of a short one; of a long one, some spread over it. */
const MAX_TRIGRAMS = 24;
const MAX_PARTS = 16;

/**
 * What to ask of the full-text table, whose rows hold the trigrams of a chunk's folded messages.
 *
 * @returns null if the text is shorter than a trigram, so that the table can't help
 */
export function matchOf(required: RequiredText): string | null {
  if (required.kind === 'text') {
    const trigrams = trigramsOf(required.text);
    return trigrams.length === 0 ? null : trigrams.map(quoted).join(' AND ');
  }
  const isAll = required.kind === 'all';
  if (!isAll && required.parts.length > MAX_PARTS) return null;
  const parts = required.parts.slice(0, isAll ? MAX_PARTS : undefined).map(matchOf);
  const known = parts.filter((part) => part !== null);
  if (known.length === 0 || (!isAll && known.length < parts.length)) return null;
  return known.map((part) => `(${part})`).join(isAll ? ' AND ' : ' OR ');
}

function trigramsOf(text: string): string[] {
  const characters = [...text];
  const count = characters.length - 2;
  const step = Math.max(1, Math.ceil(count / MAX_TRIGRAMS));
  const trigrams = new Set<string>();
  for (let at = 0; at < count; at += step) trigrams.add(characters.slice(at, at + 3).join(''));
  // no stored text has a NUL, and no query can
  return [...trigrams].filter((trigram) => !trigram.includes('\0'));
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
