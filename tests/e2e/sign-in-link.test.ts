import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { SignInCode } from '@/lib/protocol/access';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn({ signedIn: false, env: { HOST: '0.0.0.0' } });
});
afterAll(() => it.close());

async function newLink(origin = it.server.url): Promise<string> {
  const headers = { authorization: `Bearer ${it.server.token}` };
  const answer = await fetch(`${it.server.url}/api/v1/sign-in-codes`, { method: 'POST', headers });
  return `${origin}${((await answer.json()) as SignInCode).path}`;
}

/** A page of another site. */
async function elsewhere(html: string): Promise<string> {
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html));
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  return `http://localhost:${(site.address() as AddressInfo).port}/`;
}

test('to which another site leads asks first, under the name of its own, and is used up by nothing before that', async () => {
  const link = await newLink();
  const rules = JSON.stringify({ prefetch: [{ source: 'list', urls: [link], eagerness: 'immediate' }] });
  const site = await elsewhere(`<img src="${link}"><iframe src="${link}"></iframe><link rel="prefetch" href="${link}">
    <script type="speculationrules">${rules}</script><a href="${link}">A link</a>`);
  const page = await it.context.newPage();
  await page.goto(site, { waitUntil: 'load' });
  await page.getByRole('link').click();
  await page.getByRole('heading', { name: 'Sign in?' }).waitFor();
  const { hostname, host } = new URL(page.url());
  expect(hostname).toMatch(/^interlude-\w{8}\.localhost$/);
  expect(await page.locator('main').textContent()).toContain(`at ${host} as “Local admin”`);
  expect(await it.context.cookies()).toEqual([]);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  expect(new URL(page.url()).host).toBe(host);
  await it.context.clearCookies();
  await page.close();
});

test('that another site redirects to asks first as well', async () => {
  const link = await newLink();
  const page = await it.context.newPage();
  await page.goto(await elsewhere(`<script>location.href = ${JSON.stringify(link)}</script>`));
  await page.getByRole('heading', { name: 'Sign in?' }).waitFor();
  expect(await it.context.cookies()).toEqual([]);
  await page.close();
});

test('that somebody opens signs in at once, through the name of its own', async () => {
  const page = await it.context.newPage();
  await page.goto(await newLink());
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  expect(new URL(page.url()).hostname).toMatch(/^interlude-\w{8}\.localhost$/);
  await it.context.clearCookies();
  await page.close();
});

const lan = Object.values(networkInterfaces())
  .flat()
  .find((one) => one !== undefined && !one.internal && isIPv4(one.address))?.address;

test.skipIf(lan === undefined)(
  'over plain http, where browsers say less, asks first; forms and downloads work',
  async () => {
    const origin = it.server.url.replace('127.0.0.1', lan ?? '');
    const page = await it.context.newPage();
    await page.goto(await newLink(origin));
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
