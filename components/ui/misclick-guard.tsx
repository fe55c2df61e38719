'use client';

import { clsx } from 'clsx';
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { isInView } from './in-view';

/** A press within this time after a control appeared or moved was aimed at something else. */
export const SETTLE_MS = 800;
/** A control that moves by less than this still catches the press. */
const MOVED_PX = 8;
const POLL_MS = 100;
/**
 * A scroll that starts within this many polls after a wheel, finger or key event is attributed to the reader. Polls
 * rather than milliseconds: a busy page is late in scrolling and in polling.
 */
const POLLS_TO_START = 3;
/** A scroll counts as ended after this many polls: a scroller that is removed while it scrolls fires no `scrollend`. */
const POLLS_TO_END = 20;
const ROUNDING_PX = 1;

interface Offset {
  left: number;
  top: number;
}

/** Position in the window; null while out of sight. */
type Place = Offset | null;

const UNMOVED: Offset = { left: 0, top: 0 };

/** A button for irreversible actions in lists that change: ignores presses aimed at what was there before. */
export function SettledButton(props: {
  /** Identifies the subject: the button settles again when it changes. */
  of: string;
  onPress: () => void;
  onBlur?: () => void;
  disabled?: boolean | undefined;
  /** Accessible name, if it differs from the content. */
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
      aria-label={label}
      // `disabled` would drop the focus.
      aria-disabled={disabled || !settled}
      onClick={() => !disabled && isIntended() && onPress()}
      onBlur={onBlur}
      className={clsx('transition-colors duration-300 aria-disabled:cursor-default', className)}
    >
      {children}
    </button>
  );
}

/**
 * Guards a control against presses aimed at something else. The control is settled once it has been visible, in the
 * same place and about the same subject for `SETTLE_MS`. Press handlers also call `isIntended`, which covers the time
 * since the last poll.
 *
 * @param of identifies the subject; a new one has to settle again
 * @param control the pressed element, if it is only a part of `box`
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
    const tracker = new PlaceTracker();
    let isIntersecting = false;
    let scrolls: Scrolls = new Map();
    const placeOf = (target: Element): Place => {
      if (!isIntersecting || document.visibilityState !== 'visible') return null;
      const rect = target.getBoundingClientRect();
      if (!isInView(target, rect)) return null;
      return { left: rect.left, top: rect.top };
    };
    const poll = () => {
      const now = performance.now();
      const target = control.current ?? element;
      const place = placeOf(target);
      const before = scrolls;
      scrolls = place === null ? new Map() : readScrolls(scrollersOf(target));
      tracker.update(place, now, isScrolledByReader() ? shiftBetween(before, scrolls) : UNMOVED);
      const settled = tracker.isSettled(now);
      setSettledOf(settled ? of : null);
      return settled;
    };
    check.current = poll;
    const observer = new IntersectionObserver((entries) => {
      isIntersecting = entries.at(-1)?.isIntersecting === true;
      poll();
    });
    observer.observe(element);
    const stop = startPolling(poll);
    return () => {
      observer.disconnect();
      stop();
      check.current = () => false;
    };
  }, [box, control, of]);

  return { settled: of !== null && settledOf === of, isIntended: useCallback(() => check.current(), []) };
}

/** Measures how long an element has stayed in place. Times come from one monotonic clock. */
export class PlaceTracker {
  #place: Place = null;
  #since = 0;

