import type { Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { permissionAsked } from '../support/embed-stage';
import { EventWriter } from '../support/event-writer';
import { smallTargets } from '../support/page-checks';
import { isFocused, live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { openProfile, perFile, visit } from '../support/visit';

const AGENT = 'navigation';
const SESSION = 'navigation-asks';
const PAGES = [
  '/',
  '/inbox',
  '/agents',
  `/agents/${AGENT}`,
  `/agents/${AGENT}/logs`,
  `/sessions/${SESSION}`,
  '/settings',
  '/settings/access',
  '/settings/audit',
  '/settings/api',
];

const site = perFile(visit);
beforeAll(async () => {
  const agent = new EventWriter(site.server, AGENT);
  await agent.write(SESSION, [...userTurn('r1', 'שלום: build the bridge', 'May I?'), permissionAsked('navigation-1')]);
  await agent.staysInTouch();
});

/** A page on a phone, signed in. */
async function onPhone(path: string): Promise<Page> {
  const { context, close } = await openProfile({
    viewport: { width: 360, height: 780 },
    hasTouch: true,
    isMobile: true,
    storageState: await site.context.storageState(),
  });
  onTestFinished(close);
  const page = await context.newPage();
  await page.goto(`${site.server.url}${path}`);
  await live(page);
  return page;
}

const nav = (page: Page) => page.getByRole('navigation', { name: 'Main' });

test('two keys lead to each page, whose entry is marked, and whose rows the next keys reach', async () => {
  const page = await site.open(`/sessions/${SESSION}`);
  for (const [key, name, path, row] of [
    ['i', 'Inbox', '/inbox', '[data-inbox-row]'],
    ['a', 'Agents', '/agents', '[data-agent-row]'],
    [',', 'Settings', '/settings', null],
    ['s', 'Sessions', '/', '[data-session-row]'],
  ] as const) {
    await page.locator('#sessions').locator('[data-session-row]').first().focus();
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.waitForURL(`${site.server.url}${path}`);
    await nav(page).getByRole('link', { name }).and(page.locator('[aria-current=page]')).waitFor();
    const part = page.locator(path === '/' ? '#sessions' : '#content');
    await expect.poll(() => part.evaluate((element) => element.contains(document.activeElement))).toBe(true);
    await page.keyboard.press('j');
    if (row !== null) expect(await page.locator(':focus').and(page.locator(row)).count()).toBe(1);
    // Nothing to leave.
    const before = await page.evaluateHandle(() => document.activeElement);
    await page.keyboard.press('Escape');
    expect(await before.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(new URL(page.url()).pathname).toBe(path);
  }
  await site.leave(page);
});

test('the sidebar collapses to icons with tooltips, and is collapsed in the first paint of the next visit', async () => {
  const page = await site.open(`/sessions/${SESSION}`);
  const list = page.getByRole('navigation', { name: 'Sessions' });
  const sidebar = () => nav(page).evaluate((element) => element.getBoundingClientRect().width);
  await page.getByRole('button', { name: 'Collapse the sidebar' }).click();
  await list.waitFor({ state: 'hidden' });
  expect(await sidebar()).toBeLessThan(60);
  const agents = nav(page).getByRole('link', { name: 'Agents', exact: true });
  const label = agents.getByText('Agents');
  const opacity = () => label.evaluate((element) => getComputedStyle(element).opacity);
  expect(await opacity()).toBe('0');
  await agents.hover();
  await expect.poll(opacity).toBe('1');
  await page.mouse.move(600, 400);
  await expect.poll(opacity).toBe('0');
  await nav(page).getByRole('link', { name: 'Sessions', exact: true }).focus();
  await page.keyboard.press('Tab');
  expect(await isFocused(agents)).toBe(true);
  expect(await opacity()).toBe('1');

  // Without scripts from files, only the inline script can collapse it.
  await page.route('**/*.js', (route) => route.abort());
  site.complaints.length = 0;
  await page.reload();
  expect(await sidebar()).toBeLessThan(60);
  await page.unrouteAll();
  site.complaints.length = 0;
  await page.reload();
  await page.getByRole('button', { name: 'Expand the sidebar' }).waitFor();
  await page.keyboard.press('[');
  await list.waitFor();
  await site.leave(page);
});

test('the bottom bar leads to every page on a phone, and ends below the content', async () => {
  const page = await onPhone(`/sessions/${SESSION}`);
  const bar = await nav(page).boundingBox();
  const content = await page.getByRole('main').boundingBox();
  expect(bar && bar.y + bar.height).toBe(780);
  expect(content && content.y + content.height).toBe(bar?.y);
  for (const [name, path] of [
    ['Inbox', '/inbox'],
    ['Agents', '/agents'],
    ['Sessions', '/'],
  ] as const) {
    await nav(page).getByRole('link', { name }).tap();
    await page.waitForURL(`${site.server.url}${path}`);
    await nav(page).getByRole('link', { name }).and(page.locator('[aria-current=page]')).waitFor();
  }
  const more = nav(page).getByRole('button', { name: 'More' });
  const sheet = page.getByRole('dialog', { name: 'More' });
  await more.tap();
  await sheet.waitFor();
  expect(await sheet.getByText('Keyboard shortcuts').isVisible()).toBe(false);
  await page.keyboard.press('Escape');
  await sheet.waitFor({ state: 'hidden' });
  expect(await isFocused(more)).toBe(true);
  await more.tap();
  await sheet.getByRole('link', { name: 'Settings' }).tap();
  await page.waitForURL('**/settings');
  await sheet.waitFor({ state: 'hidden' });
});

test('the bottom bar gives way to the keyboard while a field has the focus', async () => {
  const page = await onPhone('/');
  await page.getByRole('searchbox', { name: 'Search sessions' }).tap();
  await nav(page).waitFor({ state: 'hidden' });
  const content = await page.getByRole('main').boundingBox();
  expect(content && content.y + content.height).toBe(780);
  await page.getByRole('heading', { name: 'Sessions' }).tap();
  await nav(page).waitFor();
});

test('no control on a touch screen is smaller than 44 px or names a key', async () => {
  const page = await onPhone('/');
  for (const path of PAGES) {
    await page.goto(`${site.server.url}${path}`);
    await live(page);
    await expect.poll(() => smallTargets(page), { message: path }).toEqual([]);
    expect(await page.locator('kbd:visible, .key:visible').count(), path).toBe(0);
    const titles = await page.locator('[title]').evaluateAll((all) => all.map((one) => one.getAttribute('title')));
    expect(titles.filter((title) => /\((?:.|Esc|Enter|Ctrl.*)\)$/.test(title ?? ''))).toEqual([]);
  }
});

test('a saved view of the board opens from the sidebar of every page, and is marked there', async () => {
  const page = await site.open('/agents?state=needs-input');
  await page.getByRole('button', { name: 'Save view' }).click();
  await page.getByRole('textbox', { name: 'Name of the view' }).fill('Waiting');
  await page.keyboard.press('Enter');
  const view = nav(page).getByRole('list', { name: 'Saved views' }).getByRole('link', { name: 'Waiting' });
  await view.and(page.locator('[aria-current=page]')).waitFor();
  await page.goto(`${site.server.url}/inbox`);
  await view.and(page.locator(':not([aria-current])')).click();
  await page.waitForURL(`${site.server.url}/agents?state=needs-input`);
  await page.getByRole('checkbox', { name: /^Needs input/, checked: true }).waitFor({ state: 'attached' });
  await view.and(page.locator('[aria-current=page]')).waitFor();
  await page.keyboard.press('[');
  await view.waitFor({ state: 'hidden' });
  await page.keyboard.press('[');
  await page.getByRole('button', { name: 'Views', exact: true }).click();
  await page.getByRole('button', { name: 'Delete view' }).click();
  await view.waitFor({ state: 'detached' });
  await site.leave(page);
});
