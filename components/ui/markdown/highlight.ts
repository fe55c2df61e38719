import type { RootContent } from 'hast';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import go from 'highlight.js/lib/languages/go';
import graphql from 'highlight.js/lib/languages/graphql';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import kotlin from 'highlight.js/lib/languages/kotlin';
import makefile from 'highlight.js/lib/languages/makefile';
import markdown from 'highlight.js/lib/languages/markdown';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import scss from 'highlight.js/lib/languages/scss';
import shell from 'highlight.js/lib/languages/shell';
import sql from 'highlight.js/lib/languages/sql';
import swift from 'highlight.js/lib/languages/swift';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { createLowlight } from 'lowlight';

/**
 * The highlighter, in a chunk of its own. It gives a tree of class names, never HTML, and needs neither eval nor
 * WebAssembly, which the page's policy forbids.
 */
const lowlight = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  graphql,
  ini,
  java,
  javascript,
  json,
  kotlin,
  makefile,
  markdown,
  php,
  python,
  ruby,
  rust,
  scss,
  shell,
  sql,
  swift,
  typescript,
  xml,
  yaml,
});
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
