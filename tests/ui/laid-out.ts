import { vi } from 'vitest';
import { SETTLE_MS } from '@/components/ui/misclick-guard';

/**
 * Gives every element a place in the window, because happy-dom has no layout. Undo with `vi.unstubAllGlobals` and
 * `vi.restoreAllMocks`.
 */
export function layOut(): void {
  vi.spyOn(Element.prototype, 'getBoundingClientRect').mockImplementation(() => new DOMRect(10, 10, 100, 24));
  vi.stubGlobal('visualViewport', null);
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      readonly #seen: IntersectionObserverCallback;
      constructor(seen: IntersectionObserverCallback) {
        this.#seen = seen;
      }
      observe(target: Element): void {
        const entry = { isIntersecting: true, target } as unknown as IntersectionObserverEntry;
        this.#seen([entry], this as unknown as IntersectionObserver);
      }
      unobserve(): void {}
      disconnect(): void {}
    },
  );
}

/** Advances the fake clock until a control that has appeared accepts a press. */
export const settle = () => vi.advanceTimersByTimeAsync(SETTLE_MS + 200);
