import type { Page } from 'playwright-core';

/** What is wrong with how rows are laid out, said in words; nothing, where all of it can be read. */
export function rowFaults(page: Page, rows: string): Promise<string[]> {
  return page.evaluate((selector) => {
    interface Box {
      node: Node;
      text: string;
      left: number;
      right: number;
      top: number;
      bottom: number;
    }
    /** A text's lines as far as they are seen: what is clipped away is printed over nothing. */
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
      for (const [at, box] of boxes.entries()) {
        if (box.left < area.left - 1 || box.right > area.right + 1) faults.push(`${said(box)} sticks out`);
        for (const other of boxes.slice(at + 1)) {
          const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
          // Lines of one text stand closer than their letters are high.
          const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
          // Where one text is cut, its sign stands in the place of what is not shown.
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
