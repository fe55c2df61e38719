'use client';

import type { Token } from 'marked';
import { createContext, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { inTurn } from '../in-turn';
import { hasTime, inSlice } from '../render-time';
import { fillsStep, isParsed, NOTHING_SETTLED, parseFurther, type Settled, STEP_PIECES, waitsForMore } from './parse';

const CACHE_SIZE = 50;

/**
 * The texts that may be parsed while the page is rendered; null for all. On the server, and while the browser takes its
 * markup over, only those that cost little: both must come to the same.
 */
export const ParsedAtOnce = createContext<ReadonlySet<string> | null>(null);

/** What took more than one step, after each of them: a row that comes into view again is not parsed again. */
const cache = new Map<string, readonly Settled[]>();

/**
 * The blocks of a text as far as they are parsed, and what follows them as it was written. However long it is, one
 * render adds no more than a step.
 *
 * @param streaming whether the text still grows
 */
export function useParsed(text: string, streaming: boolean): { tokens: Token[]; rest: string; isDone: boolean } {
  const parsedAtOnce = useContext(ParsedAtOnce);
  const isFirstPaint = parsedAtOnce !== null;
  const mayParse = parsedAtOnce === null || parsedAtOnce.has(text);
  const [steps, setSteps] = useState(0);
  const taken = useRef<{ text: string; states: readonly Settled[] }>({ text, states: [] });
  const state = useMemo(() => {
    if (!mayParse && steps === 0) return NOTHING_SETTLED;
    const { current } = taken;
    const known = streaming ? undefined : cache.get(text);
    if (known !== undefined) return known[Math.min(steps, known.length - 1)] as Settled;
    const before = current.states.at(-1) ?? NOTHING_SETTLED;
    if (current.text === text && current.states.length > 0 && isParsed(before, text)) return before;
    // What a server parsed is parsed, however long the browser has been at it: else the markup would be another.
    if (steps === 0 && !streaming && !isFirstPaint && !hasTime()) return before;
    const next = parseStep(before, text, streaming, isFirstPaint);
    const states = current.text === text ? [...current.states, next] : [next];
    taken.current = { text, states };
    if (!streaming && states.length > 1 && isParsed(next, text)) remember(text, states);
    return next;
  }, [text, streaming, mayParse, isFirstPaint, steps]);
  const isDone = isParsed(state, text);
  const isLeft = !isDone && !(streaming && waitsForMore(state, text));

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each step, the next
  useEffect(() => {
    if (!isLeft) return;
    const turn = inTurn(() => setSteps((count) => count + 1));
    return () => turn.cancel();
  }, [isLeft, steps]);

  return { tokens: state.shown, rest: text.slice(state.shownLength), isDone };
}

/** @param isFirstPaint what is parsed with the page costs little, and is the same whatever the time */
function parseStep(before: Settled, text: string, streaming: boolean, isFirstPaint: boolean): Settled {
  return inSlice((hasTimeLeft) =>
    parseFurther(before, text, {
      streaming,
      goesOn: (state) => !fillsStep(before, state) && (isFirstPaint || hasTimeLeft()),
    }),
  );
}

function remember(text: string, states: readonly Settled[]): void {
  // What grew while it was shown has no first step that is small.
  if ((states[0] as Settled).pieces > 2 * STEP_PIECES) return;
  cache.set(text, states);
  const oldest = cache.keys().next().value;
  if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest);
}
