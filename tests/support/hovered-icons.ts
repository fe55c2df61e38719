import type { ElementHandle, Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { taskStarted, toolCall, userTurn, wokenTurn } from './turn-events';

/** Minimum contrast of a non-text icon (WCAG 1.4.11). */
const LEAST_CONTRAST = 3;

const CONTROLS = 'button:visible, [role=switch]:visible, [role=radio]:visible';

/** Writes a session with every kind of control: a call, a task, code and a failed hook. */
export async function writeControls(server: { url: string; token: string }, session: string): Promise<void> {
  const agent = new EventWriter(server, session);
  await agent.write(session, [
    ...userTurn('r1', 'Build it', [
      ...toolCall('c1', 'Bash', { command: 'make' }, 'done'),
      taskStarted('t1', 'Nightly'),
    ]),
    ...wokenTurn('r2', 't1', 'It has ended.\n\n```sh\nmake check\n```'),
  ]);
  await agent.failHook('Stop', 'exit 3: needle', session);
}

/** Hovers each enabled control. Expects its icon and contrast to stay, and the background of a pressed one. */
export async function expectHoveredIcons(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.mouse.move(0, 0);
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.locator(`html.${colorScheme}`).waitFor();
  let seen = 0;
  const controls = (await page.locator(CONTROLS).elementHandles()) as ElementHandle<Element>[];
  for (const control of controls) {
    // lists may change meanwhile; skip removed controls
    if (!(await control.evaluate((element) => element.isConnected && element.checkVisibility()))) continue;
    const before = await iconOf(control);
    if (!before.isEnabled) continue;
    await control.hover({ force: true });
    const hovered = await iconOf(control);
    const which = `${hovered.name}, ${colorScheme}`;
    expect(hovered.shape, which).toBe(before.shape);
    expect(hovered.contrast, which).toBeGreaterThanOrEqual(LEAST_CONTRAST);
    if (hovered.isOn) expect(hovered.ground, which).not.toBe('');
    seen += 1;
  }
  expect(seen).toBeGreaterThan(1);
}

/** A control's icon and its contrast with the background. */
function iconOf(control: ElementHandle<Element>) {
  return control.evaluate((control) => {
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
    const icon = control.querySelector('svg') ?? control;
    const [a, b] = [luminance(getComputedStyle(icon).color), luminance(ground)];
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
