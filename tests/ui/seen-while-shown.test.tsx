// @vitest-environment happy-dom

import type { AgentSummary, Insight } from '@interlude/protocol/read-models';
import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { InsightItem } from '@/components/agents/insight-list';
import { SeenWhileShown } from '@/components/agents/seen-while-shown';
import { OVERLAY } from '@/components/ui/in-view';
import { anInsight } from './rows';

const ROW_PX = 40;

/** Layout of rows, which the test DOM lacks. */
let watched: Map<Element, IntersectionObserverCallback>;
let marked: string[];
let isServerThere: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  watched = new Map();
  marked = [];
  isServerThere = true;
  class ByHand {
    readonly #callback: IntersectionObserverCallback;
    constructor(callback: IntersectionObserverCallback) {
      this.#callback = callback;
    }
    observe = (element: Element) => watched.set(element, this.#callback);
    unobserve = (element: Element) => watched.delete(element);
    disconnect = () => watched.clear();
  }
  vi.stubGlobal('IntersectionObserver', ByHand);
  vi.stubGlobal('visualViewport', null);
  vi.stubGlobal('fetch', async (_url: string, { body }: { body: string }) => {
    marked.push(JSON.parse(body).upTo);
    if (!isServerThere) throw new TypeError('cut off');
    return Response.json({});
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const insight = (position: string, more: Partial<Insight> = {}) =>
  anInsight({ position, detail: `failure ${position}`, ...more });

function Page({ insights, isCovered = false }: { insights: Insight[]; isCovered?: boolean }) {
  return (
    <SeenWhileShown agent={{ id: 'agent-1' } as AgentSummary} insights={insights}>
      {insights.map((one) => (
        <InsightItem key={one.position} insight={one} session={null} />
      ))}
      {isCovered && <p {...OVERLAY}>over all of it</p>}
    </SeenWhileShown>
  );
}

const rowOf = (position: string) => screen.getByText(`failure ${position}`).closest('li') as HTMLElement;

/** Visible pixels of a row. */
function stands(position: string, shownPx: number) {
  const row = rowOf(position);
  const whole = new DOMRect(0, 0, 200, ROW_PX);
  vi.spyOn(Element.prototype, 'getBoundingClientRect').mockReturnValue(whole);
  const entry = { target: row, boundingClientRect: whole, intersectionRect: new DOMRect(0, 0, 200, shownPx) };
  watched.get(row)?.([entry as unknown as IntersectionObserverEntry], {} as IntersectionObserver);
}

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

function look(visibility: DocumentVisibilityState) {
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(visibility);
  document.dispatchEvent(new Event('visibilitychange'));
}

it('marks failures shown for a second, and ignores signals', async () => {
  render(<Page insights={[insight('5'), insight('3', { seenAt: 9 }), insight('2', { isFailure: false })]} />);
  expect(['5', '3', '2'].map((position) => watched.has(rowOf(position)))).toEqual([true, false, false]);
  stands('5', ROW_PX);
  await pass(900);
  expect(marked).toEqual([]);
  await pass(200);
  expect(marked).toEqual(['5']);
});

it('doesn’t mark rows that scroll by or show only an edge, and stops checking', async () => {
  render(<Page insights={[insight('5')]} />);
  const timers = vi.getTimerCount();
  stands('5', ROW_PX);
  await pass(500);
  stands('5', 0);
  await pass(5_000);
  stands('5', 3);
  await pass(5_000);
  expect(marked).toEqual([]);
  expect(vi.getTimerCount()).toBe(timers);
});

it('doesn’t mark covered rows or rows in hidden tabs', async () => {
  const page = render(<Page insights={[insight('5')]} isCovered />);
  stands('5', ROW_PX);
  await pass(5_000);
  expect(marked).toEqual([]);
  look('hidden');
  page.rerender(<Page insights={[insight('5')]} />);
  await pass(5_000);
  expect(marked).toEqual([]);
  look('visible');
  await pass(1_100);
  expect(marked).toEqual(['5']);
});

it('marks up to the first failure that was not shown', async () => {
  render(<Page insights={[insight('9'), insight('5'), insight('2')]} />);
  stands('9', ROW_PX);
  stands('2', ROW_PX);
  await pass(1_100);
  expect(new Set(marked)).toEqual(new Set(['2']));
  stands('5', ROW_PX);
  await pass(2_100);
  expect(marked.at(-1)).toBe('9');
});

it('repeats a failed mark', async () => {
  isServerThere = false;
  render(<Page insights={[insight('5')]} />);
  stands('5', ROW_PX);
  await pass(3_100);
  expect(marked.length).toBeGreaterThan(1);
});
