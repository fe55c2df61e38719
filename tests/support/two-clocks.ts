/** A server's two clocks, in a test's hand: time goes by on both, and the one on the wall can be moved. */
export class TwoClocks {
  #wall = 1_795_170_000_000;
  #steady = 0;

  readonly now = () => this.#wall;
  readonly steady = () => this.#steady;

  goesBy(ms: number): void {
    this.#wall += ms;
    this.#steady += ms;
  }

  isMoved(ms: number): void {
    this.#wall += ms;
  }
}
