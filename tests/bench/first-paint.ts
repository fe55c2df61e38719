import type { BrowserContext } from 'playwright-core';

/**
 * @param selector the awaited element: the first match that ends with `text`
 * @returns ms from the start of the navigation until it is painted
 */
export async function firstPaint(context: BrowserContext, url: string, selector: string, text = ''): Promise<number> {
  const page = await context.newPage();
  await page.addInitScript(
    ([selector, text]) => {
      const isThere = () => {
        const all = [...document.querySelectorAll(selector)];
        const found = all.find((one) => one.textContent?.endsWith(text))?.getBoundingClientRect();
        return found !== undefined && found.bottom > 0 && found.top < innerHeight;
      };
      const look = () => {
        if (!isThere()) {
          requestAnimationFrame(look);
          return;
        }
        // runs after a frame's callbacks and paint
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => Object.assign(window, { paintedAt: performance.now() });
        port2.postMessage(null);
      };
      requestAnimationFrame(look);
    },
    [selector, text] as const,
  );
  await page.goto(url);
  const painted = await page.waitForFunction(() => (window as { paintedAt?: number }).paintedAt);
  const ms = (await painted.jsonValue()) as number;
  await page.close();
  return ms;
}
