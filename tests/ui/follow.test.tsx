// @vitest-environment happy-dom
import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { START_AT_END } from '@/components/transcript/transcript';
import { useTail } from '@/components/transcript/use-tail';
import { useFollow, useStickyEnd } from '@/components/ui/row-window';
import { ScrollBox } from './scroll-box';

let box: ScrollBox;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'requestAnimationFrame', 'cancelAnimationFrame'] });
  box = new ScrollBox({ scrollHeight: 1_000, clientHeight: 200 });
});
afterEach(() => {
  cleanup();
  box.remove();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const later = () => vi.advanceTimersByTime(1_000);

describe('useFollow', () => {
  function followed(): boolean[] {
    const calls: boolean[] = [];
    renderHook(() => useFollow(box.ref, (follows) => calls.push(follows)));
    return calls;
  }

  const wheel = (deltaY: number) => box.element.dispatchEvent(new WheelEvent('wheel', { deltaY }));

  it('stops following on a wheel turn up', () => {
    const calls = followed();
    wheel(-100);
    expect(calls).toEqual([false]);
  });

  it('stops following on a key that scrolls up', () => {
    const calls = followed();
    box.element.dispatchEvent(new KeyboardEvent('keydown', { key: 'PageUp' }));
    expect(calls).toEqual([false]);
  });

  it('keeps following while lines push the end away', () => {
    const calls = followed();
    later();
    box.grow(5_000);
    later();
    expect(calls).toEqual([]);
  });

  it('keeps following while lines are removed at the start and added at the end', () => {
    const calls = followed();
    later();
    box.scrollHeight = 1_100;
    box.scrollTo(500);
    // The page follows.
    box.scrollTo(900);
    later();
    expect(calls).not.toContain(false);
  });

  it('follows again when the reader scrolls back to the end', () => {
    const calls = followed();
    wheel(-100);
    box.scrollTo(400);
    wheel(400);
    box.scrollTo(800);
    expect(calls.at(-1)).toBe(true);
  });

  it('stops following when the browser scrolls up to a search result', () => {
    const calls = followed();
    later();
    box.scrollTo(100);
    later();
    expect(calls).toEqual([false]);
  });

  it('ignores a wheel turn up when nothing is above', () => {
    const calls = followed();
    box.scrollTo(0);
    calls.length = 0;
    wheel(-100);
    expect(calls).toEqual([]);
  });
});

describe('the markup of a transcript', () => {
  beforeEach(() => {
    const script = { previousElementSibling: box.element };
    vi.spyOn(document, 'currentScript', 'get').mockReturnValue(script as unknown as HTMLScriptElement);
    box.element.scrollTop = 0;
    new Function(START_AT_END)();
    box.resize(200);
  });

  it('stays at its end while content below shrinks it', () => {
    expect(box.distance).toBe(0);
    box.resize(125);
    expect(box.distance).toBe(0);
  });

  it('stays where the reader has scrolled to', () => {
    box.scrollTo(300);
    box.resize(125);
    box.resize(200);
    expect(box.element.scrollTop).toBe(300);
  });
});

describe('useTail', () => {
  const tailed = () =>
    renderHook(
      ({ position }) => {
        const tail = useTail(box.ref, position, false);
        useStickyEnd(box.ref, tail.leftAt === null && !tail.held);
        return tail;
      },
      { initialProps: { position: '5' } },
    );

  it('keeps the end in view when the box becomes lower', () => {
    const { result } = tailed();
    box.resize(100);
    expect(box.distance).toBe(0);
    expect(result.current.leftAt).toBeNull();
  });

  it('keeps the end in view when the box shrank before it was observed', () => {
    box.clientHeight = 100;
    const { result } = tailed();
    box.resize(100);
    expect(box.distance).toBe(0);
    expect(result.current.leftAt).toBeNull();
  });

  it('moves nothing after the reader has scrolled up, and remembers where they left', () => {
    const { result, rerender } = tailed();
    act(() => box.scrollTo(300));
    expect(result.current.leftAt).toBe('5');
    rerender({ position: '9' });
    box.resize(100);
    expect(box.element.scrollTop).toBe(300);
    expect(result.current.leftAt).toBe('5');
  });

  it('follows again when the reader scrolls back to the end', () => {
    const { result } = tailed();
    act(() => box.scrollTo(300));
    act(() => box.scrollTo(800));
    expect(result.current.leftAt).toBeNull();
    box.resize(100);
    expect(box.distance).toBe(0);
  });

  it('moves nothing while the reader has something unfolded', () => {
    const { result } = tailed();
    act(() => result.current.hold());
    box.scrollHeight += 500;
    box.resize(100);
    expect(box.element.scrollTop).toBe(800);
  });
});
