'use client';

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { isInView } from './in-view';
import { readScrolls, type Scrolls, scrollersOf, shiftBetween } from './scrolled-by';
import { type Place, type Shift, Stillness } from './stillness';

const LOOK_MS = 100;
/** What scrolls within this of a wheel, a finger or a key was scrolled by it. One that scrolled nothing moved nothing. */
const SCROLLING_MS = 300;
const UNMOVED: Shift = { left: 0, top: 0 };

/**
 * Whether what can be pressed here has been here for long enough that a press is meant for it: it is in sight, stands
 * still, and is still the same thing. What acts on a press asks `isMeant` then, for what happened since the last look.
 *
 * @param of what the control is about; about something else it is a new one
 * @param control what is pressed, where that is a part of `box`
 */
export function useSettled(
  box: RefObject<Element | null>,
  of: string | null,
  control: RefObject<Element | null> = box,
): { settled: boolean; isMeant: () => boolean } {
  const [settledOf, setSettledOf] = useState<string | null>(null);
  const check = useRef<() => boolean>(() => false);

  useEffect(() => {
    if (of === null) return;
    const element = box.current;
    if (element === null) return;
    const stillness = new Stillness();
    let inSight = false;
    let scrolls: Scrolls = new Map();
    const placeOf = (target: Element): Place => {
      if (!inSight || document.visibilityState !== 'visible') return null;
      const rect = target.getBoundingClientRect();
      if (!isInView(target, rect)) return null;
      return { left: rect.left, top: rect.top };
    };
    const look = () => {
      const now = performance.now();
      const target = control.current ?? element;
      const place = placeOf(target);
      const before = scrolls;
      scrolls = place === null ? new Map() : readScrolls(scrollersOf(target));
      stillness.look(place, now, now - lastScroll < SCROLLING_MS ? shiftBetween(before, scrolls) : UNMOVED);
      const settled = stillness.isSettled(now);
      setSettledOf(settled ? of : null);
      return settled;
    };
    check.current = look;
    const observer = new IntersectionObserver((entries) => {
      inSight = entries.at(-1)?.isIntersecting === true;
      look();
    });
    observer.observe(element);
    const stop = everyLook(look);
    return () => {
      observer.disconnect();
      stop();
      check.current = () => false;
    };
  }, [box, control, of]);

  return { settled: of !== null && settledOf === of, isMeant: useCallback(() => check.current(), []) };
}

const looks = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let lastScroll = Number.NEGATIVE_INFINITY;

const SCROLLS = ['wheel', 'touchmove', 'keydown'] as const;
const SCROLL_KEYS = /^(?:Arrow(?:Up|Down|Left|Right)|Page(?:Up|Down)|Home|End| )$/;

function noteScroll(event: Event): void {
  if (event instanceof KeyboardEvent && !SCROLL_KEYS.test(event.key)) return;
  lastScroll = performance.now();
}

/** One timer for all that is looked at. */
function everyLook(look: () => void): () => void {
  looks.add(look);
  if (timer === null) {
    timer = setInterval(() => {
      for (const one of looks) one();
    }, LOOK_MS);
    for (const kind of SCROLLS) window.addEventListener(kind, noteScroll, { capture: true, passive: true });
  }
  return () => {
    looks.delete(look);
    if (looks.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    for (const kind of SCROLLS) window.removeEventListener(kind, noteScroll, { capture: true });
  };
}
