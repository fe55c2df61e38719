// @vitest-environment happy-dom
import { cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useShownLongEnough } from '@/components/composer/interrupt';
import { SETTLE_MS } from '@/components/ui/misclick-guard';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const shown = (of: string | null) =>
  renderHook((about: string | null) => useShownLongEnough(about), { initialProps: of });

function turnPage(visibility: DocumentVisibilityState) {
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(visibility);
  document.dispatchEvent(new Event('visibilitychange'));
}

it('useShownLongEnough accepts a key once its subject has been on screen long enough', () => {
  const { result } = shown('turn-1');
  expect(result.current()).toBe(false);
  vi.advanceTimersByTime(SETTLE_MS);
  expect(result.current()).toBe(true);
});

it('useShownLongEnough ignores a key right after its subject has changed', () => {
  const { result, rerender } = shown('turn-1');
  vi.advanceTimersByTime(SETTLE_MS);
  rerender('turn-2');
  expect(result.current()).toBe(false);
  vi.advanceTimersByTime(SETTLE_MS);
  expect(result.current()).toBe(true);
});

it('useShownLongEnough ignores a key without a subject', () => {
  const { result, rerender } = shown('turn-1');
  vi.advanceTimersByTime(SETTLE_MS);
  rerender(null);
  expect(result.current()).toBe(false);
});

it('useShownLongEnough ignores the time while the page is hidden', () => {
  const { result } = shown('turn-1');
  turnPage('hidden');
  vi.advanceTimersByTime(SETTLE_MS);
  expect(result.current()).toBe(false);
  turnPage('visible');
  expect(result.current()).toBe(false);
  vi.advanceTimersByTime(SETTLE_MS);
  expect(result.current()).toBe(true);
});
