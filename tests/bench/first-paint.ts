import type { BrowserContext } from 'playwright-core';

/**
 * @param selector what has to stand on the screen: the first of what it finds that ends with `text`
 * @returns ms from the start of the navigation until it does
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
        // what comes after a frame's callbacks and its paint
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
