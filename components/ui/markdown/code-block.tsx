'use client';

import { clsx } from 'clsx';
import type { RootContent } from 'hast';
import { type ReactNode, useContext, useEffect, useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { endOfFirstPart } from '@/components/ui/truncate';
import { enqueueIdle } from '../idle-queue';
import { UnfoldButton } from '../unfold';
import { codeKey, HighlightedAtOnce } from './highlight-at-once';
import { runInWorker } from './run-in-worker';

const CLAMP_LINES = 40;
const CLAMP_CHARACTERS = 6_000;
/** Longest code that a browser lays out without a pause. The copy button copies the whole code. */
const MAX_CHARACTERS = 40_000;
/** Longer code stays plain. */
const MAX_HIGHLIGHTED = 10_000;
const CACHE_SIZE = 200;

/** Code written by an agent. Long code is cut until the reader asks for more. */
export function CodeBlock({ code, language, streaming }: { code: string; language: string; streaming: boolean }) {
  const [all, setAll] = useState(false);
  const lines = code.split('\n');
  const isLong = lines.length > CLAMP_LINES + 5 || code.length > CLAMP_CHARACTERS;
  const clamped = !all && !streaming && isLong;
  const head = clamped ? lines.slice(0, CLAMP_LINES).join('\n') : code;
  const shown = head.slice(0, endOfFirstPart(head, clamped ? CLAMP_CHARACTERS : MAX_CHARACTERS));
  const isNamed = language !== '' && language !== 'text';
  const highlighted = useHighlight(shown, language.toLowerCase(), !streaming);

  return (
    <figure dir="ltr" className="group/code relative my-3 rounded-md bg-sunken [--scroll-ground:var(--sunken)]">
      <figcaption className="absolute top-1.5 right-1.5 text-2xs text-ink-3">
        {isNamed && (
          <span className="bg-sunken px-1 group-focus-within/code:hidden group-hover/code:hidden max-sm:hidden">
            {language}
          </span>
        )}
        <CopyButton
          label="Copy code"
          text={() => code}
          className="bg-sunken p-1 pointer-coarse:opacity-100 opacity-0 group-focus-within/code:opacity-100 group-hover/code:opacity-100"
        />
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard
        tabIndex={0}
        // The language and the button that touch screens show have a line of their own: wide code doesn't run beneath it.
        className={clsx(
          'scroll-sideways overflow-x-auto rounded-md px-3 py-2.5 pointer-coarse:pt-7 text-xs',
          isNamed && 'sm:pt-7',
        )}
      >
        <code data-language={language.toLowerCase()}>{highlighted}</code>
      </pre>
      {clamped && (
        <UnfoldButton onPress={() => setAll(true)} className="w-full px-3 pb-2 text-left text-2xs text-ink-3">
          Show all {lines.length > CLAMP_LINES + 5 ? plural(lines.length, 'line') : plural(code.length, 'character')}
        </UnfoldButton>
      )}
      {!clamped && shown.length < code.length && (
        <p className="px-3 pb-2 text-2xs text-ink-3">
          … {plural(code.length - shown.length, 'more character')}. Copy includes all of the code.
        </p>
      )}
    </figure>
  );
}

const cache = new Map<string, ReactNode>();

/** Keeps the highlighting of the server's markup, for when the browser renders the same code. */
export function keepHighlighted(codes: Iterable<HTMLElement>): void {
  for (const code of codes) {
    if (code.childElementCount > 0) remember(codeKey(code.textContent, code.dataset.language ?? ''), fromMarkup(code));
  }
}

function fromMarkup({ childNodes }: Element): ReactNode[] {
  return [...childNodes].map((node, index) =>
    node instanceof Element ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: nodes have no other identity
      <span key={index} className={node.className}>
        {fromMarkup(node)}
      </span>
    ) : (
      node.textContent
    ),
  );
}

/** Highlighted code. Only colours change, never sizes, so the result may arrive late. */
function useHighlight(code: string, language: string, enabled: boolean): ReactNode {
  const key = codeKey(code, language);
  const atOnce = useContext(HighlightedAtOnce).get(key);
  const [, setReady] = useState<string | null>(null);
  useEffect(() => {
    if (!enabled || language === '' || code.length > MAX_HIGHLIGHTED || cache.has(key)) return;
    let isWanted = true;
    let step: { cancel(): void } | null = null;
    void runInWorker(['highlight', code, language]).then((tree) => {
      remember(key, tree === null ? code : toReact(tree));
      if (isWanted) step = enqueueIdle(() => setReady(key));
    });
    return () => {
      isWanted = false;
      step?.cancel();
    };
  }, [code, language, enabled, key]);
  return atOnce === undefined ? (cache.get(key) ?? code) : toReact(atOnce);
}

function remember(key: string, node: ReactNode): void {
  cache.set(key, node);
  const oldest = cache.keys().next().value;
  if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest);
}

function toReact(nodes: readonly RootContent[]): ReactNode[] {
  return nodes.map((node, index) => {
    if (node.type === 'text') return node.value;
    if (node.type !== 'element') return null;
    const names = node.properties.className;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: nodes have no other identity
      <span key={index} className={Array.isArray(names) ? names.join(' ') : undefined}>
        {toReact(node.children)}
      </span>
    );
  });
}
