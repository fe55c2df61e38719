import type { RootContent } from 'hast';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import { common, createLowlight } from 'lowlight';
import { parseBlocks } from './parse';

/** Jobs on a text that may take longer than a frame. */
const JOBS = {
  parse: (text: string) => parseBlocks(text),
  highlight: (code: string, language: string) => highlight(code, language),
};

export type TextJob = {
  [Kind in keyof typeof JOBS]: [kind: Kind, ...args: Parameters<(typeof JOBS)[Kind]>];
}[keyof typeof JOBS];
export type TextResult<Job extends TextJob> = ReturnType<(typeof JOBS)[Job[0]]>;

export function runTextJob<Job extends TextJob>([kind, ...args]: Job): TextResult<Job> {
  return (JOBS[kind] as (...args: string[]) => TextResult<Job>)(...args);
}

const lowlight = createLowlight({ ...common, dockerfile });
lowlight.registerAlias({ bash: ['console', 'terminal'], ini: ['toml', 'env'], xml: ['vue', 'svelte'] });

/** More elements than a browser lays out without a pause. */
const MAX_PIECES = 1_500;

/**
 * Code as a tree of class names. Hostile code can take seconds: only the worker calls this.
 *
 * @returns null for an unknown language, and where the tree is too large
 */
export function highlight(code: string, language: string): RootContent[] | null {
  if (!lowlight.registered(language)) return null;
  const tree = lowlight.highlight(language, code).children as RootContent[];
  return countPieces(tree) > MAX_PIECES ? null : tree;
}

function countPieces(nodes: readonly RootContent[]): number {
  return nodes.reduce((sum, node) => sum + 1 + (node.type === 'element' ? countPieces(node.children) : 0), 0);
}
