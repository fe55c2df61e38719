import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bytesInWords } from '@/components/ui/bytes-in-words';
import { secretHash } from '@/lib/access/secret';
import type { AuditEntry } from '@/lib/protocol/audit';
import type { Storage } from '@/lib/protocol/storage';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { expectWithin } from '../support/pace';
import { removeAuditLater } from '../support/remove-turns';
import { isFocused, live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

const VIEWER = `ils_${'v'.repeat(43)}`;

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn({ env: { INTERLUDE_SESSION_IDLE_HOURS: '8' } });
  await new EventWriter(it.server, 'builder').write('work', userTurn('r1', 'Build it', 'It builds.'));
});
afterAll(async () => {
  await it.close();
  // a browser says of each refusal that it is one
  expect(it.complaints.filter((one) => !/status of (400|401|403)/.test(one))).toEqual([]);
});

async function signInAgain(): Promise<void> {
  const link = `${it.server.url}/sign-in?token=${encodeURIComponent(it.server.token)}`;
  await it.context.request.get(link, { maxRedirects: 0 });
}

function asks(token: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return fetch(`${it.server.url}/api/v1${path}`, { headers }).then(({ status }) => status);
}

async function press(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
}

test('a token is made, opens what it is for, is revoked, and opens nothing any more', async () => {
  const page = await it.open('/settings/access');
  await live(page);
  await press(page, 'Create a token');
  await page.getByLabel('Role').selectOption('viewer');
  await page.getByLabel('Name, to know it by').fill('The wall');
  await page.getByLabel('Expires').selectOption('30');
  await press(page, 'Create token');
  const notice = page.getByRole('region', { name: 'The new token' });
  await expect.poll(() => isFocused(notice)).toBe(true);
  const token = (await notice.locator('code').first().textContent()) ?? '';
  expect(token).toMatch(/^ilt_/);
  expect(await asks(token, '/sessions')).toBe(200);
  expect(await asks(token, '/credentials')).toBe(403);
  await press(page, 'I have it');
  const table = page.getByRole('table', { name: 'Tokens', exact: true });
  const row = table.getByRole('row', { name: /^The wall/ });
  await expect.poll(() => row.textContent()).toMatch(/Viewer[\s\S]*everything[\s\S]*in 30 d/);
  expect(await page.content()).not.toContain(token);

  await row.getByRole('button', { name: 'Revoke The wall' }).click();
  // a hand that slipped gets no second press in
  const sure = row.getByRole('button', { name: 'Revoke The wall: sure?' });
  await expect.poll(() => sure.getAttribute('aria-disabled')).toBe('false');
  expect(await asks(token, '/sessions')).toBe(200);
  await sure.click();
  await row.waitFor({ state: 'detached' });
  expect(await asks(token, '/sessions')).toBe(401);
  await page.getByText('1 revoked token').click();
  await page.getByRole('table', { name: 'Revoked tokens' }).getByText('The wall').waitFor();
  await page.close();
});

test('a runner’s token is for an agent, and its form says what the server says against it', async () => {
  const page = await it.open('/settings/access');
  await live(page);
  await press(page, 'Create a token');
  await page.getByLabel('Reaches').selectOption('prefix');
  await page.getByLabel('How their ids begin').fill('  ');
  await press(page, 'Create token');
  await expect.poll(() => page.getByRole('alert').filter({ hasText: 'agentPrefix' }).count()).toBe(1);
  await page.getByLabel('How their ids begin').fill('ci-');
  await press(page, 'Create token');
  const notice = page.getByRole('region', { name: 'The new token' });
  const token = (await notice.locator('code').first().textContent()) ?? '';
  await expect.poll(() => notice.textContent()).toContain(`--url ${it.server.url} \\\n  --token-file runner.token`);
  expect(await asks(token, '/sessions')).toBe(403);
  expect(await asks(token, '/agents/builder/reply-obligations')).toBe(404);
  await page.close();
});

