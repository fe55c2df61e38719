import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { playRecording } from '../support/play-recording';
import { live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

const PAGES: Record<string, string> = {
  'the start page': '/',
  'a session with tasks': '/sessions/demo-test-run',
  'a session with subagents': '/sessions/demo-research',
  agents: '/agents',
  'the inbox': '/inbox',
  'an agent': '/agents/agent-demo-test-run',
  'the signed-out page': '/signed-out?reason=wrong-token',
};

const WIDE = `A word of ${'length'.repeat(60)}, a path /${'folder/'.repeat(40)}file.ts, and

\`\`\`ts
const line = '${'code '.repeat(60)}';
\`\`\`

| ${Array.from({ length: 14 }, (_, at) => `column ${at}`).join(' | ')} |
|${' --- |'.repeat(14)}
| ${Array.from({ length: 14 }, (_, at) => `value-${at}-${'x'.repeat(20)}`).join(' | ')} |
`;

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  await playRecording(it.server, 'demo/test-run');
  await playRecording(it.server, 'demo/research');
  const wide = 'w'.repeat(200);
  await new EventWriter(it.server, `agent-${wide}`).write('wide', userTurn('r1', `${wide} and on`, WIDE));
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

describe.each([360, 1280])('%i px wide', (width) => {
  test.each(Object.keys(PAGES))(
    '%s has no barrier axe knows of in light or dark, and does not scroll sideways',
    async (name) => {
      const page = await open(PAGES[name] as string, width, 'light');
      expect(await sidewaysScrollers(page)).toEqual([]);
      expect(await backgroundLuminance(page)).toSatisfy(isLight);
      expect(await barriersInBothThemes(page)).toEqual([]);
      expect(await backgroundLuminance(page)).toSatisfy(isDark);
      await page.close();
    },
  );
});

test('at 360 px long words, code and wide tables scroll in boxes of their own, if at all', async () => {
  const page = await open('/sessions/wide', 360, 'light');
  await transcriptOf(page).getByRole('table').waitFor();
  expect(await sidewaysScrollers(page)).toEqual([]);
  await page.close();
});

test('at 360 px what is said of an empty log stands below its toolbar', async () => {
  const page = await open('/agents/agent-demo-test-run/logs', 360, 'light');
  const toolbar = page.getByRole('toolbar', { name: 'Log' });
  const said = page.getByText('This agent has not written a log line yet');
  await said.waitFor();
  const [above, below] = [await toolbar.boundingBox(), await said.boundingBox()];
  expect(below?.y).toBeGreaterThanOrEqual((above?.y ?? 0) + (above?.height ?? 0));
  await page.close();
});

test('at 360 px the list leads to a session, and its back link to the list', async () => {
  const page = await open('/', 360, 'light');
  const nav = page.getByRole('navigation', { name: 'Sessions' });
  await nav.getByRole('link', { name: /agent-demo-test-run/ }).click();
  await transcriptOf(page).getByRole('article', { name: 'User turn' }).first().waitFor();
  expect(await nav.isVisible()).toBe(false);
  await page.getByRole('button', { name: /^\d+ tasks?$/ }).click();
  await page.getByRole('complementary', { name: 'Tasks' }).getByRole('link').first().click();
  await transcriptOf(page)
    .getByRole('group', { name: /^Task / })
    .first()
    .waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Sessions', exact: true }).click();
  await nav.getByRole('link').first().waitFor();
  expect(await transcriptOf(page).isVisible()).toBe(false);
  await page.close();
});

test('a theme that was chosen stays, whatever the system says', async () => {
  const page = await open('/', 1280, 'light');
  await page.getByRole('button', { name: 'Theme: system. Change to light' }).click();
  await page.getByRole('button', { name: 'Theme: light. Change to dark' }).click();
  await page.getByRole('button', { name: 'Theme: dark. Change to system' }).waitFor();
  expect(await backgroundLuminance(page)).toSatisfy(isDark);
  await page.reload();
  await live(page);
  expect(await backgroundLuminance(page)).toSatisfy(isDark);
  await page.evaluate(() => localStorage.clear());
  await page.close();
});

async function open(path: string, width: number, colorScheme: 'light' | 'dark'): Promise<Page> {
  const page = await it.context.newPage();
  // what breathes and turns would be measured in the middle of it
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.setViewportSize({ width, height: 800 });
  await page.goto(`${it.server.url}${path}`);
  if (!path.startsWith('/signed-out')) await live(page);
  return page;
}

/** Boxes that are wider inside than out, other than those that are made to scroll sideways by themselves. */
function sidewaysScrollers(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const root = document.documentElement;
    const page = root.scrollWidth > root.clientWidth ? [`the page: ${root.scrollWidth} in ${root.clientWidth}`] : [];
    const boxes = [...document.querySelectorAll<HTMLElement>('[role=log], nav, nav *, main, main > *, aside, header')];
    const wide = boxes.filter((box) => {
      const { overflowX, overflowY, textOverflow } = getComputedStyle(box);
      const scrolls = /auto|scroll/.test(overflowX) && /auto|scroll/.test(overflowY);
      return scrolls && textOverflow !== 'ellipsis' && box.scrollWidth > box.clientWidth;
    });
    return [...page, ...wide.map((box) => `${box.tagName} ${box.className}: ${box.scrollWidth} in ${box.clientWidth}`)];
  });
}

const isDark = (luminance: number) => luminance < 0.1;
const isLight = (luminance: number) => luminance > 0.9;

/** 0 is black, 1 is white. */
function backgroundLuminance(page: Page): Promise<number> {
  return page.evaluate(() => {
    const pen = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0] = pen.getImageData(0, 0, 1, 1).data;
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
  });
}
