/** Whether something that this selects is where the reader looks: in the window, and in what of its box is shown. */
export function isInSight(selector: string): boolean {
  return [...document.querySelectorAll(selector)].some((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const frame = element.closest('[role="log"]')?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
    return bottom > frame.top && top < frame.bottom;
  });
}
