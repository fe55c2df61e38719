import type { InboxList } from '@interlude/protocol/inbox';
import type { RequestDetail } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LAST_CHECK_KEY } from '@/components/inbox/notices';
import type { EventWriter } from '../support/event-writer';
import { permissionAsked, turnFailed, turnStarted, writeInbox } from '../support/event-writer';
import { press, untilPressable } from '../support/press';
import { live } from '../support/transcript-page';
import { type ChromiumProfile, openProfile, perFile, visitOwn } from '../support/visit';
import { requestOpened, requestResolved } from '../support/wire-runner';

const site = perFile(visitOwn);
/** The browser of a second person. */
let other: ChromiumProfile;
let agent: EventWriter;

beforeAll(async () => {
  other = await openProfile();
  agent = await writeInbox(site.server);
});
afterAll(async () => {
  await other.close();
});

const rows = (page: Page) => page.locator('[data-inbox-row]');
const group = (page: Page, name: string) => page.getByRole('region', { name: new RegExp(`^${name}`) });

async function otherWindow(): Promise<Page> {
  const page = await other.context.newPage();
  await page.goto(`${site.server.url}/sign-in?token=${site.server.token}&next=/inbox`);
  await live(page);
  return page;
}

test('an item links to its subject, shows its claimant to everyone, and stays in place until the pointer leaves', async () => {
  const mine = await site.load('/inbox');
  await live(mine);
  const requestLink = group(mine, 'Needs you').getByRole('link', { name: /^Bash ls “List the files”$/ });
  const texts = (await rows(mine).allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '));
  expect(texts).toEqual([
    expect.stringMatching(/^Bash ?ls “List the files” .* List the files builder/),
    expect.stringMatching(/^“No credit left” .* Mend the login test builder/),
  ]);
  await requestLink.click();
  await mine.getByRole('region', { name: 'Permission: “List the files”' }).waitFor();
  await mine.goBack();

  const theirs = await otherWindow();
  const owner = { authorization: `Bearer ${site.server.token}` };
  const created = await mine.request.post(`${site.server.url}/api/v1/tokens`, {
    headers: owner,
    data: { role: 'operator', name: 'Ada' },
  });
  const { token } = await created.json();
  const [item] = (await site.read<InboxList>('/inbox?kind=permission')).items;
  await mine.request.post(`${site.server.url}/api/v1/inbox/marks`, {
    headers: { authorization: `Bearer ${token}` },
    data: { ids: [item?.id], mark: 'claimed' },
  });
  for (const page of [mine, theirs]) {
    await page.mouse.move(0, 0);
    await page.getByRole('button', { name: /^Seen, snoozed or claimed/, expanded: false }).click();
    await page.getByText('Claimed by Ada').waitFor();
  }
  await theirs.getByRole('button', { name: 'Take over: “List the files”' }).click();
  // Both signed in with this machine's own link, so they are the same person.
  for (const page of [mine, theirs]) await page.getByText('Claimed by you').waitFor();
  await agent.write('asks', [requestResolved('q1', 'allowed')]);
  for (const page of [mine, theirs]) {
    await rows(page).getByText('Done').waitFor();
    await page.mouse.move(0, 0);
    await requestLink.waitFor({ state: 'detached' });
  }
  await theirs.close();
  await site.leave(mine);
});

test('a failure is snoozed, woken and seen by keyboard alone, and is then seen everywhere', async () => {
  const page = await site.open('/inbox');
  const theirs = await otherWindow();
  await page.getByRole('button', { name: 'Snooze: “No credit left”' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Snooze: “No credit left”' }).getByText('For an hour').waitFor();
  await page.keyboard.press('Enter');
  await group(theirs, 'Seen, snoozed or claimed').getByText('No credit left').waitFor();
  await page.getByRole('button', { name: 'Wake: “No credit left”' }).focus();
  await page.keyboard.press('Enter');
  await group(theirs, 'Needs you').getByText('No credit left').waitFor();
  await page.getByRole('button', { name: 'Seen: “No credit left”' }).focus();
  await page.keyboard.press('Enter');
  await theirs.getByText(/^You’re all caught up\./).waitFor();
  // The row keeps its place and the focus until the reader moves on.
  await rows(page).getByText('Done').waitFor();
  expect(await page.evaluate(() => document.activeElement?.getAttribute('data-inbox-row'))).toBeTruthy();
  await page.getByRole('link', { name: /^Inbox/ }).focus();
  await page.getByText(/^You’re all caught up\./).waitFor();
  await theirs.close();
  await site.leave(page);
  const home = await site.open('/');
  await group(home, 'Failed, seen').waitFor();
  await site.leave(home);
});

test('what needs the reader is counted in the tab and beside the inbox link on every page until it is seen', async () => {
  for (const at of [0, 1, 2, 3]) {
    await agent.write(`asks-${at}`, [turnStarted('r'), permissionAsked(`m${at}`, `Permission ${at}`)]);
  }
  await agent.write('fails', turnFailed('r3', 'Still no credit'));
  const page = await site.open('/agents');
  await page.getByRole('link', { name: 'Inbox new: 5' }).waitFor();
  await expect.poll(() => page.title()).toMatch(/^\(5\) Agents/);
  const icon = () => page.locator('link[rel="icon"]').getAttribute('href');
  await expect.poll(icon).toBe('/icon-news.svg');
  expect((await page.request.get(`${site.server.url}/icon-news.svg`)).headers()['content-type']).toContain('svg');
  const inbox = await site.read<InboxList>('/inbox');
  const ids = inbox.items.map(({ id }) => id);
  const marked = await page.request.post(`${site.server.url}/api/v1/inbox/marks`, {
    headers: { authorization: `Bearer ${site.server.token}` },
    data: { ids, mark: 'seen' },
  });
  expect(marked.status()).toBe(200);
  await page.getByRole('link', { name: 'Inbox', exact: true }).waitFor();
  await expect.poll(() => page.title()).toMatch(/^Agents/);
  expect(await icon()).not.toBe('/icon-news.svg');
  await site.leave(page);
});

test('"r" moves to the next request from any page, and a letter answers it in its inbox row', async () => {
  const page = await site.open('/agents');
  // The shortcut loads once the page is idle.
  await expect
    .poll(async () => {
      await page.keyboard.press('r');
      return page.url();
    })
    .toMatch(/\/sessions\/asks-0#request-/);
  await site.leave(page);
  const inbox = await site.load('/inbox');
  await live(inbox);
  await inbox.keyboard.press('r');
  const card = inbox.getByRole('region', { name: 'Permission: “Permission 0”' });
  await card.getByRole('button', { name: 'Allow' }).waitFor();
  expect(await inbox.evaluate(() => document.activeElement?.hasAttribute('data-inbox-row'))).toBe(true);
  await card.getByText('d', { exact: true }).waitFor();
  await untilPressable(card.getByRole('button', { name: 'Deny', exact: true }));
  await inbox.keyboard.press('d');
  await card.getByText('Denied. Sending to the agent…').waitFor();
  await inbox.close();
});

test('permissions whose whole input is on the row are allowed there, one by one or together', async () => {
  const page = await site.load('/inbox');
  await live(page);
  // The marks lie over the owner, and take no width from it.
  const ends = await rows(page)
    .filter({ hasText: 'Permission 1' })
    .evaluate((row) => {
      const end = (selector: string) => row.querySelector(selector)?.getBoundingClientRect().right ?? 0;
      return { owner: end(':has(> a[href="/sessions/asks-1"])'), marks: end('[aria-label^="Snooze"]') };
    });
  expect(ends.owner).toBeGreaterThanOrEqual(ends.marks);
  await press(page.getByRole('button', { name: 'Allow: “Permission 1”' }));
  await rows(page).getByText('Answer sent').waitFor();
  for (const at of [2, 3]) await page.getByRole('checkbox', { name: `Select “Permission ${at}”` }).check();
  await press(page.getByRole('button', { name: 'Allow these 2' }));
  await page.getByText('Allowed. Sending the answers…').waitFor();
  await expect.poll(() => rows(page).getByText('Answer sent').count()).toBe(3);
  const answer = async () => (await site.read<RequestDetail>('/sessions/asks-3/requests/m3')).request.answer;
  await expect.poll(answer).toMatchObject({ behavior: 'allow' });
  for (const at of [0, 1, 2, 3]) await agent.write(`asks-${at}`, [requestResolved(`m${at}`, 'allowed')]);
  await page.close();
});

test('a longer input opens in place, and is allowed once all of it was in sight', async () => {
  const command = `echo ${'x'.repeat(3_000)}`;
  const value = { request_id: 'long', kind: 'permission' as const, tool_name: 'Bash', title: 'Write a lot' };
  await agent.write('asks-much', [turnStarted('r'), requestOpened({ ...value, input: { command } })]);
  const page = await site.load('/inbox');
  await live(page);
  await page.locator('[data-inbox-row="session asks-much"]').waitFor();
  expect(await page.getByRole('button', { name: 'Allow: “Write a lot”' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Review: “Write a lot”' }).click();
  const card = page.getByRole('region', { name: 'Permission: “Write a lot”' });
  const input = card.getByRole('group', { name: 'Input' });
  await input.scrollIntoViewIfNeeded();
  expect(await card.getByRole('button', { name: 'Allow', exact: true }).getAttribute('aria-disabled')).toBe('true');
  await expect
    .poll(async () => {
      await input.evaluate((box) => box.scrollBy(0, 150));
      return card.getByRole('button', { name: 'Allow', exact: true }).getAttribute('aria-disabled');
    })
    .toBe('false');
  await agent.write('asks-much', [requestResolved('long', 'denied')]);
  await page.close();
});

test('five permissions are answered with six keys, and a review ends at the end', async () => {
  for (const at of [0, 1, 2, 3, 4]) {
    await agent.write(`review-${at}`, [turnStarted('r'), permissionAsked(`v${at}`, `Step ${at}`)]);
  }
  const page = await site.load('/inbox?kind=permission');
  await live(page);
  await rows(page).nth(4).waitFor();
  await page.keyboard.press('R');
  const review = page.getByRole('dialog', { name: 'Review requests' });
  await review.getByText('a allow').waitFor();
  for (const at of [0, 1, 2, 3, 4]) {
    const card = review.getByRole('region', { name: `Permission: “Step ${at}”` });
    await untilPressable(card.getByRole('button', { name: 'Allow', exact: true }));
    await page.keyboard.press('a');
  }
  await review.getByText('No open requests left.').waitFor();
  await page.keyboard.press('Enter');
  await review.waitFor({ state: 'detached' });
  for (const at of [0, 4]) {
    const answer = async () =>
      (await site.read<RequestDetail>(`/sessions/review-${at}/requests/v${at}`)).request.answer;
    await expect.poll(answer).toMatchObject({ behavior: 'allow' });
  }
  await page.close();
});

test('a review answers a question by its digits, and says when it ignores a key', async () => {
  const questions = [{ question: 'Which port?', options: [{ label: '4319' }, { label: '8080' }] }];
  const asked = { request_id: 'port', kind: 'question' as const, title: 'Which port?', input: { questions } };
  await agent.write('asks-port', [turnStarted('r'), requestOpened(asked)]);
  const value = { request_id: 'opens', kind: 'permission' as const, tool_name: 'Bash', title: 'Open the port' };
  const input = { command: `open ${'8080 '.repeat(1_000)}` };
  await agent.write('opens-port', [turnStarted('r'), requestOpened({ ...value, input })]);
  const page = await site.load('/inbox');
  await live(page);
  await page.getByRole('searchbox', { name: 'Search the inbox' }).fill('port');
  await expect.poll(() => rows(page).count()).toBe(2);
  await page.keyboard.press('Escape');
  await page.keyboard.press('R');
  const review = page.getByRole('dialog', { name: 'Review requests' });
  await review.getByRole('region', { name: 'Permission: “Open the port”' }).waitFor();
  await page.keyboard.press('a');
  await review.getByText('Not answered yet.').waitFor();
  await page.keyboard.press('j');
  await review.getByRole('radio', { name: '8080' }).waitFor();
  await page.keyboard.press('2');
  await untilPressable(review.getByRole('button', { name: 'Answer' }));
  await page.keyboard.press('Enter');
  const request = async (session: string, id: string) =>
    (await site.read<RequestDetail>(`/sessions/${session}/requests/${id}`)).request;
  await expect.poll(async () => (await request('asks-port', 'port')).answer).not.toBeNull();
  expect((await request('opens-port', 'opens')).answer).toBeNull();
  await agent.write('asks-port', [requestResolved('port', 'answered')]);
  await agent.write('opens-port', [requestResolved('opens', 'denied')]);
  await page.close();
});

test('five permissions are answered in their rows as fast as the keys are pressed, and Esc leads back to a row', async () => {
  const all = [0, 1, 2, 3, 4];
  for (const at of all) await agent.write(`quick-${at}`, [turnStarted('r'), permissionAsked(`k${at}`, `Quick ${at}`)]);
  const page = await site.load('/inbox?kind=permission');
  await live(page);
  await page.getByRole('searchbox', { name: 'Search the inbox' }).fill('Quick');
  await expect.poll(() => rows(page).count()).toBe(5);
  await page.keyboard.press('Escape');
  for (const key of ['j', 'a', 'a', 'a', 'a', 'a']) await page.keyboard.press(key);
  await expect.poll(() => rows(page).getByText('Answer sent').count()).toBe(5);
  const focused = page.locator(':focus');
  const row = await focused.getAttribute('data-inbox-row');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/sessions/quick-*');
  // The shortcut loads once the page is idle.
  await expect
    .poll(async () => {
      await page.keyboard.press('Escape');
      return page.url();
    })
    .toMatch(/\/inbox\?kind=permission$/);
  await expect.poll(() => focused.getAttribute('data-inbox-row')).toBe(row);
  for (const at of all) await agent.write(`quick-${at}`, [requestResolved(`k${at}`, 'allowed')]);
  await page.close();
});

test('the desktop notifies once for all tabs, and the notification closes when the item is answered elsewhere', async () => {
  // Any open tab may be the one that notifies.
  for (const page of site.context.pages()) await page.close();
  // Records the browser's notifications and their closing.
  await site.context.addInitScript(() => {
    const notices: { title: string; isClosed: boolean }[] = [];
    const Real = Notification;
    class Recorded extends Real {
      constructor(title: string, options?: NotificationOptions) {
        super(title, options);
        const one = { title, isClosed: false };
        notices.push(one);
        const close = this.close.bind(this);
        this.close = () => {
          one.isClosed = true;
          close();
        };
      }
    }
    Object.assign(window, { Notification: Recorded, made: notices, asked: 0 });
    // A headless browser may deny the permission granted below.
    const hasDesktop = Real.permission === 'granted';
    Object.defineProperty(Recorded, 'permission', { get: () => (hasDesktop ? Real.permission : 'granted') });
    Recorded.requestPermission = async () => {
      Object.assign(window, { asked: (window as unknown as { asked: number }).asked + 1 });
      return hasDesktop ? Real.requestPermission() : 'granted';
    };
  });
  const origin = site.server.url;
  await site.context.grantPermissions(['notifications'], { origin });
  const [one, two] = [await site.load('/settings/notifications'), await site.load('/agents')];
  for (const page of [one, two]) await live(page);
  const asked = (page: Page) => page.evaluate(() => (window as unknown as { asked: number }).asked);
  const notices = async () => {
    const read = (page: Page) => page.evaluate(() => (window as unknown as { made: { title: string }[] }).made);
    return (await Promise.all([one, two].map(read))).flat();
  };
  expect([await asked(one), await asked(two)]).toEqual([0, 0]);
  await one.getByRole('button', { name: 'Turn on desktop notifications' }).click();
  await one.getByRole('button', { name: 'Turn off' }).waitFor();
  // Items in the first response are not new.
  await expect
    .poll(() => one.evaluate((key) => localStorage.getItem(key), `interlude:of:local:${LAST_CHECK_KEY}`))
    .toBeTruthy();
  await agent.write('notified', [turnStarted('n1'), permissionAsked('n1', 'Deploy to production')]);
  await expect.poll(notices).toEqual([{ title: 'Permission needed · builder', isClosed: false }]);
  await agent.write('notified', [requestResolved('n1', 'allowed')]);
  await expect.poll(notices).toEqual([{ title: 'Permission needed · builder', isClosed: true }]);
  for (const page of [one, two]) await page.close();
});