test('the audit has what was done, narrows to it, exports it, and says that its chain is whole', async () => {
  const page = await it.open('/settings/audit');
  await live(page);
  const entries = page.getByRole('list', { name: 'Entries' }).getByRole('listitem');
  await page.getByLabel('Action').selectOption('revoke credential');
  await expect.poll(() => entries.count()).toBe(1);
  await expect.poll(() => entries.textContent()).toMatch(/Local admin[\s\S]*revoke credential[\s\S]*done/);
  expect(new URL(page.url()).search).toBe('?action=revoke+credential');

  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Export these as JSON lines' }).click();
  const lines = (await readFile(await (await download).path(), 'utf8')).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as AuditEntry).action)).toEqual(['revoke credential']);

  await page.reload();
  await expect.poll(() => entries.count()).toBe(1);
  await press(page, 'Show all');
  await expect.poll(() => entries.count()).toBeGreaterThan(3);
  // the button has gone, and the focus with it to what stands beside it
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Look again');
  await press(page, 'Check the chain');
  const said = page.getByRole('status').filter({ hasText: 'The chain is whole' });
  await said.waitFor();
  const { entries: all } = await it.read<{ entries: AuditEntry[] }>('/audit?limit=1');
  expect(await said.textContent()).toContain(all[0]?.hash);

  await page.getByLabel('Who').fill('Nobody');
  await page.getByText('Nothing like this was done').waitFor();
  await page.close();
});

test('the storage page says how large the database is, what takes it, and when that was looked up', async () => {
  const page = await it.open('/settings/storage');
  await live(page);
  const table = page.getByRole('table', { name: 'Parts of the database' });
  await table.getByRole('row', { name: /^Events/ }).waitFor();
  const storage = await it.read<Storage>('/storage');
  const sum = storage.parts.reduce((all, { bytes }) => all + bytes, storage.freeBytes);
  expect(sum).toBe(storage.bytes);
  expect(storage.method).toBe('measured');
  await page.getByText(`${bytesInWords(storage.bytes)} in all`).waitFor();
  expect(await table.getByRole('row').count()).toBe(storage.parts.length + 2);
  // of a minute ago at most, and the same for all who ask
  await press(page, 'Look again');
  await page.getByText(/^as of/).waitFor();
  expect((await it.read<Storage>('/storage')).at).toBe(storage.at);
  await page.close();
});

test('who signs out is signed out at once in other tabs, which say so and lead back to where they were', async () => {
  const other = await it.open('/sessions/work?x=1');
  await live(other);
  const page = await it.open('/');
  await live(page);
  await page.getByRole('link', { name: 'Settings and sign-out' }).click();
  const notice = other.getByRole('alert').filter({ hasText: 'Your sign-in has ended' });
  // from the answer on: how long a press takes on a busy machine is no matter here
  const ended = page.waitForResponse('**/sign-out').then(() => performance.now());
  const told = notice.waitFor().then(() => performance.now());
  await press(page, 'Sign out');
  expectWithin((await told) - (await ended), 2_000);
  await page.waitForURL('**/signed-out?reason=ended');
  await page.getByText('You are signed out.').waitFor();
  await notice.getByRole('link', { name: 'Sign in again' }).click();
  await other.waitForURL('**/signed-out?*');
  expect(new URL(other.url()).searchParams.get('next')).toBe('/sessions/work?x=1');
  await other.getByLabel('Token').fill(it.server.token);
  await press(other, 'Sign in');
  await other.waitForURL('**/sessions/work?x=1');
  await live(other);
  await Promise.all([page.close(), other.close()]);
});

test('another browser’s sign-in is ended from here, and this one stays', async () => {
  await signInAgain();
  const page = await it.open('/settings');
  await live(page);
  await page.getByText('it ends by itself after 8 hours without use').waitFor();
  await press(page, 'Sign out everywhere else');
  const sure = page.getByRole('button', { name: /^End \d+ sign-ins?\?$/ });
  await expect.poll(() => sure.getAttribute('aria-disabled')).toBe('false');
  await sure.click();
  await page.getByText('this browser is the only one').waitFor();
  await page.reload();
  await live(page);
  await page.close();
});

test('keys alone lead from the start page through the settings, and out', async () => {
  const page = await it.open('/');
  await live(page);
  await tabTo(page, 'Settings and sign-out');
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
  await expect.poll(() => isFocused(page.getByRole('button', { name: 'Create a token' }))).toBe(true);
  await tabTo(page, 'You', 'Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/settings');
  await page.getByRole('button', { name: 'Sign out', exact: true }).waitFor();
  await tabTo(page, 'Sign out');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/signed-out?reason=ended');
  await page.close();
  await signInAgain();
});

test('on a phone the way out of a session is two presses', async () => {
  const page = await it.open('/sessions/work');
  await page.setViewportSize({ width: 360, height: 800 });
  await live(page);
  await press(page, 'Arrange this session');
  await press(page, 'Sign out of Interlude');
  await page.waitForURL('**/signed-out?reason=ended');
  await page.close();
  await signInAgain();
});

