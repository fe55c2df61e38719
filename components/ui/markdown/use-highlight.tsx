'use client';

import type { RootContent } from 'hast';
import { type ReactNode, useEffect, useState } from 'react';
import { inTurn } from '../in-turn';

/** Colouring this much of the usual code takes a few milliseconds; more would be a task the reader feels. */
const MOST_CHARACTERS = 10_000;
/** What a browser lays out without a pause; code in more pieces stays plain. */
const MOST_PIECES = 1_500;
const CACHE_SIZE = 200;

const cache = new Map<string, ReactNode>();

/**
 * Colours code when the page is idle. Only colours change, never sizes, so it may come late; what was coloured once
 * comes back coloured at once.
 */
export function useHighlight(code: string, language: string, enabled: boolean): ReactNode {
  const key = `${language}\n${code}`;
  const [, setReady] = useState<string | null>(null);

  useEffect(() => {
    if (!enabled || language === '' || code.length > MOST_CHARACTERS || cache.has(key)) return;
    let wanted = true;
    let turn: { cancel(): void } | null = null;
    import('./highlight').then(
      ({ highlight }) => {
        if (!wanted) return;
        turn = inTurn(() => {
          const tree = highlight(code, language);
          remember(key, tree === null || countPieces(tree) > MOST_PIECES ? code : toReact(tree));
          setReady(key);
        });
      },
      () => {},
    );
    return () => {
      wanted = false;
      turn?.cancel();
    };
  }, [code, language, enabled, key]);

  return cache.get(key) ?? code;
}

function remember(key: string, node: ReactNode): void {
  cache.set(key, node);
  const oldest = cache.keys().next().value;
  if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest);
}

function countPieces(nodes: RootContent[]): number {
  return nodes.reduce((sum, node) => sum + 1 + (node.type === 'element' ? countPieces(node.children) : 0), 0);
}

function toReact(nodes: RootContent[]): ReactNode[] {
  return nodes.map((node, at) => {
    if (node.type === 'text') return node.value;
    if (node.type !== 'element') return null;
    const names = node.properties.className;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: tokens of a text have no other identity
      <span key={at} className={Array.isArray(names) ? names.join(' ') : undefined}>
        {toReact(node.children)}
      </span>
    );
  });
}
