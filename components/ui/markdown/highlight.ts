import type { RootContent } from 'hast';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import { common, createLowlight } from 'lowlight';

const lowlight = createLowlight({ ...common, dockerfile });
lowlight.registerAlias({ bash: ['console', 'terminal'], ini: ['toml', 'env'], xml: ['vue', 'svelte'] });

/** More elements than a browser lays out without a pause. */
const MOST_PIECES = 1_500;

/**
 * Code as a tree of class names. Hostile code can take seconds: only the worker calls this.
 *
 * @returns null for an unknown language, and where the tree is too large
 */
export function highlight(code: string, language: string): RootContent[] | null {
  if (!lowlight.registered(language)) return null;
  const tree = lowlight.highlight(language, code).children as RootContent[];
  return countPieces(tree) > MOST_PIECES ? null : tree;
}

function countPieces(nodes: readonly RootContent[]): number {
  return nodes.reduce((sum, node) => sum + 1 + (node.type === 'element' ? countPieces(node.children) : 0), 0);
}