describe.each([360, 1024, 1680])('%i px wide', (width) => {
  const pages = [
    '/settings',
    '/settings/access',
    '/settings/members',
    '/settings/audit',
    '/settings/api',
    '/settings/api/sessions',
    '/settings/api/acting',
    '/settings/api/types',
    '/settings/api/types/SessionSummary',
    '/settings/storage',
    '/signed-out?reason=old-link',
  ];
  test.each(pages)('%s has no barrier axe knows of in light or dark, and does not scroll sideways', async (path) => {
    const page = await it.context.newPage();
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    await page.goto(`${it.server.url}${path}`);
    if (path.startsWith('/settings')) await live(page);
    if (path.endsWith('/access')) await press(page, 'Create a token');
    if (path.endsWith('/audit')) {
      await press(page, 'Check the chain');
      await page.getByText('The chain is whole').waitFor();
      await page.locator('summary').first().click();
    }
    if (/\/api\/[a-z]+$/.test(path)) await page.evaluate(unfoldAll);
    expect(await barriersInBothThemes(page)).toEqual([]);
    const overflows = await page.evaluate(
      () =>
        [document.documentElement, ...document.querySelectorAll('main, nav')].filter(
          (box) => box.scrollWidth > box.clientWidth,
        ).length,
    );
    expect(overflows).toBe(0);
    await page.close();
  });
});

test('the audit says at its end which entries were removed, and from where its chain was checked', async () => {
  const page = await it.open('/settings/audit');
  await live(page);
  await removeAuditLater(it.server, 3);
  await press(page, 'Look again');
  await page.getByText(/^Entries up to number \d+ were removed by their age, the last on \d+ \w+ \d{4}\.$/).waitFor();
  await press(page, 'Check the chain');
  const said = page.getByRole('status').filter({ hasText: 'The chain is whole' });
  await said.getByText(/^It begins with number \d+: older entries were removed by their age/).waitFor();
  await page.getByLabel('Who').fill('Nobody');
  await page.getByText('No entry that is left is like this.').waitFor();
  await page.close();
});

/** In a page. */
function unfoldAll(): void {
  for (const box of document.querySelectorAll('details')) box.open = true;
}

test('the API is told to be read: each route with what it takes and answers, and tools find the same', async () => {
  const page = await it.open('/settings/api');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'an OpenAPI 3.1 document' }).click();
  const told = JSON.parse(await readFile(await (await download).path(), 'utf8'));
  expect(Object.keys(told.paths)).toContain('/api/v1/sessions/{sessionId}/messages');
  // an address that leads to a route opens it
  await page.getByRole('link', { name: /^POST\s*\/sessions\/{sessionId}\/messages/ }).click();
  const route = page.locator('#postSessionsBySessionIdMessages');
  await expect.poll(() => route.getByText('From a shell').isVisible()).toBe(true);
  expect(await route.textContent()).toMatch(/text[\s\S]*clientId[\s\S]*202[\s\S]*MessageAnswer/);
  const command = (await route.locator('code').last().textContent()) ?? '';
  expect(command).toContain('curl "$INTERLUDE_URL/api/v1/sessions/SESSION_ID/messages" \\\n  -X POST');
  await route.getByRole('link', { name: 'MessageAnswer' }).click();
  await page.getByText('How far it has come by now.').waitFor();
  expect(await page.getByRole('heading', { name: 'MessageAnswer' }).count()).toBe(1);
  await page.close();
});

test('a viewer is told who they are and whom to ask, and sees nothing of the rest', async () => {
  await joinAsViewer();
  const { hostname } = new URL(it.server.url);
  const context = await it.context.browser()?.newContext();
  if (context === undefined) throw new Error('there is no browser');
  await context.addCookies([{ name: 'interlude', value: VIEWER, domain: hostname, path: '/', httpOnly: true }]);
  const page = await context.newPage();
  await page.goto(`${it.server.url}/settings`);
  await page.getByRole('heading', { name: 'Tom' }).waitFor();
  await page.getByText('Viewer: may read everything here, and change nothing. For more, ask an admin: Lena.').waitFor();
  const places = page.getByRole('navigation', { name: 'Settings' }).getByRole('link');
  expect(await places.allTextContents()).toEqual(['You', 'API']);
  await page.setViewportSize({ width: 360, height: 800 });
  await page.goto(`${it.server.url}/sessions/work`);
  await page.getByText('You can read here. To write, ask an admin for the operator role.').waitFor();
  expect(await page.getByRole('textbox', { name: /^Message to/ }).count()).toBe(0);
  await page.getByRole('link', { name: 'Settings and sign-out' }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).waitFor();
  for (const [path, read] of Object.entries({
    access: 'credentials',
    members: 'members',
    audit: 'audit',
    storage: 'storage',
  })) {
    await page.goto(`${it.server.url}/settings/${path}`);
    await page.getByText('Only admins see this page. Ask an admin: Lena.').waitFor();
    expect(await page.evaluate((of) => fetch(`/api/v1/${of}`).then(({ status }) => status), read)).toBe(403);
  }
  await context.close();
});

