'use client';

import { clsx } from 'clsx';
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { isInView } from './in-view';

/**
 * For what can't be taken back, where rows come and go: it takes no press that was meant for what stood there before.
 *
 * @param of what it is about; about something else it is a new one
 */
export function SettledButton(props: {
  of: string;
  onPress: () => void;
  onBlur?: () => void;
  disabled?: boolean | undefined;
  /** Where it is not what stands on it. */
  label?: string | undefined;
  className?: string;
  children: ReactNode;
}) {
  const { of, onPress, onBlur, disabled = false, label, className, children } = props;
  const button = useRef<HTMLButtonElement>(null);
  const { settled, isIntended } = useSettled(button, of);
  return (
    <button
      ref={button}
      type="button"
      disabled={disabled}
      aria-label={label}
      // It keeps the focus and its place: it is only for a moment.
      aria-disabled={disabled || !settled}
      onClick={() => isIntended() && onPress()}
      onBlur={onBlur}
      className={clsx('transition-colors duration-300 aria-disabled:cursor-default', className)}
    >
      {children}
    </button>
  );
}

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
): { settled: boolean; isIntended: () => boolean } {
  const [settledOf, setSettledOf] = useState<string | null>(null);
  const check = useRef<() => boolean>(() => false);

  useEffect(() => {
    if (of === null) return;
    const element = box.current;
    if (element === null) return;
    const stillness = new PlaceTracker();
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

  return { settled: of !== null && settledOf === of, isIntended: useCallback(() => check.current(), []) };
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

/** What has just appeared, or was just moved under the pointer, was not what was meant by a press within this. */
export const SETTLE_MS = 800;
/** Nobody misses a control by so little. */
const MOVED_PX = 8;

/** A way across the window. */
export interface Shift {
  left: number;
  top: number;
}

/** Where something stands in the window; null while it is out of sight. */
type Place = Shift | null;

/** How long something has stood where it stands. Times are those of one clock that only goes forward. */
export class PlaceTracker {
  #place: Place = null;
  #since = 0;

  /** @param scrolled how far the reader's scrolling has moved it since the last look: where that took it they know it to be */
  look(place: Place, now: number, scrolled: Shift): void {
    if (place !== null && this.#place !== null) {
      const expected = { left: this.#place.left + scrolled.left, top: this.#place.top + scrolled.top };
      if (isNear(place, expected)) {
        // Not `place`: many small moves while the reader scrolls are a large one.
        this.#place = expected;
        return;
      }
      // The browser kept it in its place although something scrolled.
      if (isNear(place, this.#place)) return;
    }
    this.#place = place;
    this.#since = now;
  }

  isSettled(now: number): boolean {
    return this.#place !== null && now - this.#since >= SETTLE_MS;
  }
}

function isNear(a: Shift, b: Shift): boolean {
  return Math.abs(a.left - b.left) <= MOVED_PX && Math.abs(a.top - b.top) <= MOVED_PX;
}

/** What of a scroller has to do with where its content stands. An Element is one. */
export type Scroller = Pick<
  Element,
  'scrollLeft' | 'scrollTop' | 'scrollWidth' | 'scrollHeight' | 'clientWidth' | 'clientHeight'
>;

/** How far something was scrolled along one axis, and how far it could be. */
interface Reach {
  at: number;
  most: number;
}

/** How far all that something stands in was scrolled, the window too. */
type Scrolls = ReadonlyMap<Scroller, { left: Reach; top: Reach }>;

const ROUNDING_PX = 1;

function scrollersOf(element: Element): Element[] {
  const scrollers: Element[] = [];
  for (let one = element.parentElement; one !== null; one = one.parentElement) scrollers.push(one);
  return scrollers;
}

export function readScrolls(scrollers: Iterable<Scroller>): Scrolls {
  return new Map(
    Array.from(scrollers, (one) => [
      one,
      {
        left: { at: one.scrollLeft, most: one.scrollWidth - one.clientWidth },
        top: { at: one.scrollTop, most: one.scrollHeight - one.clientHeight },
      },
    ]),
  );
}

/** How far what stands in these was moved by a reader who scrolled between the two. */
export function shiftBetween(before: Scrolls, after: Scrolls): Shift {
  const shift = { left: 0, top: 0 };
  for (const [scroller, then] of before) {
    const now = after.get(scroller);
    if (now === undefined) continue;
    shift.left -= byReader(then.left, now.left);
    shift.top -= byReader(then.top, now.top);
  }
  return shift;
}

/**
 * A reader scrolls within what there is. Beyond the end there was, the page follows what came in; back from where the
 * end is now, the browser does, for what went.
 */
function byReader(then: Reach, now: Reach): number {
  const isWithin = Math.abs(now.at) <= then.most + ROUNDING_PX && Math.abs(then.at) <= now.most + ROUNDING_PX;
  return isWithin ? now.at - then.at : 0;
}

/**
 * A press takes the focus away before it is over, and a hand takes a tenth of a second for it. What disappears with the
 * focus would move what is pressed from under the pointer, and the press would hit nothing.
 */

let isDown = false;
const waiting = new Set<() => void>();

function begin(): void {
  isDown = true;
}

/** Its click comes right behind the release. Leaving the window counts as one: the real one happens outside. */
function end({ type, target }: Event): void {
  if (type === 'blur' && target !== window) return;
  setTimeout(() => {
    isDown = false;
    const acts = [...waiting];
    waiting.clear();
    for (const act of acts) act();
  });
}

// From the start: a press is known only to those who saw it begin. One by touch tells its pointer's end first, and then
// what a mouse would have done.
if (typeof window !== 'undefined') {
  for (const kind of ['pointerdown', 'mousedown']) window.addEventListener(kind, begin, { capture: true });
  for (const kind of ['pointerup', 'pointercancel', 'mouseup', 'dragend', 'blur']) {
    window.addEventListener(kind, end, { capture: true });
  }
}

/** Acts once no press is under way: now, or after its click. @returns takes it back */
export function afterPress(act: () => void): () => void {
  if (!isDown) {
    act();
    return () => {};
  }
  waiting.add(act);
  return () => waiting.delete(act);
}
