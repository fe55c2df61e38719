import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** More than two pages of the list. */
const SESSIONS = 230;

let it: OwnVisit;
let crowd: EventWriter;
beforeAll(async () => {
  it = await visitOwn();
  crowd = new EventWriter(it.server, 'crowd');
  await crowd.write('first-of-all', userTurn('r1', 'Survey the old quarry', 'Nothing but stone.'));
  await crowd.writeMany(
    Array.from({ length: SESSIONS }, (_, at) => ({
      sessionId: `crowd-${at}`,
      events: userTurn('r1', `Errand ${at}`, 'Ran it.'),
    })),
  );
  await new EventWriter(it.server, 'loner').write('broken', [
    { type: 'RUN_STARTED', threadId: 'broken', runId: 'r1' },
    { type: 'RUN_ERROR', threadId: 'broken', runId: 'r1', message: 'The quarry is flooded' },
  ]);
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const field = (page: Page) => page.getByRole('searchbox', { name: 'Search sessions' });
const rows = (page: Page) => page.locator('[data-session-row]');
const ids = (page: Page) =>
  rows(page).evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.sessionRow ?? '').sort());

test('a session on no page that is loaded is found, is kept current, and opens; the address says what was looked for', async () => {
  const page = await it.open('/');
  await live(page);
  expect(await page.locator('[data-session-row="first-of-all"]').count()).toBe(0);
  await field(page).fill('QUARRY');
  await expect.poll(() => ids(page)).toEqual(['broken', 'first-of-all']);
  await expect.poll(() => new URL(page.url()).search).toBe('?q=QUARRY');

  // what is found lives on: a word more, and it fails
  await crowd.write('first-of-all', [
    { type: 'RUN_STARTED', threadId: 'first-of-all', runId: 'r2' },
    { type: 'RUN_ERROR', threadId: 'first-of-all', runId: 'r2', message: 'Rain in the quarry' },
  ]);
  await page.getByText('Rain in the quarry').waitFor();

  const other = await it.open('/?q=quarry+rain');
  await expect.poll(() => ids(other)).toEqual(['first-of-all']);
  expect(await field(other).inputValue()).toBe('quarry rain');
  await other.locator('[data-session-row="first-of-all"]').click();
  await other.waitForURL('**/sessions/first-of-all');
  await other.goBack();
  await expect.poll(() => ids(other)).toEqual(['first-of-all']);
  await other.close();
  await page.close();
});

test('states narrow the list down to what the server has of them, one step back at a time', async () => {
  const page = await it.open('/');
  await live(page);
  const only = page.getByRole('group', { name: 'Show only' });
  await only.getByText('Failed').click();
  await expect.poll(() => new URL(page.url()).search).toBe('?state=failed');
  await expect.poll(async () => (await ids(page)).includes('broken')).toBe(true);
  expect((await ids(page)).some((id) => id.startsWith('crowd-'))).toBe(false);
  expect(await only.getByRole('checkbox', { name: /^Failed/ }).isChecked()).toBe(true);
  await field(page).fill('flooded');
  await expect.poll(() => ids(page)).toEqual(['broken']);
  await only.getByText('Failed').click();
  await only.getByText('Idle').click();
  await page.getByText('No session is like this.').waitFor();
  await page.getByRole('button', { name: 'Show every session' }).click();
  await expect.poll(() => rows(page).count()).toBeGreaterThan(50);
  expect(new URL(page.url()).search).toBe('');
  await page.goBack();
  await page.getByText('No session is like this.').waitFor();
  expect(await field(page).inputValue()).toBe('flooded');
  await page.close();
});

test('all that is found can be reached, page by page, and is counted by the server', async () => {
  const page = await it.open('/?q=errand');
  await live(page);
  await page.getByText(`of ${SESSIONS} sessions found`).waitFor();
  for (let more = 0; more < 2; more += 1) {
    const before = await rows(page).count();
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => rows(page).count()).toBeGreaterThan(before);
  }
  await expect.poll(() => rows(page).count()).toBe(SESSIONS);
  await page.getByText('sessions found').waitFor({ state: 'hidden' });
  await page.close();
});

test('the sessions of one agent are listed by its name alone, until that is taken away', async () => {
  const page = await it.open('/?agent=crowd');
  await live(page);
  await page.getByText(`of ${SESSIONS + 1} sessions found`).waitFor();
  expect((await ids(page)).includes('broken')).toBe(false);
  await page.getByRole('button', { name: 'Sessions of crowd only: show those of every agent' }).click();
  await expect.poll(async () => (await ids(page)).includes('broken')).toBe(true);
  expect(new URL(page.url()).search).toBe('');
  await page.close();
});

test('a search of sessions that can’t be made says so, and is made again', async () => {
  const page = await it.open('/');
  await live(page);
  const asked = /\/api\/v1\/sessions\?q=/;
  await page.route(asked, (route) => route.fulfill({ status: 503, json: { error: { message: 'Busy.' } } }));
  await page.getByRole('searchbox', { name: 'Search sessions' }).fill('stone');
  await page.getByText('Busy.').waitFor();
  it.complaints.splice(0, Number.POSITIVE_INFINITY, ...it.complaints.filter((text) => !/status of 503/.test(text)));
  await page.unroute(asked);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Busy.').waitFor({ state: 'hidden' });
  await page.close();
});

test('agents say how their sessions stand by what the server has counted, and are found by name', async () => {
  const page = await it.open('/agents');
  await live(page);
  const agents = page.locator('#content').getByRole('row');
  await agents
    .filter({ hasText: 'crowd' })
    .getByText(`1 of ${SESSIONS + 1}`)
    .waitFor();
  await page.getByRole('searchbox', { name: 'Search agents' }).fill('LON');
  await expect.poll(() => agents.filter({ hasText: 'crowd' }).count()).toBe(0);
  await agents.filter({ hasText: 'loner' }).waitFor();
  await page.getByRole('searchbox', { name: 'Search agents' }).fill('nobody');
  await page.getByText('No agent is like this.').waitFor();
  await page.getByRole('button', { name: 'Show every agent' }).click();
  await agents.filter({ hasText: 'crowd' }).waitFor();
  await page.close();
});

test.each([360, 1280])('at %i px what is found and filtered has no barrier axe knows of', async (width) => {
  const page = await it.open('/?q=quarry&state=failed&agent=crowd');
  await page.setViewportSize({ width, height: 800 });
  await live(page);
  await expect.poll(() => ids(page)).toEqual(['first-of-all']);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  expect(await barriersInBothThemes(page)).toEqual([]);
  await page.close();
});
