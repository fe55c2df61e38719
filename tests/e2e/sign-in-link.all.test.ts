import { isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newSignInLink } from '../support/server-data';
import { type OwnVisit, visitOwn } from '../support/visit';

const lan = Object.values(networkInterfaces())
  .flat()
  .find((one) => one !== undefined && !one.internal && isIPv4(one.address))?.address;

let site: OwnVisit;
beforeAll(async () => {
  site = await visitOwn({ signedIn: false, env: { HOST: '0.0.0.0' } });
});
afterAll(() => site.close());

test.skipIf(lan === undefined)(
  'over plain HTTP, where browsers send fewer headers, a sign-in link asks first, and forms and downloads work',
  async () => {
    const origin = site.server.url.replace('127.0.0.1', lan ?? '');
    const page = await site.context.newPage();
    await page.goto(await newSignInLink(site.server, origin));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
    await page.goto(`${origin}/settings/audit`);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export' }).click(),
    ]);
    expect(await download.failure()).toBeNull();
    await page.goto(`${origin}/settings`);
    await page.locator('main').getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.waitForURL(/\/signed-out/);
    await page.getByLabel('Token').fill(site.server.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
    await page.close();
  },
);
