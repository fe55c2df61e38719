/** What has just appeared, or was just moved under the pointer, was not what was meant by a press within this. */
export const SETTLE_MS = 800;
/** Nobody misses a control by so little. */
const MOVED_PX = 8;

/** Where something stands in the window; null while it is out of sight. */
export type Place = { left: number; top: number } | null;

/** How long something has stood where it stands. Times are those of one clock that only goes forward. */
export class Stillness {
  #place: Place = null;
  #since = 0;

  /** @param byReader the reader scrolled: what they moved themselves they know to be there */
  look(place: Place, now: number, byReader: boolean): void {
    if (place !== null && byReader && this.#place !== null) {
      this.#place = place;
      return;
    }
    if (place !== null && this.#place !== null && isNear(place, this.#place)) return;
    this.#place = place;
    this.#since = now;
  }

  isSettled(now: number): boolean {
    return this.#place !== null && now - this.#since >= SETTLE_MS;
  }
}

function isNear(a: NonNullable<Place>, b: NonNullable<Place>): boolean {
  return Math.abs(a.left - b.left) <= MOVED_PX && Math.abs(a.top - b.top) <= MOVED_PX;
}
