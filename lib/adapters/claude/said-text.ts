/** Texts are compared without white space: the hook's text and the transcript's lines differ in it. */
export function keyOf(text: string): string {
  return text.replace(/\s+/g, '');
}

/** What no block has said of a text: the hook may have been given the last of several blocks, or all. Null for nothing. */
export function unsaidOf(text: string, blocks: readonly string[]): string | null {
  const key = keyOf(text);
  let [said, rest] = ['', text];
  for (const block of [...blocks].reverse()) {
    if (block.endsWith(key)) return null;
    if (said.length > key.length) continue;
    said = block + said;
    rest = restBehind(text, said) ?? rest;
  }
  return rest === '' ? null : rest;
}

/** A turn that said these blocks last has said what a hook told. */
export function isSaidBy(blocks: readonly string[], text: string | null): boolean {
  return text !== null && keyOf(text) !== '' && unsaidOf(text, blocks) === null;
}

/**
 * What a text says behind its beginning, but for blank space.
 * @param key of the beginning: whole lines of the text, or all of it
 * @returns empty for all of it; null where the text begins with something else
 */
export function restBehind(text: string, key: string): string | null {
  if (key === '' || !keyOf(text).startsWith(key)) return null;
  let at = 0;
  for (let left = key.length; left > 0; at += 1) if (!/\s/.test(text.charAt(at))) left -= 1;
  const rest = text.slice(at);
  return rest.trim() === '' ? '' : /^[^\S\n]*\n/.test(rest) ? rest.trimStart() : null;
}
