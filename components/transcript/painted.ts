/** Nearer to the end than this counts as at the end. Less than a turn of a mouse wheel, so that one leaves it. */
export const TAIL_PX = 32;

/** How the server's markup of a transcript stands just before the browser renders its own. */
export interface Painted {
  /** How high its turns are, in pixels, by their ids: the browser's own are not to move. */
  heights: ReadonlyMap<string | undefined, number>;
  /** From the first that is in sight to its end, in pixels. */
  fromEnd: number;
  /** Whether the reader has scrolled up in it. */
  isLeft: boolean;
  hasFocus: boolean;
}

/** @returns null if the markup says only why the transcript is not there */
export function paintedIn(markup: Element): Painted | null {
  const box = markup.querySelector<HTMLElement>('[role="log"]');
  if (box === null) return null;
  // It was to start at its end, and has not been laid out yet: no reader can have left that.
  if (box.dataset.start === 'end') box.scrollTop = box.scrollHeight;
  const turns = [...box.querySelectorAll<HTMLElement>('[data-turn]')];
  return {
    heights: new Map(turns.map((turn) => [turn.dataset.turn, turn.getBoundingClientRect().height])),
    fromEnd: box.scrollHeight - box.scrollTop,
    isLeft: distanceFromEnd(box) > TAIL_PX,
    hasFocus: box.contains(document.activeElement),
  };
}

export function distanceFromEnd(box: Element): number {
  return box.scrollHeight - box.scrollTop - box.clientHeight;
}
