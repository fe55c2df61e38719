import type { RootContent } from 'hast';
import { createContext } from 'react';

/** Code that the server highlights for one page, in UTF-16 units. The slowest known code of `block` takes 40 ms. */
const MAX = { block: 2_000, page: 8_000 };
/** No further block is highlighted after this time. */
const MAX_MS = 20;

const FENCE = /^(`{3,}|~{3,})[ \t]*(\S+)[^\n]*\n([\s\S]*?)\n\1[ \t]*$/gm;

type Highlight = (code: string, language: string) => RootContent[] | null;
let highlight: Highlight | null = null;

/** Loads the highlighter into a server. In the browser, a worker has it. */
export async function loadHighlighter(): Promise<void> {
  highlight = (await import('./text-jobs')).highlight;
}

/** Highlighted code by `codeKey`. Empty in the browser. */
export const HighlightedAtOnce = createContext<ReadonlyMap<string, RootContent[]>>(new Map());

export function codeKey(code: string, language: string): string {
  return `${language}\n${code}`;
}

/**
 * Highlights the fenced code of a page's texts, as far as it is quick. The browser highlights the rest.
 *
 * @param texts newest first
 */
export function highlightAtOnce(texts: Iterable<string>): ReadonlyMap<string, RootContent[]> {
  const found = new Map<string, RootContent[]>();
  const start = performance.now();
  let left = MAX.page;
  for (const text of texts) {
    for (const [, , name = '', code = ''] of text.matchAll(FENCE)) {
      if (code.length > MAX.block) continue;
      left -= code.length;
      if (highlight === null || left < 0 || performance.now() - start > MAX_MS) return found;
      const language = name.toLowerCase();
      const tree = highlight(code, language);
      if (tree !== null) found.set(codeKey(code, language), tree);
    }
  }
  return found;
}
