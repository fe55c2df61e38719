import type { Shift } from './stillness';

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
export type Scrolls = ReadonlyMap<Scroller, { left: Reach; top: Reach }>;

const ROUNDING_PX = 1;

export function scrollersOf(element: Element): Element[] {
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