  /**
   * @param scrolled distance by which the reader has scrolled the element since the last update: such a move is
   *   expected
   */
  update(place: Place, now: number, scrolled: Offset): void {
    if (place !== null && this.#place !== null) {
      const expected = { left: this.#place.left + scrolled.left, top: this.#place.top + scrolled.top };
      if (isNear(place, expected)) {
        // The expected place instead of `place`, or many small moves during a scroll would add up unnoticed.
        this.#place = expected;
        return;
      }
      // Scroll anchoring kept the element in place.
      if (isNear(place, this.#place)) return;
    }
    this.#place = place;
    this.#since = now;
  }

  isSettled(now: number): boolean {
    return this.#place !== null && now - this.#since >= SETTLE_MS;
  }
}

function isNear(a: Offset, b: Offset): boolean {
  return Math.abs(a.left - b.left) <= MOVED_PX && Math.abs(a.top - b.top) <= MOVED_PX;
}

/** The scroll state of an element or a stand-in for one. */
export type Scroller = Pick<
  Element,
  'scrollLeft' | 'scrollTop' | 'scrollWidth' | 'scrollHeight' | 'clientWidth' | 'clientHeight'
>;

/** Scroll offset on one axis, and its maximum. */
interface Reach {
  at: number;
  max: number;
}

/** Scroll state of all ancestors of an element, including the window. */
type Scrolls = ReadonlyMap<Scroller, { left: Reach; top: Reach }>;

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
        left: { at: one.scrollLeft, max: one.scrollWidth - one.clientWidth },
        top: { at: one.scrollTop, max: one.scrollHeight - one.clientHeight },
      },
    ]),
  );
}

/** Distance by which the reader's scrolling between two states moved the content. */
export function shiftBetween(before: Scrolls, after: Scrolls): Offset {
  const shift = { left: 0, top: 0 };
  for (const [scroller, then] of before) {
    const now = after.get(scroller);
    if (now === undefined) continue;
    shift.left -= byReader(then.left, now.left);
    shift.top -= byReader(then.top, now.top);
  }
  return shift;
}

/** Ignores moves past the old end (the page follows new content) or from past the new end (the browser clamps). */
function byReader(then: Reach, now: Reach): number {
  const isWithin = Math.abs(now.at) <= then.max + ROUNDING_PX && Math.abs(then.at) <= now.max + ROUNDING_PX;
  return isWithin ? now.at - then.at : 0;
}

const polls = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
/** Number of polls since the reader's last wheel, touch or key event that can scroll. */
let pollsSinceInput = Number.POSITIVE_INFINITY;
/** Elements that the last such event is still scrolling. */
const scrolling = new Set<EventTarget>();

const SCROLL_KEYS = /^(?:Arrow(?:Up|Down|Left|Right)|Page(?:Up|Down)|Home|End| )$/;

function isScrolledByReader(): boolean {
  return pollsSinceInput < (scrolling.size > 0 ? POLLS_TO_END : POLLS_TO_START);
}

function onInput(event: Event): void {
  if (event instanceof KeyboardEvent && !SCROLL_KEYS.test(event.key)) return;
  if (!isScrolledByReader()) scrolling.clear();
  pollsSinceInput = 0;
}

function onScroll({ target }: Event): void {
  // Without `scrollend`, the target would never leave the set.
  if (target !== null && 'onscrollend' in window && pollsSinceInput < POLLS_TO_START) scrolling.add(target);
}

function onScrollEnd({ target }: Event): void {
  if (target === null || !scrolling.has(target)) return;
  // Attributes the last stretch of the scroll to the reader.
  runPolls();
  scrolling.delete(target);
}

const LISTENERS: readonly [type: string, listener: (event: Event) => void][] = [
  ['wheel', onInput],
  ['touchmove', onInput],
  ['keydown', onInput],
  ['scroll', onScroll],
  ['scrollend', onScrollEnd],
];

function runPolls(): void {
  for (const poll of polls) poll();
}

/** All guarded controls share one timer. */
function startPolling(poll: () => void): () => void {
  polls.add(poll);
  if (timer === null) {
    timer = setInterval(() => {
      runPolls();
      pollsSinceInput += 1;
    }, POLL_MS);
    for (const [type, listener] of LISTENERS) addEventListener(type, listener, { capture: true, passive: true });
  }
  return () => {
    polls.delete(poll);
    if (polls.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    for (const [type, listener] of LISTENERS) removeEventListener(type, listener, { capture: true });
    pollsSinceInput = Number.POSITIVE_INFINITY;
    scrolling.clear();
  };
}
