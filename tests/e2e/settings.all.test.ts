import { readFile } from 'node:fs/promises';
import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { beforeAll, expect, test } from 'vitest';
import { SETTINGS, SETTINGS_PAGES } from '@/components/settings/settings-index';
import { EventWriter } from '../support/event-writer';
import { removeAuditLater } from '../support/server-data';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(() => visitOwn({ env: { INTERLUDE_SESSION_IDLE_HOURS: '8' } }));
beforeAll(async () => {
  await new EventWriter(site.server, 'builder').write('work', userTurn('r1', 'Build it', 'It builds.'));
});

test('the settings page shows when an unused sign-in ends, and ends those of other browsers', async () => {
  await site.context.request.get(`${site.server.url}/sign-in?token=${encodeURIComponent(site.server.token)}`, {
    maxRedirects: 0,
  });
  const page = await site.open('/settings');
  await live(page);
  await page.getByText('Ends after 8 hours without use').waitFor();
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click();
  const confirm = page.getByRole('button', { name: /^End \d+ sign-ins?\?$/ });
  await expect.poll(() => confirm.getAttribute('aria-disabled')).toBe('false');
  await confirm.click();
  await page.getByText('You aren’t signed in anywhere else.').waitFor();
  await page.reload();
  await live(page);
  await site.leave(page);
});

test('the audit page shows which entries were removed after their retention period', async () => {
  const page = await site.open('/settings/audit');
  await live(page);
  await removeAuditLater(site.server, 3);
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByText(/^Retention removed the entries up to number \d+, most recently on \d+ \w+ \d{4}\.$/).waitFor();
  await page.getByRole('button', { name: 'Verify the log' }).click();
  const checked = page.getByRole('status').filter({ hasText: 'The chain is intact' });
  await checked.getByText(/^It starts at number \d+: retention removed older entries/).waitFor();
  await site.leave(page);
});

test('the API page offers its OpenAPI document as a download', async () => {
  const page = await site.open('/settings/api');
  await live(page);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'the OpenAPI 3.1 document' }).click();
  const document = JSON.parse(await readFile(await (await download).path(), 'utf8')) as OpenApiDocument;
  expect(Object.keys(document.paths)).toContain('/api/v1/sessions/{sessionId}/messages');
  await site.leave(page);
});

test('every setting of the search is on its page', async () => {
  for (const { href } of SETTINGS_PAGES) {
    const page = await site.open(href);
    await live(page);
    const missing = () =>
      page.evaluate(
        (ids) => ids.filter((id) => document.getElementById(id) === null),
        SETTINGS.flatMap((setting) => {
          const [path, id] = setting.href.split('#');
          return path === href && id !== undefined ? id : [];
        }),
      );
    await expect.poll(missing).toEqual([]);
    await site.leave(page);
  }
});

test('the settings page signs out with one press on a phone', async () => {
  const page = await site.load('/settings');
  await page.setViewportSize({ width: 360, height: 800 });
  await live(page);
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.waitForURL('**/signed-out?reason=ended');
});
