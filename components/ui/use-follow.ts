'use client';

import { type RefObject, useEffect, useEffectEvent } from 'react';

/** Nearer to the end than this counts as at the end. Less than a turn of a mouse wheel, so that one leaves it. */
const END_PX = 32;
/** A scroll so soon after a wheel, a finger or a key was theirs; of any other it must be told from where it led. */
const OWN_SCROLL_MS = 400;
const KEYS_UP = new Set(['ArrowUp', 'PageUp', 'Home']);
const KEYS = new Set([...KEYS_UP, 'ArrowDown', 'PageDown', 'End', ' ']);

/**
 * Tells whether the reader leaves the end of the log or comes back to it.
 *
 * What they do is told by the wheel, the finger, the bar or the key, not by the scroll that comes of it: while two
 * thousand lines a second push the end away, a scroll alone says little. Up, and by more than has gone, leads only what
 * acts for them without any of these: the browser's own search, a screen reader.
 */
export function useFollow(scroller: RefObject<HTMLElement | null>, onFollow: (follows: boolean) => void): void {
  const tell = useEffectEvent(onFollow);
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
      if (isUp && canLeave()) tell(false);
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
    // The bar at its side: a press there is outside of what the box has inside.
    const onDown = (event: PointerEvent) => {
      isHeld = event.target === box && event.offsetX >= box.clientWidth;
    };
    const onUp = () => {
      isHeld = false;
    };
    // where lines go and others come at once, the page itself stands away from the end, but never for two frames
    let look = 0;
    const leaveIfStill = ({ top, height }: { top: number; height: number }) => {
      if (box.scrollTop === top && box.scrollHeight === height) tell(false);
    };
    let before = { top: box.scrollTop, height: box.scrollHeight };
    const onScroll = () => {
      const now = { top: box.scrollTop, height: box.scrollHeight };
      const isUp = now.top < before.top;
      const gone = Math.max(0, before.height - now.height);
      const isTaken = before.top - now.top - gone > END_PX && distance() > END_PX;
      before = now;
      if (!isHeld && performance.now() - actedAt > OWN_SCROLL_MS) {
        cancelAnimationFrame(look);
        if (isTaken) look = requestAnimationFrame(() => (look = requestAnimationFrame(() => leaveIfStill(now))));
        return;
      }
      if (distance() <= END_PX) tell(true);
      else if (isUp || isHeld) tell(false);
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
      cancelAnimationFrame(look);
      over.abort();
    };
  }, [scroller]);
}
