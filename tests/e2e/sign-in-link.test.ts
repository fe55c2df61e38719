import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { anotherSite, newSignInLink } from '../support/server-data';
import { live } from '../support/transcript-page';
import { openProfile, type Visit, visit } from '../support/visit';

let site: Visit;
beforeAll(async () => {
  site = await visit();
});
afterAll(() => site.close());

/** A new browser profile. */
async function newBrowser(): Promise<{ context: BrowserContext; page: Page }> {
  const { context, close } = await openProfile();
  onTestFinished(close);
  return { context, page: await context.newPage() };
}

test('a sign-in link asks before it signs in a visitor from another site, and no prefetch uses it up', async () => {
  const link = await newSignInLink(site.server);
  const rules = JSON.stringify({ prefetch: [{ source: 'list', urls: [link], eagerness: 'immediate' }] });
  const other =
    await anotherSite(`<img src="${link}"><iframe src="${link}"></iframe><link rel="prefetch" href="${link}">
    <script type="speculationrules">${rules}</script><a href="${link}">A link</a>`);
  const { context, page } = await newBrowser();
  await page.goto(await anotherSite(`<script>location.href = ${JSON.stringify(link)}</script>`));
  await page.getByRole('heading', { name: 'Sign in?' }).waitFor();
  await page.goto(other, { waitUntil: 'load' });
  await page.getByRole('link').click();
  await page.getByRole('heading', { name: 'Sign in?' }).waitFor();
  const { hostname, host } = new URL(page.url());
  expect(hostname).toMatch(/^interlude-\w{8}\.localhost$/);
  expect(await page.locator('main').textContent()).toContain(`at ${host} as “Local admin”`);
  expect(await context.cookies()).toEqual([]);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`http://${host}/`);
  await live(page);
});

test('a browser at a loopback address signs in under the server’s local name, and signs out', async () => {
  const { context, page } = await newBrowser();
  await page.goto(`${site.server.url}/signed-out?next=/inbox`);
  await page.getByText('Did you sign in with a link on this machine?').waitFor();
  const name = `${readFileSync(join(site.server.dataDir, 'local-name'), 'utf8').trim()}.localhost`;
  // Another user of this machine can also send requests to a loopback address.
  expect(await page.content()).not.toContain(name);
  const own = `http://${name}:${new URL(site.server.url).port}`;
  await page.goto(`${own}/signed-out?next=/inbox`);
  await page.getByLabel('Token').fill('not the right one');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText('Wrong token').waitFor();
  await page.getByLabel('Token').fill(site.server.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(`${own}/inbox`);
  await live(page);
  expect((await context.cookies()).map(({ domain }) => domain)).toEqual([name]);
  await page.goto(`${own}/settings`);
  await page.locator('main').getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.waitForURL(`${own}/signed-out?reason=ended`);
  await page.goto(`${own}/agents`);
  await page.waitForURL(`${own}/signed-out?next=%2Fagents`);
});
