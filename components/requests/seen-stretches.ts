/** What is seen may be off by this where a browser rounds to whole pixels. */
const ROUNDED_PX = 1;

/** Which stretches of something tall have been in sight, in pixels from its top, whenever that was. */
export class SeenStretches {
  #width = 0;
  #stretches: readonly (readonly [from: number, to: number])[] = [];

  /** @param width of the whole: in another one its lines wrap elsewhere, and none stands where it was seen */
  see(from: number, to: number, width: number): void {
    if (Math.abs(width - this.#width) > ROUNDED_PX) this.#stretches = [];
    this.#width = width;
    if (to <= from) return;
    const touches = ([start, end]: readonly [number, number]) => start <= to + ROUNDED_PX && end >= from - ROUNDED_PX;
    const joined = this.#stretches.filter(touches);
    const rest = this.#stretches.filter((stretch) => !touches(stretch));
    const start = Math.min(from, ...joined.map(([first]) => first));
    const end = Math.max(to, ...joined.map(([, last]) => last));
    this.#stretches = [...rest, [start, end]];
  }

  isAllSeen(height: number): boolean {
    return this.#stretches.some(([from, to]) => from <= ROUNDED_PX && to >= height - ROUNDED_PX);
  }
}
