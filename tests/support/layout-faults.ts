import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** Poll options for a layout that settles within a frame or two. */
export const SETTLED = { interval: 50 };

/**
 * Waits until the page has no layout fault.
 *
 * @param expected.rows examines the rows of this selector instead of the viewport
 */
export async function expectNoFaults(page: Page, expected: { rows?: string; message?: string } = {}): Promise<void> {
  const { rows, message } = expected;
  // as a text, which a failure prints whole
  const faults = async () => (rows === undefined ? await layoutFaults(page) : await rowFaults(page, rows)).join('\n');
  await expect.poll(faults, { ...SETTLED, message }).toBe('');
}

/**
 * Returns layout faults in the viewport: text clipped without an ellipsis, overlapping text, a name without width,
 * horizontal page scrolling.
 */
function layoutFaults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    interface Box {
      left: number;
      top: number;
      right: number;
      bottom: number;
    }
    interface Piece {
      node: Text;
      parent: HTMLElement;
      /** Layout rectangle. */
      whole: Box;
      /** Visible part. */
      seen: Box;
    }
    /** Tolerance for rounding. */
    const ROUNDED = 1.5;
    /** Narrower boxes show only an ellipsis. */
    const LEAST_NAME = 28;

    const meet = (a: Box, b: Box): Box => ({
      left: Math.max(a.left, b.left),
      top: Math.max(a.top, b.top),
      right: Math.min(a.right, b.right),
      bottom: Math.min(a.bottom, b.bottom),
    });
    const isThere = ({ left, top, right, bottom }: Box) => right - left > ROUNDED && bottom - top > ROUNDED;
    const words = (node: Text) => `“${(node.data.trim() || node.data).slice(0, 40)}”`;
    const place = (element: Element) =>
      `<${element.tagName.toLowerCase()} class="${element.getAttribute('class') ?? ''}">`;

    const faults: string[] = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) faults.push(`the page scrolls sideways: ${root.scrollWidth} px`);

    const pieces: Piece[] = [];
    const squeezed = new Set<Element>();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
      const parent = node.parentElement;
      if (parent === null || node.data.trim() === '' || /^(?:SCRIPT|STYLE|NOSCRIPT|OPTION)$/.test(parent.tagName))
        continue;
      if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        if (rect.width < ROUNDED || rect.height < ROUNDED) continue;
        const seen = inSight(node, parent, rect);
        if (seen !== null && isThere(seen)) pieces.push({ node, parent, whole: rect, seen });
      }
    }
    for (const element of squeezed)
      faults.push(`squeezed to ${element.clientWidth} px: ${place(element)} “${element.textContent?.slice(0, 40)}”`);

    const pen = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    for (const field of document.querySelectorAll<HTMLInputElement>(':placeholder-shown:not([placeholder=""])')) {
      if (!field.checkVisibility({ visibilityProperty: true })) continue;
      const { paddingLeft, paddingRight } = getComputedStyle(field);
      pen.font = getComputedStyle(field, '::placeholder').font;
      const room = field.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
      const width = Math.ceil(pen.measureText(field.placeholder).width);
      if (width > room + ROUNDED) faults.push(`“${field.placeholder}” needs ${width} px and has ${room}`);
    }

    pieces.sort((a, b) => a.seen.top - b.seen.top);
    for (const [index, one] of pieces.entries()) {
      for (let other = index + 1; other < pieces.length; other++) {
        const two = pieces[other] as Piece;
        if (two.seen.top >= one.seen.bottom) break;
        if (one.node === two.node) continue;
        const common = meet(one.seen, two.seen);
        const height = Math.min(one.seen.bottom - one.seen.top, two.seen.bottom - two.seen.top);
        // Adjacent lines overlap slightly.
        if (common.right - common.left <= ROUNDED || common.bottom - common.top < height * 0.4) continue;
        if (isCovered(one, two, common)) continue;
        faults.push(`${words(one.node)} and ${words(two.node)} stand over one another: ${place(one.parent)}`);
      }
    }
    return [...new Set(faults)].slice(0, 30);

    /** @returns null if hidden on purpose */
    function inSight(node: Text, parent: HTMLElement, whole: Box): Box | null {
      let seen: Box = meet(whole, { left: 0, top: 0, right: innerWidth, bottom: innerHeight });
      // The space at a line wrap overflows the line.
      const { whiteSpace, fontSize } = getComputedStyle(parent);
      const hanging = whiteSpace === 'pre-wrap' ? Number.parseFloat(fontSize) : ROUNDED;
      let shortens = false;
      let fixed = false;
      let isInStrip = false;
      for (let box: HTMLElement | null = parent; box !== null && box !== document.body; box = box.parentElement) {
        const style = getComputedStyle(box);
        if (style.clipPath !== 'none' || box.clientWidth === 1) return null;
        const signs = style.textOverflow === 'ellipsis' || style.webkitLineClamp !== 'none';
        // A box without a rectangle of its own clips nothing.
        if (style.display !== 'contents' && (style.overflowX !== 'visible' || style.overflowY !== 'visible')) {
          const { left, top } = box.getBoundingClientRect();
          const edge = {
            left: left + box.clientLeft,
            top: top + box.clientTop,
            right: left + box.clientLeft + box.clientWidth,
            bottom: top + box.clientTop + box.clientHeight,
          };
          if (style.display === 'inline') {
            // This box clips nothing.
          } else {
            const scrolls = (overflow: string) => /auto|scroll/.test(overflow);
            const cutX = seen.right > edge.right + hanging || seen.left < edge.left - ROUNDED;
            const cutY = seen.bottom > edge.bottom + ROUNDED * 2 || seen.top < edge.top - ROUNDED * 2;
            // One line that scrolls sideways, within the window.
            if (scrolls(style.overflowX) && style.overflowY === 'hidden') isInStrip = edge.right <= innerWidth;
            if (signs && cutX && box.clientWidth < LEAST_NAME) squeezed.add(box);
            const isCut =
              (cutX && !scrolls(style.overflowX) && style.overflowX !== 'visible' && !signs && !shortens) ||
              (cutY && !scrolls(style.overflowY) && style.overflowY !== 'visible' && !signs && !shortens);
            const before = seen;
            seen = meet(seen, edge);
            if (isCut && isThere(before)) faults.push(`${words(node)} is cut off by ${place(box)}`);
            if (!isThere(seen)) return isCut ? null : seen;
          }
        }
        if (signs) shortens = true;
        if (style.position === 'fixed') fixed = true;
      }
      const left = Math.max(0, -whole.left);
      const right = Math.max(0, whole.right - innerWidth);
      if (!fixed && !isInStrip && left + right > ROUNDED && isThere(seen) && seen.right >= innerWidth - ROUNDED) {
        faults.push(`${words(node)} goes beyond the window`);
      }
      return seen;
    }

    /** True if one of the two has an opaque background there, which hides the other. */
    function isCovered(one: Piece, two: Piece, { left, top, right, bottom }: Box): boolean {
      const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      if (hit === null) return true;
      const hidden = [one, two].filter(({ parent }) => !hit.contains(parent) && !parent.contains(hit));
      return hidden.some(({ parent }) => {
        for (let box: Element | null = hit; box !== null && !box.contains(parent); box = box.parentElement) {
          const { backgroundColor } = getComputedStyle(box);
          if (backgroundColor !== 'rgba(0, 0, 0, 0)' && !/\/ 0(?:\.\d+)?\)|, 0(?:\.\d+)?\)$/.test(backgroundColor))
            return true;
        }
        return false;
      });
    }
  });
}

