/**
 * The streams that are open. A process that may freeze does not while there is one.
 */
export class OpenStreams {
  readonly #onFirst: () => void;
  readonly #onLast: () => void;
  #count = 0;

  constructor(onFirst: () => void, onLast: () => void) {
    this.#onFirst = onFirst;
    this.#onLast = onLast;
  }

  /** @returns how to say that it has ended; saying it twice does no harm */
  begin(): () => void {
    this.#count += 1;
    if (this.#count === 1) this.#onFirst();
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#count -= 1;
      if (this.#count === 0) this.#onLast();
    };
  }
}
