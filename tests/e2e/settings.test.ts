import { readFile } from 'node:fs/promises';
import type { AuditEntry, AuditPage, NewToken } from '@interlude/protocol/access';
import type { Storage } from '@interlude/protocol/storage';
import type { BrowserContext, Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { formatBytes } from '@/components/ui/format-size';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { addMembers, VIEWER_SECRET } from '../support/server-data';
import { isFocused, live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { openProfile, perFile, visit } from '../support/visit';

const site = perFile(visit);
beforeAll(async () => {
  await new EventWriter(site.server, 'settings-builder').write(
    'settings-work',
    userTurn('r1', 'Build it', 'It builds.'),
  );
});

/** A browser that shares nothing with the others, so its sign-out does not affect other tests. */
async function ownBrowser(): Promise<BrowserContext> {
  const { context, close } = await openProfile();
  onTestFinished(close);
  return context;
}

async function signIn(context: BrowserContext): Promise<void> {
  const link = `${site.server.url}/sign-in?token=${encodeURIComponent(site.server.token)}`;
  await context.request.get(link, { maxRedirects: 0 });
}

function statusOf(token: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return fetch(`${site.server.url}/api/v1${path}`, { headers }).then(({ status }) => status);
}

/** Loads a page and waits until it is interactive: a press on the server's markup alone is lost. */
async function open(path: string): Promise<Page> {
  const page = await site.open(path);
  await live(page);
  return page;
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

test('a token created on the page opens what its role may read, until it is revoked there', async () => {
  const page = await open('/settings/access');
  await button(page, 'Create a token').click();
  await page.getByLabel('Role').selectOption('viewer');
  await page.getByLabel('Name', { exact: true }).fill('settings wall');
  await button(page, 'Create token').click();
  const notice = page.getByRole('region', { name: 'The new token' });
  await expect.poll(() => isFocused(notice)).toBe(true);
  const token = (await notice.locator('code').first().textContent()) ?? '';
  expect([await statusOf(token, '/sessions'), await statusOf(token, '/credentials')]).toEqual([200, 403]);
  await button(page, 'I have it').click();
  const row = page.getByRole('table', { name: 'Tokens', exact: true }).getByRole('row', { name: /^settings wall/ });
  await press(row.getByRole('button', { name: 'Revoke “settings wall”' }));
  const confirm = row.getByRole('button', { name: 'Revoke “settings wall”: sure?' });
  await expect.poll(() => confirm.getAttribute('aria-disabled')).toBe('false');
  expect(await statusOf(token, '/sessions')).toBe(200);
  await confirm.click();
  await row.waitFor({ state: 'detached' });
  expect(await statusOf(token, '/sessions')).toBe(401);
  await site.leave(page);
});

test('the audit page narrows to an action, exports what it shows, and verifies the chain', async () => {
  await createAndRevoke();
  const page = await open('/settings/audit');
  const entries = page.getByRole('list', { name: 'Entries' }).getByRole('listitem');
  await page.getByLabel('Action').selectOption('revoke credential');
  await expect.poll(() => entries.allInnerTexts()).toSatisfy(every(/revoke credential/));
  expect(new URL(page.url()).search).toBe('?action=revoke+credential');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Export these as JSON lines' }).click();
  const lines = (await readFile(await (await download).path(), 'utf8')).trimEnd().split('\n');
  const exported = lines.map((line) => (JSON.parse(line) as AuditEntry).action);
  expect(new Set(exported)).toEqual(new Set(['revoke credential']));
  await button(page, 'Verify the log').click();
  const checked = page.getByRole('status').filter({ hasText: 'The chain is intact' });
  await checked.waitFor();
  const { entries: newest } = await site.read<AuditPage>('/audit?limit=1');
  expect(await checked.textContent()).toContain(newest[0]?.hash);
  await site.leave(page);
});

/** Creates a token and revokes it: two entries of the audit. */
async function createAndRevoke(): Promise<void> {
  const headers = { authorization: `Bearer ${site.server.token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ role: 'viewer', name: 'settings audit' });
  const response = await fetch(`${site.server.url}/api/v1/tokens`, { method: 'POST', headers, body });
  const { credential } = (await response.json()) as NewToken;
  await fetch(`${site.server.url}/api/v1/credentials/${credential.id}`, { method: 'DELETE', headers });
}

const every = (pattern: RegExp) => (texts: string[]) => texts.length > 0 && texts.every((text) => pattern.test(text));

test('the storage page lists the parts that the server measured', async () => {
  const page = await open('/settings/storage');
  const table = page.getByRole('table', { name: 'Parts of the database' });
  await table.getByRole('row', { name: /^Events/ }).waitFor();
  const storage = await site.read<Storage>('/storage');
  expect(storage.parts.reduce((sum, { bytes }) => sum + bytes, storage.freeBytes)).toBe(storage.bytes);
  expect(storage.method).toBe('measured');
  await page.getByText(`${formatBytes(storage.bytes)} in total`).waitFor();
  expect(await table.getByRole('row').count()).toBe(storage.parts.length + 2);
  await site.leave(page);
});

test('the API reference opens linked operations and types', async () => {
  const page = await open('/settings/api#postSessionsBySessionIdMessages');
  const operation = page.locator('#postSessionsBySessionIdMessages');
  await operation.getByText('From a shell').waitFor();
  expect(await operation.textContent()).toMatch(/text[\s\S]*clientId[\s\S]*202[\s\S]*MessageResponse/);
  const command = (await operation.locator('code').last().textContent()) ?? '';
  expect(command).toContain('curl "$INTERLUDE_URL/api/v1/sessions/SESSION_ID/messages" \\\n  -X POST');
  await operation.getByRole('link', { name: 'MessageResponse' }).click();
  await page.getByText('Current delivery state.').waitFor();
  await site.leave(page);
});

test('keys alone lead from the start page through the settings, and out', async () => {
  const context = await ownBrowser();
  await signIn(context);
  const page = await context.newPage();
  await page.goto(`${site.server.url}/`);
  await live(page);
  await tabTo(page, 'Settings');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/settings');
  const nav = page.getByRole('navigation', { name: 'Settings' });
  await nav.waitFor();
  await tabTo(page, 'Access');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/settings/access');
  await expect.poll(() => nav.getByRole('link', { name: 'Access' }).getAttribute('aria-current')).toBe('page');
  await tabTo(page, 'Create a token');
  await page.keyboard.press('Enter');
  await expect.poll(() => isFocused(page.getByLabel('Role'))).toBe(true);
  await page.keyboard.press('Escape');
  await expect.poll(() => isFocused(button(page, 'Create a token'))).toBe(true);
  await tabTo(page, 'You', 'Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/settings');
  await button(page, 'Sign out').waitFor();
  await tabTo(page, 'Sign out');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/signed-out?reason=ended');
});

test('a viewer sees their role and whom to ask, and none of the admins’ pages', async () => {
  onTestFinished(await addMembers(site.server));
  const context = await ownBrowser();
  const { hostname } = new URL(site.server.url);
  await context.addCookies([{ name: 'interlude', value: VIEWER_SECRET, domain: hostname, path: '/', httpOnly: true }]);
  const page = await context.newPage();
  await page.goto(`${site.server.url}/settings`);
  await page.getByRole('heading', { name: 'Tom' }).waitFor();
  await page
    .getByText('Viewer: can read everything but change nothing. To change your role, ask an admin: Lena.')
    .waitFor();
  const places = page.getByRole('navigation', { name: 'Settings' }).getByRole('link');
  expect(await places.allTextContents()).toEqual([
    ...['You', 'Appearance', 'Notifications', 'Shortcuts', 'API', 'Webhook'],
  ]);
  await page.goto(`${site.server.url}/sessions/settings-work`);
  await page.getByText('You have read access. To write, ask an admin for the operator role.').waitFor();
  expect(await page.getByRole('textbox', { name: /^Message to/ }).count()).toBe(0);
  const reads = { access: 'credentials', members: 'members', audit: 'audit', storage: 'storage' };
  for (const [path, read] of Object.entries(reads)) {
    await page.goto(`${site.server.url}/settings/${path}`);
    await page.getByText('Only admins can see this page. For access, ask an admin: Lena.').waitFor();
    expect(await page.evaluate((of) => fetch(`/api/v1/${of}`).then(({ status }) => status), read)).toBe(403);
  }
});

/** Presses Tab until the focused element has this text. */
async function tabTo(page: Page, text: string, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press(key);
    const focused = await page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
    if (focused === text) return;
  }
  throw new Error(`Tab does not lead to ${text}`);
}
