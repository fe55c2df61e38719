import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  const agent = new EventWriter(it.server, 'hovered');
  await agent.write('full', [
    ...userTurn('r1', 'Build it', [
      ...toolCall('c1', 'Bash', { command: 'make' }, 'done'),
      taskStarted('t1', 'Nightly'),
    ]),
    ...wokenTurn('r2', 't1', 'It has ended.\n\n```sh\nmake check\n```'),
  ]);
  await agent.failHook('Stop', 'exit 3: needle', 'full');
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

/** Text of this contrast is read, and more than that has any sign. */
const SEEN = 3;

test.each([
  ['/', ''],
  ['/agents', ''],
  ['/sessions/full', '^Show in log'],
  ['/agents/hovered/logs?regex=needle', 'Next hit'],
] as const)('under the pointer each control keeps its sign, and says that it is on: %s', async (path, ready) => {
  const page = await it.context.newPage();
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.goto(`${it.server.url}${path}`);
  await live(page);
  if (ready !== '')
    await page
      .getByRole('button', { name: new RegExp(ready) })
      .first()
      .waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.mouse.move(0, 0);
    await page.emulateMedia({ colorScheme });
    await page.locator(`html.${colorScheme}`).waitFor();
    const controls = page
      .locator('button:visible, [role=switch]:visible, [role=radio]:visible')
      .filter({ visible: true });
    const count = await controls.count();
    expect(count).toBeGreaterThan(1);
    for (let at = 0; at < count; at += 1) {
      const before = await signOf(page, at);
      if (!before.isEnabled) continue;
      await controls.nth(at).hover({ force: true });
      const hovered = await signOf(page, at);
      const which = `${hovered.name}, ${colorScheme}`;
      expect(hovered.shape, which).toBe(before.shape);
      expect(hovered.contrast, which).toBeGreaterThanOrEqual(SEEN);
      if (hovered.isOn) expect(hovered.ground, which).not.toBe('');
    }
  }
  await page.close();
});

/** What a control shows: its sign, and how well that stands out from what is behind it. */
function signOf(page: Page, at: number) {
  return page
    .locator('button:visible, [role=switch]:visible, [role=radio]:visible')
    .filter({ visible: true })
    .nth(at)
    .evaluate((control) => {
      const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      const rgb = (colour: string) => {
        if (canvas === null) throw new Error('no canvas');
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data;
      };
      const luminance = (colour: string) => {
        const [r = 0, g = 0, b = 0] = Array.from(rgb(colour).slice(0, 3), (part) => {
          const share = part / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      let behind: Element | null = control;
      while (behind !== null && rgb(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
      const ground = getComputedStyle(behind ?? document.body).backgroundColor;
      const sign = control.querySelector('svg') ?? control;
      const [a, b] = [luminance(getComputedStyle(sign).color), luminance(ground)];
      return {
        name: control.getAttribute('aria-label') ?? control.textContent ?? '',
        isEnabled: !control.matches(':disabled, [aria-disabled=true]'),
        isOn: control.getAttribute('aria-pressed') === 'true',
        shape: [...control.querySelectorAll('svg')].map((svg) => svg.innerHTML).join(),
        ground: behind === control ? ground : '',
        contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
      };
    });
}
