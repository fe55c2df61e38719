// @vitest-environment happy-dom

import { describe, expect, test } from 'vitest';
import { measureMarkup } from '@/components/transcript/server-markup';

/** The server's markup of a transcript of 2,000 px in a box of 500 px. */
function markup(scrollTop: number, start?: string): HTMLElement {
  const root = document.createElement('div');
  const box = document.createElement('div');
  box.setAttribute('role', 'log');
  if (start !== undefined) box.dataset.start = start;
  let top = scrollTop;
  Object.defineProperties(box, {
    scrollHeight: { value: 2_000 },
    clientHeight: { value: 500 },
    scrollTop: { get: () => top, set: (to: number) => (top = Math.min(to, 1_500)) },
  });
  root.append(box);
  return root;
}

describe('measureMarkup', () => {
  test.each([
    ['stands at its end', 1_500, undefined, false],
    ['was left by its reader', 200, undefined, true],
    ['was to start at its end and has not been laid out', 0, 'end', false],
  ] as const)('%s', (_, scrollTop, start, isLeft) => {
    expect(measureMarkup(markup(scrollTop, start))).toMatchObject({ isLeft, fromEnd: isLeft ? 1_800 : 500 });
  });
});
