'use client';

import type { Token } from 'marked';
import { createContext, useContext, useEffect, useState } from 'react';
import { inTurn } from '../in-turn';
import { hasTime, inSlice } from '../render-time';
import { fillsStep, isParsed, NOTHING_SETTLED, parseFurther, type Settled, STEP_PIECES, waitsForMore } from './parse';

const CACHE_SIZE = 50;

/** The texts that may be parsed while the page is rendered; null for all. On the server, only those that cost little. */
export const ParsedAtOnce = createContext<ReadonlySet<string> | null>(null);

/** What took more than one step, after each of them: a row that comes into view again is not parsed again. */
const cache = new Map<string, readonly Settled[]>();

interface Wanted {
  text: string;
  streaming: boolean;
  /** Whether it may be parsed before its first step is asked for. */
  mayParse: boolean;
  isFirstPaint: boolean;
  /** How many steps were asked for. */
  steps: number;
}

/** How far a text is parsed, and what was asked for then. */
interface Taken extends Wanted {
  states: readonly Settled[];
  state: Settled;
}

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
  const wanted: Wanted = { text, streaming, mayParse, isFirstPaint, steps };
  const [taken, setTaken] = useState(() => takeStep(null, wanted));
  const now = isTaken(taken, wanted) ? taken : takeStep(taken, wanted);
  if (now !== taken) setTaken(now);
  const { state } = now;
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

function isTaken(taken: Taken, wanted: Wanted): boolean {
  return (Object.keys(wanted) as (keyof Wanted)[]).every((key) => taken[key] === wanted[key]);
}

function takeStep(taken: Taken | null, wanted: Wanted): Taken {
  const { text, streaming, mayParse, isFirstPaint, steps } = wanted;
  const before = taken?.states.at(-1) ?? NOTHING_SETTLED;
  const states = taken?.states ?? [];
  const stays = (state: Settled): Taken => ({ ...wanted, states, state });
  if (!mayParse && steps === 0) return stays(NOTHING_SETTLED);
  const known = streaming ? undefined : cache.get(text);
  if (known !== undefined) return stays(known[Math.min(steps, known.length - 1)] as Settled);
  const isSameText = taken?.text === text;
  if (isSameText && states.length > 0 && isParsed(before, text)) return stays(before);
  if (steps === 0 && !streaming && !hasTime()) return stays(before);
  const next = parseStep(before, text, streaming, isFirstPaint);
  const all = isSameText ? [...states, next] : [next];
  if (!streaming && all.length > 1 && isParsed(next, text)) remember(text, all);
  return { ...wanted, states: all, state: next };
}

/** @param isFirstPaint what is parsed with the page costs little, and no step follows it on the server */
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
