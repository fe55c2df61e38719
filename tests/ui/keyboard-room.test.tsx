// @vitest-environment happy-dom

import { cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useKeyboardRoom } from '@/components/ui/use-keyboard-room';

/** The visual viewport of a phone, 740 px high while no keyboard is open. */
const view = Object.assign(new EventTarget(), { height: 740, scale: 1 });
const resize = (change: Partial<typeof view>) => {
  Object.assign(view, change);
  view.dispatchEvent(new Event('resize'));
  return document.documentElement.style.getPropertyValue('--view-height');
};
beforeEach(() => {
  vi.stubGlobal('visualViewport', view);
  vi.spyOn(document.documentElement, 'clientHeight', 'get').mockReturnValue(740);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('sets the height above a keyboard that covers the page, until it closes', () => {
  const scrolled = vi.spyOn(window, 'scrollTo');
  renderHook(useKeyboardRoom);
  expect(resize({ height: 420 })).toBe('420px');
  expect(scrolled).toHaveBeenCalledWith(0, 0);
  expect(resize({ height: 740 })).toBe('');
});

it('ignores pinch zoom, toolbars that appear and the bar of a hardware keyboard', () => {
  renderHook(useKeyboardRoom);
  expect(resize({ height: 370, scale: 2 })).toBe('');
  expect(resize({ height: 650, scale: 1 })).toBe('');
  expect(resize({ height: 665 })).toBe('');
});
