/**
 * Distance from the end that still counts as at the end. Less than one step of a mouse wheel, so that one step leaves
 * the end.
 */
export const TAIL_PX = 32;

/** True for the anchor of a turn, task, message or request. */
export function isAnchor(anchor: string): boolean {
  return /^(?:turn|task|message|request)-/.test(anchor);
}

/** Measurements of the server's markup, taken just before the browser replaces it. */
export interface ServerMarkup {
  /** Heights of its turns in pixels, by id, so that no turn moves. */
  heights: ReadonlyMap<string | undefined, number>;
  /** Distance in pixels from the top of the view to the end. */
  fromEnd: number;
  /** True if the reader has scrolled up. */
  isLeft: boolean;
  hasFocus: boolean;
  /** Code blocks of the message. Some are highlighted. */
  codes: readonly HTMLElement[];
}

/** @returns null if the markup has no transcript */
export function measureMarkup(markup: Element): ServerMarkup | null {
  const box = markup.querySelector<HTMLElement>('[role="log"]');
  if (box === null) return null;
  // The box starts at its end but had no layout yet, so the reader can't have left it.
  if (box.dataset.start === 'end') box.scrollTop = box.scrollHeight;
  const turns = [...box.querySelectorAll<HTMLElement>('[data-turn]')];
  return {
    heights: new Map(turns.map((turn) => [turn.dataset.turn, turn.getBoundingClientRect().height])),
    fromEnd: box.scrollHeight - box.scrollTop,
    isLeft: distanceFromEnd(box) > TAIL_PX,
    hasFocus: box.contains(document.activeElement),
    codes: [...box.querySelectorAll<HTMLElement>('code[data-language]')],
  };
}

export function distanceFromEnd(box: Element): number {
  return box.scrollHeight - box.scrollTop - box.clientHeight;
}
