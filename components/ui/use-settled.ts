'use client';

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { isInView } from './in-view';
import { readScrolls, type Scrolls, scrollersOf, shiftBetween } from './scrolled-by';
import { type Place, type Shift, Stillness } from './stillness';

const LOOK_MS = 100;
/**
 * What begins to scroll within so many looks of a wheel, a finger or a key is scrolled by it until it stands. Looks, and
 * no time: a busy page scrolls late, and looks late too. An input that scrolled nothing moved nothing.
 */
const LOOKS_TO_BEGIN = 3;
/** What goes away while it scrolls never says that it stands. */
const LOOKS_TO_END = 20;
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
      stillness.look(place, now, isScrolledByReader() ? shiftBetween(before, scrolls) : UNMOVED);
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
/** Since the reader's last input that scrolls. */
let looksSince = Number.POSITIVE_INFINITY;
/** What that input has scrolled, and scrolls still. */
const scrolling = new Set<EventTarget>();

const SCROLLS = ['wheel', 'touchmove', 'keydown'] as const;
const SCROLL_KEYS = /^(?:Arrow(?:Up|Down|Left|Right)|Page(?:Up|Down)|Home|End| )$/;

function isScrolledByReader(): boolean {
  return looksSince < (scrolling.size > 0 ? LOOKS_TO_END : LOOKS_TO_BEGIN);
}

function noteInput(event: Event): void {
  if (event instanceof KeyboardEvent && !SCROLL_KEYS.test(event.key)) return;
  if (!isScrolledByReader()) scrolling.clear();
  looksSince = 0;
}

function noteScroll({ target }: Event): void {
  // A browser that tells no end of it would leave it scrolling.
  if (target !== null && 'onscrollend' in window && looksSince < LOOKS_TO_BEGIN) scrolling.add(target);
}

function noteScrollEnd({ target }: Event): void {
  if (target === null || !scrolling.has(target)) return;
  // The last of the way is the reader's too.
  lookAtAll();
  scrolling.delete(target);
}

function lookAtAll(): void {
  for (const one of looks) one();
}

/** One timer for all that is looked at. */
function everyLook(look: () => void): () => void {
  looks.add(look);
  if (timer === null) {
    timer = setInterval(() => {
      lookAtAll();
      looksSince += 1;
    }, LOOK_MS);
    listen((type, note) => window.addEventListener(type, note, { capture: true, passive: true }));
  }
  return () => {
    looks.delete(look);
    if (looks.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    listen((type, note) => window.removeEventListener(type, note, { capture: true }));
    looksSince = Number.POSITIVE_INFINITY;
    scrolling.clear();
  };
}

function listen(act: (type: string, note: (event: Event) => void) => void): void {
  for (const type of SCROLLS) act(type, noteInput);
  act('scroll', noteScroll);
  act('scrollend', noteScrollEnd);
}
