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
export type Place = Shift | null;

/** How long something has stood where it stands. Times are those of one clock that only goes forward. */
export class Stillness {
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
