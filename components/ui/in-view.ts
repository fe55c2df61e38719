/** Part of the window, in its pixels. */
export type Area = Pick<DOMRectReadOnly, 'left' | 'top' | 'right' | 'bottom'>;

/** What stands over the page, whichever part of it, bears this: a browser's observers look through it. */
export const OVERLAY = { 'data-over': '' } as const;

const ROUNDED_PX = 1;

/**
 * The rows of an area in which a person sees an element from the area's left to its right: nothing stands over it there,
 * and a page that is magnified shows all of them.
 *
 * @returns `[from, to)` in the window's pixels, ascending and apart
 */
export function rowsInView(element: Element, area: Area): readonly (readonly [from: number, to: number])[] {
  const view = windowInView();
  if (area.left < view.left - ROUNDED_PX || area.right > view.right + ROUNDED_PX) return [];
  if (document.querySelector('dialog:modal')?.contains(element) === false) return [];
  const whole = [Math.max(area.top, view.top), Math.min(area.bottom, view.bottom)] as const;
  return areasOver(element)
    .filter(({ left, right }) => left < area.right && right > area.left)
    .reduce((rows, { top, bottom }) => rows.flatMap((row) => without(row, top, bottom)), [whole])
    .filter(([from, to]) => from < to);
}

/** Whether a person sees some of an area of an element. */
export function isInView(element: Element, area: Area): boolean {
  const view = windowInView();
  const [left, right] = [Math.max(area.left, view.left), Math.min(area.right, view.right)];
  return left < right && rowsInView(element, { left, top: area.top, right, bottom: area.bottom }).length > 0;
}

function without([from, to]: readonly [number, number], top: number, bottom: number): (readonly [number, number])[] {
  if (bottom <= from || top >= to) return [[from, to]];
  return [
    [from, Math.min(top, to)],
    [Math.max(bottom, from), to],
  ];
}

function areasOver(element: Element): Area[] {
  return Array.from(document.querySelectorAll('[data-over]'))
    .filter((over) => !over.contains(element))
    .map((over) => over.getBoundingClientRect());
}

/** Of a page that is magnified with two fingers, a part of the window. */
function windowInView(): Area {
  if (visualViewport === null) return { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  const { offsetLeft: left, offsetTop: top, width, height } = visualViewport;
  return { left, top, right: left + width, bottom: top + height };
}