/**
 * Records layout shifts from the first frame on. Texts are matched by content, so an element replaced in place hasn't
 * moved.
 */
export async function watchLayoutShifts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const MOVED_PX = 2;
    // A count that grows from 9 to 10 moves the text after it.
    const COUNTED_PX = 8;
    interface ClockText {
      words: string;
      widthPx: number;
    }
    const CLOCK = /\d ?(?:s|m|min|h|d)\b|\bnow\b/;
    const moves = new Set<string>();
    const watched = { moves, looks: 0 };
    let frames = 0;
    let before = new Map<string, DOMRect | null>();
    let lastClocks = new Map<Text, ClockText>();
    // A layout is painted if it is the same after the frame's layout and after the frame. Earlier, it may still be
    // corrected; later, the next frame has started. A change in between is compared one frame later.
    const watch = () =>
      requestAnimationFrame(() => {
        new ResizeObserver((_, layout) => {
          layout.disconnect();
          const [laidOut, clocksNow] = [places(), clocks()];
          setTimeout(() => look(laidOut, clocksNow));
        }).observe(document.documentElement);
      });
    const look = (laidOut: Map<string, DOMRect | null>, clocksNow: Map<Text, ClockText>) => {
      watch();
      // Content still being parsed, or in a fallback font, has no final place; its end arrives one frame later.
      if (document.readyState === 'loading' || document.fonts.status === 'loading' || frames++ < 2) return;
      watched.looks += 1;
      const ticked = tickedClocks(clocksNow);
      const now = places();
      for (const [text, to] of now) {
        if (!to) continue;
        const from = before.get(text);
        const same = laidOut.get(text);
        if (!same || same.left !== to.left || same.top !== to.top) {
          if (from) now.set(text, from);
          else now.delete(text);
          continue;
        }
        if (!from) continue;
        const [across, down] = [Math.abs(from.left - to.left), Math.abs(from.top - to.top)];
        const beside = ticked.filter(({ place: { top, bottom } }) => top < to.bottom && bottom > to.top);
        const byClocks = beside.reduce((sum, { byPx }) => sum + byPx, 0);
        if (across <= byClocks + COUNTED_PX && down <= MOVED_PX) continue;
        const place = ({ left, top }: DOMRect) => `${Math.round(left)},${Math.round(top)}`;
        moves.add(`“${text.slice(0, 40)}” moved from ${place(from)} to ${place(to)}`);
      }
      before = now;
    };
    const clocks = () =>
      new Map(
        [...textsOf()]
          .filter(({ data }) => CLOCK.test(data))
          .map((text) => [text, { words: text.data, widthPx: placeOf(text).width }]),
      );
    // A clock that ticks from `59 s` to `1 min` moves the rest of its line.
    const tickedClocks = (clocksNow: Map<Text, ClockText>) => {
      const ticked: { place: DOMRect; byPx: number }[] = [];
      for (const [clock, now] of clocksNow) {
        const last = lastClocks.get(clock) ?? now;
        const place = placeOf(clock);
        if (clock.data !== now.words) clocksNow.set(clock, last);
        else if (last.words !== now.words) ticked.push({ place, byPx: Math.abs(place.width - last.widthPx) });
      }
      lastClocks = clocksNow;
      return ticked;
    };
    const places = () => {
      const now = new Map<string, DOMRect | null>();
      for (const node of textsOf()) {
        const text = node.data.trim();
        if (text.length < 3 || text.length > 200 || /^[\d\s:.]+/.test(text)) continue;
        const rect = placeOf(node);
        const box = node.parentElement?.closest('[role="log"], nav')?.getBoundingClientRect();
        const [top, bottom] = [Math.max(0, box?.top ?? 0), Math.min(innerHeight, box?.bottom ?? innerHeight)];
        const isInSight = rect.width > 1 && rect.top >= top && rect.bottom <= bottom;
        if (!isInSight || node.parentElement?.closest('.sr-only') || !node.parentElement?.checkVisibility()) continue;
        // Texts that occur twice can't be tracked.
        now.set(text, now.has(text) ? null : rect);
      }
      return now;
    };
    function* textsOf(): Generator<Text> {
      const walker = document.createTreeWalker(document.body ?? document.documentElement, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) yield node as Text;
    }
    const placeOf = (node: Text): DOMRect => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return range.getBoundingClientRect();
    };
    watch();
    Object.assign(window, { watched });
  });
}

