// @vitest-environment happy-dom

import type { Turn } from '@interlude/protocol/read-models';
import type { Virtualizer } from '@tanstack/react-virtual';
import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { useJumpTarget } from '@/components/transcript/use-jump-target';
import { aTurn } from './rows';

afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const turnsFrom = (first: number) =>
  Array.from({ length: 4 - first }, (_, index) => aTurn({ id: `r${first + index}` }));

/** A transcript’s list. Lays out each turn that it scrolls to if `laysOut`. */
function aTranscript(options: { laysOut: boolean }) {
  let turns: readonly Turn[] = turnsFrom(1);
  const scrolledTo: (string | undefined)[] = [];
  const layOut = (index: number) => {
    const element = document.createElement('article');
    element.id = `turn-${turns[index]?.id}`;
    element.tabIndex = -1;
    document.body.append(element);
  };
  const scroll = (index: number) => {
    scrolledTo.push(turns[index]?.id);
    if (options.laysOut) layOut(index);
  };
  const virtualizer = { scrollToIndex: scroll, scrollToOffset: () => scroll(0), scrollElement: null };
  const seek = async () => 'there' as const;
  const hook = renderHook(
    (now: { turns: readonly Turn[] }) =>
      useJumpTarget({
        ...now,
        seek,
        virtualizer: virtualizer as unknown as Virtualizer<HTMLDivElement, HTMLDivElement>,
      }),
    { initialProps: { turns } },
  );
  const render = (now: readonly Turn[]) => {
    turns = now;
    hook.rerender({ turns });
  };
  return { show: (anchor: string) => hook.result.current.show(anchor), render, scrolledTo, layOut };
}

it('an overtaken jump does not scroll away after its turn has rendered', async () => {
  const { show, render, scrolledTo } = aTranscript({ laysOut: true });
  const earlier = show('turn-r0');
  await frame();
  await act(() => show('turn-r2'));
  render(turnsFrom(0));
  await act(() => earlier);
  expect(scrolledTo).toEqual(['r2']);
  expect(document.activeElement?.id).toBe('turn-r2');
});

it('an overtaken jump does not take the focus after its turn is laid out', async () => {
  const { show, layOut } = aTranscript({ laysOut: false });
  const earlier = show('turn-r1');
  await frame();
  layOut(1);
  await act(() => show('turn-r2'));
  layOut(0);
  await act(() => earlier);
  expect(document.activeElement?.id).toBe('turn-r2');
});
