/**
 * Texts are compared without white space and without half surrogate pairs, in which the hook's text and the transcript's
 * lines differ.
 */
export function keyOf(text: string): string {
  return text.replace(OMITTED, '');
}

const OMITTED = /[\s\ufffd]+|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The part of a text that no block has said; null for nothing. The hook may have the last of several blocks, or all. */
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

/** Whether a turn whose last blocks are these has said a hook's text. */
export function isSaidBy(blocks: readonly string[], text: string | null): boolean {
  return text !== null && keyOf(text) !== '' && unsaidOf(text, blocks) === null;
}

/**
 * What follows the beginning of a text, except for white space.
 * @param key the key of the beginning: whole lines of the text, or all of it
 * @returns empty if the beginning is all of it; null if the text begins with something else
 */
export function restBehind(text: string, key: string): string | null {
  if (key === '' || !keyOf(text).startsWith(key)) return null;
  let at = 0;
  for (let left = key.length; left > 0; ) {
    const character = String.fromCodePoint(text.codePointAt(at) as number);
    if (keyOf(character) !== '') left -= character.length;
    at += character.length;
  }
  const rest = text.slice(at);
  return rest.trim() === '' ? '' : /^[^\S\n]*\n/.test(rest) ? rest.trimStart() : null;
}
