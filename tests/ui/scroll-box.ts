import { vi } from 'vitest';

/** A scrolling box. happy-dom has no layout, so the test sets the sizes. Moves fire `scroll`. */
export class ScrollBox {
  readonly element = document.createElement('div');
  readonly ref = { current: this.element };
  scrollHeight: number;
  clientHeight: number;
  #top = 0;
  #resized: () => void = () => {};

  constructor({ scrollHeight, clientHeight }: { scrollHeight: number; clientHeight: number }) {
    this.scrollHeight = scrollHeight;
    this.clientHeight = clientHeight;
    Object.defineProperties(this.element, {
      scrollHeight: { get: () => this.scrollHeight },
      clientHeight: { get: () => this.clientHeight },
      scrollTop: {
        get: () => this.#top,
        set: (top: number) => {
          this.#top = Math.max(0, Math.min(top, this.scrollHeight - this.clientHeight));
        },
      },
    });
    const box = this;
    vi.stubGlobal(
      'ResizeObserver',
      class {
        constructor(resized: (entries: [], observer: unknown) => void) {
          box.#resized = () => resized([], this);
        }
        observe(): void {}
        disconnect(): void {
          box.#resized = () => {};
        }
      },
    );
    this.element.scrollTop = scrollHeight;
    document.body.append(this.element);
  }

  get distance(): number {
    return this.scrollHeight - this.#top - this.clientHeight;
  }

  scrollTo(top: number): void {
    this.element.scrollTop = top;
    this.element.dispatchEvent(new Event('scroll'));
  }

  /** Adds content at the end; the scroll offset stays. */
  grow(px: number): void {
    this.scrollHeight += px;
    this.element.dispatchEvent(new Event('scroll'));
  }

  resize(clientHeight: number): void {
    this.clientHeight = clientHeight;
    this.#resized();
  }

  remove(): void {
    this.element.remove();
  }
}