/** Returns all layout shifts so far, including the current frame. */
export function layoutShifts(page: Page): Promise<string[]> {
  return page.evaluate(
    () =>
      new Promise<string[]>((resolve) => {
        const { watched } = window as unknown as { watched: { moves: Set<string>; looks: number } };
        // A measurement in progress may predate the change.
        const last = watched.looks + 2;
        const wait = () => (watched.looks < last ? requestAnimationFrame(wait) : resolve([...watched.moves]));
        wait();
      }),
  );
}

/** Describes layout faults of rows; empty if all text is readable. */
function rowFaults(page: Page, rows: string): Promise<string[]> {
  return page.evaluate((selector) => {
    interface Box {
      node: Node;
      text: string;
      left: number;
      right: number;
      top: number;
      bottom: number;
    }
    /** The visible parts of a text's lines; clipped parts overlap nothing. */
    const boxesIn = (row: Element): Box[] => {
      const boxes: Box[] = [];
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        const text = node.textContent?.trim() ?? '';
        const parent = node.parentElement;
        if (text === '' || parent === null || parent.closest('.sr-only') !== null) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const rect of range.getClientRects()) {
          let { left, right, top, bottom } = rect;
          for (let over: Element | null = parent; over !== null && row.contains(over); over = over.parentElement) {
            if (getComputedStyle(over).overflowX === 'visible') continue;
            const clip = over.getBoundingClientRect();
            [left, right] = [Math.max(left, clip.left), Math.min(right, clip.right)];
            [top, bottom] = [Math.max(top, clip.top), Math.min(bottom, clip.bottom)];
          }
          if (right - left > 1 && bottom - top > 1) boxes.push({ node, text, left, right, top, bottom });
        }
      }
      return boxes;
    };
    const said = ({ text }: Box) => JSON.stringify(text.slice(0, 24));
    const faults: string[] = [];
    for (const row of document.querySelectorAll(selector)) {
      const area = row.getBoundingClientRect();
      if (area.width === 0) continue;
      const boxes = boxesIn(row);
      for (const [index, box] of boxes.entries()) {
        if (box.left < area.left - 1 || box.right > area.right + 1) faults.push(`${said(box)} sticks out`);
        for (const other of boxes.slice(index + 1)) {
          const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
          // Line boxes of one text overlap.
          const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
          // An ellipsis replaces clipped text.
          if (box.node !== other.node && across > 1 && down > 4) faults.push(`${said(box)} over ${said(other)}`);
        }
      }
      for (const element of row.querySelectorAll('*')) {
        const style = getComputedStyle(element);
        if (style.overflowX === 'visible' || element.closest('.sr-only') || element instanceof SVGElement) continue;
        if (element.scrollWidth > element.clientWidth && style.textOverflow !== 'ellipsis') {
          faults.push(`${JSON.stringify(element.textContent?.slice(0, 24))} is cut without a sign`);
        }
      }
    }
    return faults;
  }, rows);
}
