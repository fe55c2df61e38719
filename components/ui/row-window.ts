'use client';

import { type ReactVirtualizer, useVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useEffect, useEffectEvent, useLayoutEffect, useState } from 'react';
import { enqueueIdle } from './idle-queue';

export type RowVirtualizer = ReactVirtualizer<HTMLDivElement, HTMLDivElement>;

type RowOptions = Omit<Parameters<typeof useVirtualizer<HTMLDivElement, HTMLDivElement>>[0], 'getScrollElement'>;

/**
 * A virtual window over rows that keeps the reader's row in place while rows are added and removed around it. While the
 * reader follows the end, the end stays in view when rows are added or the box is resized.
 *
 * @param version changes with the rows
 */
export function useRowWindow(
  options: { scroller: RefObject<HTMLDivElement | null>; follows: boolean; version: unknown } & RowOptions,
): RowVirtualizer {
  const { scroller, follows, version, ...rows } = options;
  const virtualizer = useVirtualizer<HTMLDivElement, HTMLDivElement>({
    getScrollElement: () => scroller.current,
    anchorTo: 'end',
    useFlushSync: false,
    ...rows,
  });
  // Doesn't run when only the count changes: scrolling away changes it before `follows` does.
  const keepEnd = useEffectEvent(() => {
    if (follows && rows.count > 0) virtualizer.scrollToEnd();
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows that changed may have moved the end
  useLayoutEffect(() => keepEnd(), [version, follows]);
  useStickyEnd(scroller, follows);
  return virtualizer;
}

/** Keeps the end of a box in view when the box is resized, while the reader follows the end. */
export function useStickyEnd(scroller: RefObject<HTMLElement | null>, follows: boolean): void {
  const keepEnd = useEffectEvent((box: HTMLElement) => {
    if (follows) box.scrollTop = box.scrollHeight;
  });
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    // The box may have been resized before it is observed.
    let height: number | null = null;
    const observer = new ResizeObserver(() => {
      if (box.clientHeight === height) return;
      height = box.clientHeight;
      keepEnd(box);
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, [scroller]);
}

/** Elements that one idle job adds to the page: about forty milliseconds of layout. */
export const STEP_WEIGHT = 1_000;

interface Progress<Row> {
  rows: readonly Row[];
  /** Keys of the rows in the page. */
  keys: ReadonlySet<React.Key>;
  waiting: ReadonlySet<Row>;
}

interface ProgressiveOptions<Row> {
  keyOf: (row: Row) => React.Key;
  /** Approximate number of elements of the row. */
  weightOf: (row: Row) => number;
  /** Maximum weight of the rows in the first render. */
  firstWeight: number;
  /** Rows that are always in the first render, whatever their weight. */
  isInSight?: (row: Row) => boolean;
}

/**
 * Adds many rows to the page step by step, from the last one up, so that no step becomes a long task. Rows that are in
 * the page stay.
 *
 * @param rows the same array while unchanged
 * @returns the rows that are not in the page yet
 */
export function useProgressiveRows<Row>(rows: readonly Row[], options: ProgressiveOptions<Row>): ReadonlySet<Row> {
  const [progress, setProgress] = useState(() => nextStep(new Set(), rows, options));
  const now = progress.rows === rows ? progress : nextStep(progress.keys, rows, options);
  if (now !== progress) setProgress(now);

  const step = useEffectEvent(() => setProgress(nextStep(progress.keys, rows, options)));
  useEffect(() => {
    if (progress.waiting.size === 0) return;
    const scheduled = enqueueIdle(() => step());
    return () => scheduled.cancel();
  }, [progress]);
  return now.waiting;
}

function nextStep<Row>(
  keys: ReadonlySet<React.Key>,
  rows: readonly Row[],
  { keyOf, weightOf, firstWeight, isInSight }: ProgressiveOptions<Row>,
): Progress<Row> {
  const missing = rows.filter((row) => !keys.has(keyOf(row)));
  const max = keys.size === 0 ? firstWeight : STEP_WEIGHT;
  const from = rowsBefore(missing.length, max, (at) => weightOf(missing[at] as Row));
  const waiting = new Set(missing.slice(0, from).filter((row) => isInSight?.(row) !== true));
  return { rows, keys: new Set(rows.filter((row) => !waiting.has(row)).map(keyOf)), waiting };
}

/** @returns the first of the rows `[result, to)` that together weigh at most `max`; at least one row */
export function rowsBefore(to: number, max: number, weightOf: (row: number) => number): number {
  let from = to;
  for (let weight = 0; from > 0; from--) {
    weight += weightOf(from - 1);
    if (weight > max && from < to) break;
  }
  return from;
}

/** Distance that counts as at the end. Less than one step of a mouse wheel, so that a step leaves it. */
const END_PX = 32;
/** A scroll this soon after a wheel, touch or key event is the reader's. Others are judged by where they lead. */
const OWN_SCROLL_MS = 400;
const KEYS_UP = new Set(['ArrowUp', 'PageUp', 'Home']);
const KEYS = new Set([...KEYS_UP, 'ArrowDown', 'PageDown', 'End', ' ']);

/**
 * Reports when the reader leaves the end of a scroller or returns to it.
 *
 * Judges by wheel, touch, scrollbar and key events rather than by scroll events, because new lines move the end, too. A
 * scroll without such an event counts only if it leads up by more than the content shrank: the browser's search and
 * screen readers scroll like that.
 */
export function useFollow(scroller: RefObject<HTMLElement | null>, onFollow: (follows: boolean) => void): void {
  const report = useEffectEvent(onFollow);
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    let actedAt = Number.NEGATIVE_INFINITY;
    let isHeld = false;
    let touchY = 0;
    const distance = () => box.scrollHeight - box.scrollTop - box.clientHeight;
    const canLeave = () => box.scrollTop > 0 && box.scrollHeight > box.clientHeight;
    const act = (isUp: boolean) => {
      actedAt = performance.now();
      if (isUp && canLeave()) report(false);
    };
    const onWheel = (event: WheelEvent) => act(event.deltaY < 0);
    const onKey = (event: KeyboardEvent) => {
      if (KEYS.has(event.key)) act(KEYS_UP.has(event.key));
    };
    const onTouchStart = (event: TouchEvent) => {
      touchY = event.touches[0]?.clientY ?? 0;
    };
    const onTouchMove = (event: TouchEvent) => {
      const y = event.touches[0]?.clientY ?? touchY;
      act(y > touchY);
      touchY = y;
    };
    // A press beyond the client width is on the scrollbar.
    const onDown = (event: PointerEvent) => {
      isHeld = event.target === box && event.offsetX >= box.clientWidth;
    };
    const onUp = () => {
      isHeld = false;
    };
    // If lines are removed and added together, the page is away from the end for one frame, never for two.
    let frame = 0;
    const leaveIfStill = ({ top, height }: { top: number; height: number }) => {
      if (box.scrollTop === top && box.scrollHeight === height) report(false);
    };
    let before = { top: box.scrollTop, height: box.scrollHeight };
    const onScroll = () => {
      const now = { top: box.scrollTop, height: box.scrollHeight };
      const isUp = now.top < before.top;
      const removed = Math.max(0, before.height - now.height);
      const isTaken = before.top - now.top - removed > END_PX && distance() > END_PX;
      before = now;
      if (!isHeld && performance.now() - actedAt > OWN_SCROLL_MS) {
        cancelAnimationFrame(frame);
        if (isTaken) frame = requestAnimationFrame(() => (frame = requestAnimationFrame(() => leaveIfStill(now))));
        return;
      }
      if (distance() <= END_PX) report(true);
      else if (isUp || isHeld) report(false);
    };
    const over = new AbortController();
    const { signal } = over;
    const passive = { passive: true, signal };
    box.addEventListener('wheel', onWheel, passive);
    box.addEventListener('keydown', onKey, { signal });
    box.addEventListener('touchstart', onTouchStart, passive);
    box.addEventListener('touchmove', onTouchMove, passive);
    box.addEventListener('pointerdown', onDown, { signal });
    box.addEventListener('scroll', onScroll, passive);
    addEventListener('pointerup', onUp, { signal });
    return () => {
      cancelAnimationFrame(frame);
      over.abort();
    };
  }, [scroller]);
}