test('a member’s role is changed on the page, and they are blocked, which ends their sign-in', async () => {
  const page = await it.open('/settings/members');
  await live(page);
  const row = page.getByRole('table', { name: 'Members' }).getByRole('row', { name: /^Tom/ });
  await row.getByRole('combobox', { name: 'Role of Tom' }).selectOption('operator');
  const me = () =>
    fetch(`${it.server.url}/api/v1/me`, {
      headers: { cookie: `interlude=${VIEWER}`, 'sec-fetch-site': 'same-origin' },
    });
  await expect.poll(async () => (await (await me()).json()).role).toBe('operator');
  await row.getByRole('button', { name: 'Block Tom' }).click();
  const sure = row.getByRole('button', { name: 'Block Tom: sure?' });
  await expect.poll(() => sure.getAttribute('aria-disabled')).toBe('false');
  await sure.click();
  await row.getByText('blocked since').waitFor();
  await expect.poll(async () => (await me()).status).toBe(401);
  await page.close();
});

test('a browser at a loopback address is led to one of our own, and signs in there', async () => {
  const context = await it.context.browser()?.newContext();
  if (context === undefined) throw new Error('there is no browser');
  const page = await context.newPage();
  await page.goto(`${it.server.url}/signed-out?next=/inbox`);
  const { port } = new URL(it.server.url);
  await page.getByText('this browser knows Interlude by an address of its own').waitFor();
  const name = `${readFileSync(join(it.server.dataDir, 'local-name'), 'utf8').trim()}.localhost`;
  expect(await page.content()).not.toContain(name);
  await page.goto(`http://${name}:${port}/signed-out?next=/inbox`);
  await page.getByLabel('Token').fill('not the right one');
  await press(page, 'Sign in');
  await page.getByText('That is not this server’s token').waitFor();
  await page.getByLabel('Token').fill(it.server.token);
  await press(page, 'Sign in');
  await page.waitForURL(`http://${name}:${port}/inbox`);
  await live(page);
  expect((await context.cookies()).map(({ domain }) => domain)).toEqual([name]);
  await page.goto(`http://${name}:${port}/settings`);
  await press(page, 'Sign out');
  await page.waitForURL(`http://${name}:${port}/signed-out?reason=ended`);
  await page.goto(`http://${name}:${port}/agents`);
  await page.waitForURL(`http://${name}:${port}/signed-out?next=%2Fagents`);
  await context.close();
});

/** Lena, an admin, and Tom, who is signed in as a viewer. */
async function joinAsViewer(): Promise<void> {
  const database = createClient({ url: `file:${join(it.server.dataDir, 'interlude.db')}` });
  const now = Date.now();
  const member = `INSERT INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
    VALUES (?1, 'https://id.example', ?1, ?1, ?2, ?3, ?3)`;
  const credential = `INSERT INTO credentials (id, kind, hash, name, role, scope, member_id, created_at, last_used_at, idle_ms)
    VALUES ('session-tom', 'session', ?1, 'Tom', 'viewer', '{"kind":"everything"}', 'Tom', ?2, ?2, 3600000)`;
  await database.batch([
    { sql: member, args: ['Lena', 'admin', now] },
    { sql: member, args: ['Tom', 'viewer', now] },
    { sql: credential, args: [secretHash(VIEWER), now] },
    'UPDATE access SET version = version + 1',
  ]);
  database.close();
}

/** Presses Tab until what has the focus is called so. */
async function tabTo(page: Page, name: string, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press(key);
    const focused = await page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
    if (focused === name) return;
  }
  throw new Error(`Tab does not lead to ${name}`);
}
