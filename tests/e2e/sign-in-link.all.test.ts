import { isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newSignInLink } from '../support/server-data';
import { type OwnVisit, visitOwn } from '../support/visit';

const lan = Object.values(networkInterfaces())
  .flat()
  .find((one) => one !== undefined && !one.internal && isIPv4(one.address))?.address;

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn({ signedIn: false, env: { HOST: '0.0.0.0' } });
});
afterAll(() => it.close());

test.skipIf(lan === undefined)(
  'over plain HTTP, where browsers send fewer headers, a sign-in link asks first, and forms and downloads work',
  async () => {
    const origin = it.server.url.replace('127.0.0.1', lan ?? '');
    const page = await it.context.newPage();
    await page.goto(await newSignInLink(it.server, origin));
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
    await page.getByLabel('Token').fill(it.server.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
    await page.close();
  },
);
