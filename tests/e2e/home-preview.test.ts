import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter, permissionAsked, turnFailed, turnStarted } from '../support/event-writer';
import { press } from '../support/press';
import { isFocused, live } from '../support/transcript-page';
import { taskStarted, userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';
import { requestResolved } from '../support/wire-runner';

const QUIET = 30;
const TITLE = 'List the files that the last build of the docs has left behind in the cache of this folder';

const site = perFile(visitOwn);
let agent: EventWriter;
beforeAll(async () => {
  agent = new EventWriter(site.server, 'previews');
  const quiet = Array.from({ length: QUIET }, (_, index) => ({
    sessionId: `quiet-${index}`,
    events: userTurn('r1', `Errand ${index}`, `Ran errand ${index}.`),
  }));
  await agent.writeMany(quiet);
  await agent.write('builds', [
    ...userTurn('r1', 'Build the docs', [...userTurn('r0', '', 'I started **the build**.').slice(4, 7)]),
    taskStarted('b1', 'npm run docs'),
    wrote('page 1 of 9\n'),
  ]);
  await agent.write('asks', [
    ...userTurn('r1', 'Clean up', 'I cleared the cache.'),
    turnStarted('r2'),
    permissionAsked('p1', TITLE),
  ]);
  await agent.staysInTouch();
});

function wrote(text: string): AgUiEvent {
  return { type: 'CUSTOM', name: 'task:output', value: { task_id: 'b1', text } };
}

const row = (page: Page, id: string) => page.locator(`[data-session-row="${id}"]`);
const preview = (page: Page, title: string) => page.getByRole('region', { name: `Preview of ${title}` });
/** Requests for the last turns of previewed sessions. */
function readsOf(page: Page): string[] {
  const reads: string[] = [];
  page.on('request', (request) => {
    const [, id] = /sessions\/([^/]+)\/transcript\?limit=2$/.exec(request.url()) ?? [];
    if (id !== undefined) reads.push(id);
  });
  return reads;
}

test('the preview shows the most urgent session, then follows the keys and the pointer', async () => {
  const page = await site.load('/');
  await live(page);
  const reads = readsOf(page);
  const asks = preview(page, 'Clean up');
  await asks.getByText('Needs input').waitFor();
  await asks.getByText('I cleared the cache.').waitFor();
  await asks.getByRole('region', { name: `Permission: “${TITLE}”` }).waitFor();

  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const builds = preview(page, 'Build the docs');
  await builds.getByText('Waiting on background, 1 task running').waitFor();
  await builds.getByText('the build').waitFor();
  const output = builds.getByRole('region', { name: 'Output of “npm run docs”' });
  await output.getByText('page 1 of 9').waitFor();
  await agent.write('builds', [wrote('page 2 of 9\n')]);
  await output.getByText('page 2 of 9').waitFor();
  expect(await isFocused(row(page, 'builds'))).toBe(true);

  // A pointer that passes over a row chooses nothing.
  const list = await row(page, 'builds').boundingBox();
  await page.mouse.move((list?.x ?? 0) + 100, (list?.y ?? 0) + 10);
  await row(page, 'asks').hover();
  await asks.waitFor();
  await builds.waitFor({ state: 'detached' });

  // Keys that are pressed quickly pass over rows without reading them.
  reads.length = 0;
  await Promise.all(Array.from({ length: QUIET }, () => page.keyboard.press('j')));
  await preview(page, 'Errand 0').getByText('Ran errand 0.').waitFor();
  expect(reads.length).toBeLessThanOrEqual(5);
  await row(page, 'quiet-1').click();
  await page.waitForURL('**/sessions/quiet-1');
  await page.close();
});

test('a request shows its keys only once they act', async () => {
  const page = await site.load('/');
  const isOffAtHint = await page.evaluate(
    () =>
      new Promise<string | null>((resolve) => {
        const look = () => {
          const card = document.querySelector<HTMLElement>('[data-preview] [data-action]');
          card?.focus();
          const hint = [...(card?.querySelectorAll('kbd') ?? [])].find(({ textContent }) => textContent === 'a');
          if (hint === undefined || getComputedStyle(hint).visibility === 'hidden') requestAnimationFrame(look);
          else resolve(card?.querySelector('[aria-keyshortcuts=a]')?.getAttribute('aria-disabled') ?? null);
        };
        look();
      }),
  );
  expect(isOffAtHint).toBe('false');
  await page.close();
});

test('a permission is answered in the preview, which Tab reaches and Escape leaves', async () => {
  const page = await site.load('/');
  await live(page);
  const asks = preview(page, 'Clean up');
  await row(page, 'asks').focus();
  await page.keyboard.press('Tab');
  expect(await isFocused(asks)).toBe(true);
  await page.keyboard.press('Escape');
  expect(await isFocused(row(page, 'asks'))).toBe(true);
  expect(await violationsInBothThemes(page)).toEqual([]);

  await press(asks.getByRole('button', { name: 'Allow', exact: true }));
  await agent.write('asks', [requestResolved('p1', 'allowed')]);
  await asks.getByText('Working').first().waitFor();
  await asks.getByRole('button', { name: 'Allow', exact: true }).waitFor({ state: 'detached' });
  const closed = asks.getByRole('region', { name: `Permission: “${TITLE}”` });
  const outcomeText = closed.getByText(/^Allowed .*after/);
  await outcomeText.waitFor();
  const title = await closed.getByText(`“${TITLE}”`).boundingBox();
  const outcome = await outcomeText.boundingBox();
  // below the title, at the same edge
  expect([outcome?.x, (outcome?.y ?? 0) - (title?.y ?? 0) >= (title?.height ?? 0)]).toEqual([title?.x, true]);
  await expect.poll(() => isFocused(row(page, 'asks'))).toBe(true);
  await page.close();
});

test('below 1280 px the list has the page to itself, and no code of the preview is loaded', async () => {
  const page = await site.context.newPage();
  await page.setViewportSize({ width: 1024, height: 800 });
  const reads = readsOf(page);
  const scripts: Promise<string>[] = [];
  page.on('response', (response) => {
    if (response.url().endsWith('.js')) scripts.push(response.text().catch(() => ''));
  });
  const hasCode = async () => (await Promise.all(scripts)).some((text) => text.includes('No session selected'));
  await page.goto(site.server.url);
  await live(page);
  await row(page, 'asks').focus();
  // Loads when the page is idle, as everything else that could load by itself.
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).waitFor();
  expect([reads, await hasCode()]).toEqual([[], false]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await preview(page, 'Clean up').waitFor();
  expect(await hasCode()).toBe(true);
  await page.close();
});

test('beside the inbox, the preview shows the chosen row’s session without the request that the row answers', async () => {
  await agent.write('fails', [...userTurn('r1', 'Tidy up', 'It is tidy.'), ...turnFailed('r2', 'No credit left')]);
  await agent.write('asks-here', [
    ...userTurn('r1', 'Clear the cache', 'There are two caches.'),
    turnStarted('r2'),
    permissionAsked('p2', 'Clear both'),
  ]);
  const page = await site.context.newPage();
  await page.setViewportSize({ width: 1600, height: 900 });
  await page.goto(`${site.server.url}/inbox`);
  await live(page);
  const inboxRow = (id: string) => page.locator(`[data-inbox-session="${id}"]`);
  await inboxRow('asks-here').focus();
  const asks = preview(page, 'Clear the cache');
  await asks.getByText('There are two caches.').waitFor();
  expect(await asks.getByRole('region', { name: /^Permission/ }).count()).toBe(0);
  await page.keyboard.press('j');
  const failed = preview(page, 'Tidy up');
  await failed.getByText('It is tidy.').waitFor();
  // Tab leads through the row's own controls to the pane, and Esc back to the row.
  await page.keyboard.press('Tab');
  expect(await isFocused(page.getByRole('checkbox', { name: 'Select “No credit left”' }))).toBe(true);
  await expect
    .poll(async () => {
      await page.keyboard.press('Tab');
      return isFocused(failed);
    })
    .toBe(true);
  await page.keyboard.press('Escape');
  expect(await isFocused(inboxRow('fails'))).toBe(true);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.close();
});
