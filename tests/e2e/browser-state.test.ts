import type { BrowserContext, Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { signInOperator } from '../support/server-data';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { openProfile, perFile, visit } from '../support/visit';

const site = perFile(visit);
const SESSION = 'passed-on';
beforeAll(async () => {
  await new EventWriter(site.server, 'passed-on-builder').write(SESSION, userTurn('r1', 'Build it', 'It builds.'));
});

/** The browser of a shared machine. */
async function ownBrowser(): Promise<BrowserContext> {
  const { context, close } = await openProfile();
  onTestFinished(close);
  return context;
}

/** Replaces the sign-in of the browser. */
async function signIn(context: BrowserContext, id: string): Promise<void> {
  const value = await signInOperator(site.server, id);
  await context.addCookies([{ name: 'interlude', value, url: site.server.url, httpOnly: true }]);
}

async function openSession(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${site.server.url}/sessions/${SESSION}`);
  await live(page);
  return page;
}

async function setBlocked(member: string, blocked: boolean): Promise<void> {
  const headers = { authorization: `Bearer ${site.server.token}`, 'content-type': 'application/json' };
  const init = { method: 'PUT', headers, body: JSON.stringify({ blocked }) };
  expect((await fetch(`${site.server.url}/api/v1/members/${member}`, init)).status).toBe(200);
}

const field = (page: Page) => page.getByRole('textbox', { name: /^Message to/ });
const transcript = async () => JSON.stringify(await site.read(`/sessions/${SESSION}/transcript`));
const keys = (page: Page) => page.evaluate(() => Object.keys(localStorage));

test('one person’s browser state is not sent as the next person, and waits for its author', async () => {
  const context = await ownBrowser();
  await signIn(context, 'Ada');
  const ada = await openSession(context);
  await context.route('**/messages', (route) => route.abort());
  await field(ada).fill('Kept by Ada');
  await field(ada).press('Enter');
  await ada.getByText('Not sent yet. Retrying…').waitFor();
  await field(ada).fill('Half a thought of Ada');
  await setBlocked('Ada', true);
  await ada.getByRole('alert').filter({ hasText: 'or your sign-in expired' }).waitFor();

  await context.unroute('**/messages');
  await signIn(context, 'Bob');
  const bob = await openSession(context);
  // Ada's page unloads and returns as Bob's.
  await expect.poll(() => field(ada).inputValue()).toBe('');
  await live(ada);
  expect(await ada.getByText('Kept by Ada').count()).toBe(0);
  await field(ada).fill('Sent by Bob');
  await field(ada).press('Enter');
  await bob.getByText('Sent by Bob').waitFor();
  expect(await transcript()).not.toContain('Kept by Ada');
  expect((await keys(bob)).filter((key) => key.includes(':of:Bob:outgoing')).length).toBe(0);

  await setBlocked('Ada', false);
  await signIn(context, 'Ada');
  const again = await openSession(context);
  expect(await field(again).inputValue()).toBe('Half a thought of Ada');
  await expect.poll(transcript).toContain('Kept by Ada');
});

test('a page sends nothing in the name of a person who signed in elsewhere', async () => {
  const context = await ownBrowser();
  await signIn(context, 'Eve');
  const page = await openSession(context);
  await signIn(context, 'Fay');
  await field(page).fill('Written by Eve');
  await field(page).press('Enter');
  // The page reloads, and is Fay's from then on.
  await expect.poll(() => keys(page)).toContain('interlude:current');
  await expect.poll(() => page.evaluate(() => localStorage.getItem('interlude:current'))).toBe('Fay');
  await live(page);
  expect(await page.getByText('Written by Eve').count()).toBe(0);
  expect(await transcript()).not.toContain('Written by Eve');
});

test('a sign-out clears the browser’s storage, and leaves every tab', async () => {
  const context = await ownBrowser();
  await signIn(context, 'Ida');
  const [other, page] = [await openSession(context), await openSession(context)];
  await field(other).fill('Half a thought of Ida');
  await expect.poll(() => keys(page)).toContain(`interlude:of:Ida:draft:${SESSION}`);
  await page.goto(`${site.server.url}/settings`);
  await live(page);
  const answered = page.waitForResponse((response) => response.url().endsWith('/sign-out'));
  await page.locator('main').getByRole('button', { name: 'Sign out', exact: true }).click();
  expect(await (await answered).headerValue('clear-site-data')).toBe('"storage"');
  // The other tab leaves on this sign-out or when its stream ends.
  await Promise.all([
    page.waitForURL('**/signed-out?reason=ended'),
    other.waitForURL(/\/signed-out\?(?:reason=ended&)?next=/),
  ]);
  expect(new URL(other.url()).searchParams.get('next')).toBe(`/sessions/${SESSION}`);
  await expect.poll(() => keys(page)).toEqual([]);
  expect(await keys(other)).toEqual([]);
  // Going back shows nothing of hers.
  await page.goBack();
  await page.waitForURL('**/signed-out*');
});
