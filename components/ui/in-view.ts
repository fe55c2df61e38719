/** A rectangle in window pixels. */
type Area = Pick<DOMRectReadOnly, 'left' | 'top' | 'right' | 'bottom'>;

/** Attribute of everything that can cover the page. IntersectionObserver ignores such overlays. */
export const OVERLAY = { 'data-over': '' } as const;

const ROUNDED_PX = 1;

/**
 * Vertical ranges of an area that are visible over its full width: not covered by an overlay, and inside the visual
 * viewport when the page is pinch-zoomed.
 *
 * @returns disjoint ranges `[from, to)` in window pixels, ascending
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

/** True if part of an area of the element is visible. */
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
  // A modal dialog is above all others.
  const top = element.closest('dialog:modal') ?? document;
  return Array.from(top.querySelectorAll('[data-over]'))
    .filter((over) => !over.contains(element))
    .map((over) => over.getBoundingClientRect());
}

/** The visual viewport: smaller than the window on a pinch-zoomed page. */
function windowInView(): Area {
  if (visualViewport === null) return { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  const { offsetLeft: left, offsetTop: top, width, height } = visualViewport;
  return { left, top, right: left + width, bottom: top + height };
}
