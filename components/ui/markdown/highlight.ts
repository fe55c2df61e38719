import type { RootContent } from 'hast';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import { common, createLowlight } from 'lowlight';

/**
 * The highlighter, in a chunk of its own. It gives a tree of class names, never HTML, and needs neither eval nor
 * WebAssembly, which the page's policy forbids.
 */
const lowlight = createLowlight({ ...common, dockerfile });
lowlight.registerAlias({ bash: ['console', 'terminal'], ini: ['toml', 'env'], xml: ['vue', 'svelte'] });

/** What is tried first: of this much, no code takes long. */
const FIRST_TRY = 500;
/** The worst that is known takes eight times as long for twice as much. */
const WORST_GROWTH = 8;

/**
 * Grammars are made of patterns that some texts make them try again from every sign. So a beginning is coloured first,
 * then twice as much, until all of it is, as long as the next step can't take more than `mostMs`.
 *
 * @returns null for a language it does not know, and for code that would take too long
 */
export function highlight(code: string, language: string, mostMs = 64): RootContent[] | null {
  if (!lowlight.registered(language)) return null;
  // The first use of a language compiles its grammar.
  lowlight.highlight(language, '');
  for (let size = FIRST_TRY; size < code.length; size *= 2) {
    const beginning = code.slice(0, size);
    // Once more, before a busy machine is taken for slow code.
    if (isSlow(beginning, language, mostMs) && isSlow(beginning, language, mostMs)) return null;
  }
  return lowlight.highlight(language, code).children;
}

function isSlow(code: string, language: string, mostMs: number): boolean {
  const began = performance.now();
  lowlight.highlight(language, code);
  return (performance.now() - began) * WORST_GROWTH > mostMs;
}
