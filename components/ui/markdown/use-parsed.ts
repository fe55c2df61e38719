'use client';

import type { Token } from 'marked';
import { createContext, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { whenIdle } from '../when-idle';
import { isParsed, NOTHING_SETTLED, parseFurther, type Settled, waitsForMore } from './parse';

/** A render parses for no longer than this; the rest is done in pieces as long, when the page is idle. */
const SLICE_MS = 8;
const CACHE_SIZE = 50;

/**
 * The texts that may be parsed while the page is rendered; null for all. On the server, and while the browser takes its
 * markup over, only those that cost little: both must come to the same.
 */
export const ParsedAtOnce = createContext<ReadonlySet<string> | null>(null);

/** What took more than one slice, so that a row that comes into view again is there at once. */
const cache = new Map<string, Settled>();

/**
 * The blocks of a text as far as they are parsed, and what follows them as it was written.
 *
 * @param streaming whether the text still grows
 */
export function useParsed(text: string, streaming: boolean): { tokens: Token[]; rest: string; isDone: boolean } {
  const parsedAtOnce = useContext(ParsedAtOnce);
  const mayParse = parsedAtOnce === null || parsedAtOnce.has(text);
  const settled = useRef(NOTHING_SETTLED);
  const [slices, setSlices] = useState(0);
  const state = useMemo(() => {
    if (!mayParse) return NOTHING_SETTLED;
    const known = cache.get(text);
    const until = performance.now() + SLICE_MS;
    const goesOn = () => performance.now() < until;
    const next = known ?? parseFurther(settled.current, text, { streaming, goesOn });
    settled.current = next;
    if (!streaming && slices > 0 && isParsed(next, text)) remember(text, next);
    return next;
  }, [text, streaming, mayParse, slices]);
  const isDone = isParsed(state, text);
  const isLeft = !isDone && mayParse && !(streaming && waitsForMore(state, text));

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each slice, the next
  useEffect(() => {
    if (!isLeft) return;
    const idle = whenIdle(() => setSlices((count) => count + 1));
    return () => idle.cancel();
  }, [isLeft, slices]);

  return { tokens: state.shown, rest: text.slice(state.shownLength), isDone };
}

function remember(text: string, state: Settled): void {
  cache.set(text, state);
  const oldest = cache.keys().next().value;
  if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest);
}
