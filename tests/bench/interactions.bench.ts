import type { Locator, Page } from 'playwright-core';
import { connectFleet, writeFleet } from '../support/fleet';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { observeInteractions } from './page-timing';
import { note, percentile, report } from './report';

/** Key presses and clicks on the pages of 40 connected agents with 300 sessions, in Chromium. */
const site: OwnVisit = await visitOwn();
const fleet = await writeFleet(site.server);
const disconnect = await connectFleet(site.server, fleet);
const all: number[] = [];
try {
  // tsx injects a helper into functions that pages lack
  await site.context.addInitScript('globalThis.__name ??= (value) => value');
  await visit('/', async (page) => {
    await press(page, ...repeat('j', 25), ...repeat('k', 15), '/', ...'coupon', 'Escape', 'Escape', '/', ...'zzz');
    await press(page, 'Escape', 'Escape');
    await toggle(page.getByRole('main').locator('label'));
    await toggle(page.getByRole('main').locator('h2 button[aria-expanded]'));
  });
  await visit('/inbox', async (page) => {
    await press(page, ...repeat('j', 12), 'o', 'j', 'o', 'x', 'j', 'x', 'k', 'x', 'k', 'x', 'o', ...repeat('k', 6));
    await press(page, 'R', 'Escape', 'r', 'r', 'r');
    for (const tab of ['Permissions', 'Failures', 'Questions', 'All'])
      await click(page.getByRole('link', { name: new RegExp(`^${tab}`) }));
    await page.getByRole('searchbox', { name: 'Search the inbox' }).focus();
    await press(page, ...'billing', ...repeat('Backspace', 7));
  });
  await visit('/agents', async (page) => {
    await page.getByRole('searchbox', { name: 'Search agents' }).focus();
    await press(page, ...'billing', ...repeat('Backspace', 7));
    await toggle(page.locator('#content fieldset label'));
    for (const column of ['Agent', 'Sessions', 'Last seen', 'State'])
      await click(page.getByRole('columnheader').getByRole('button', { name: new RegExp(`^${column}`) }));
    await toggle(page.getByRole('button', { name: 'Columns' }));
    await toggle(page.getByRole('button', { name: 'Activity' }));
    await toggle(page.getByRole('checkbox', { name: 'Select all shown agents' }));
  });
  await visit(`/sessions/${fleet.at(-1)?.id}-longest`, async (page) => {
    await page.getByRole('log', { name: 'Transcript' }).focus();
    await press(page, ...repeat('k', 20), ...repeat('j', 10), 'G', 'E', 'Escape', 'M', 'Escape', '?', 'Escape');
    for (const tab of ['Tasks', 'Log', 'Details', 'Transcript', 'Tasks', 'Transcript'])
      await click(page.getByRole('tab', { name: new RegExp(`^${tab}`) }));
    await press(page, 'l', 'l', 'c', ...'Run the suite again, please', ...repeat('Backspace', 10));
  });
  report('all pages: interactions', all.length, '', { atLeast: 200 });
  report('all pages: key or click to paint, p98', percentile(all, 0.98), 'ms', { atMost: 100 });
  note('all pages: key or click to paint, slowest', Math.max(...all), 'ms');
  if (site.complaints.length > 0) throw new Error(site.complaints.join('\n'));
} finally {
  disconnect();
  await site.close();
}

async function visit(path: string, act: (page: Page) => Promise<void>): Promise<void> {
  const page = await site.load(path);
  await live(page);
  // excludes the page's start
  await page.evaluate(() => new Promise<void>((resolve) => requestIdleCallback(() => resolve())));
  const interactions = await observeInteractions(page);
  await act(page);
  await painted(page);
  const times = await interactions();
  note(`${path}: key or click to paint, p98 of ${times.length}`, percentile(times, 0.98), 'ms');
  all.push(...times);
  await page.close();
}

async function press(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) {
    await page.keyboard.press(key);
    await painted(page);
  }
}

async function click(target: Locator): Promise<void> {
  await target.click();
  await painted(target.page());
}

/** Clicks each element twice. */
async function toggle(targets: Locator): Promise<void> {
  for (const target of await targets.all()) {
    await click(target);
    await click(target);
  }
}

/** Resolves after two frames, because a person is slower than that. */
function painted(page: Page): Promise<void> {
  return page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  );
}

function repeat(key: string, times: number): string[] {
  return Array.from({ length: times }, () => key);
}
