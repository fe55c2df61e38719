import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { InboxList } from '@/lib/protocol/inbox';
import type { RequestDetail, SessionObligations } from '@/lib/protocol/read-models';
import { barriersInBothThemes } from '../support/barriers';
import { type ChromiumProfile, openProfile } from '../support/chromium';
import { EventWriter } from '../support/event-writer';
import { press, takesPresses } from '../support/press';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** What needs a person, before two of them in browsers of their own. */
let it: OwnVisit;
let other: ChromiumProfile;
let agent: EventWriter;

const starts = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: 's', runId });
const asks = (requestId: string, title: string): AgUiEvent => ({
  type: 'CUSTOM',
  name: 'request:opened',
  value: { request_id: requestId, kind: 'permission', tool_name: 'Bash', title, input: { command: 'ls' } },
});
const answered = (requestId: string): AgUiEvent => ({
  type: 'CUSTOM',
  name: 'request:resolved',
  value: { request_id: requestId, outcome: 'allowed' },
});

beforeAll(async () => {
  it = await visitOwn({ env: { INTERLUDE_REPLY_OVERDUE_MINUTES: '0.02' } });
  other = await openProfile();
  agent = new EventWriter(it.server, 'builder');
  await agent.write('asks', [
    ...userTurn('r1', 'List the **files**', 'Yes.'),
    starts('r2'),
    asks('q1', 'List the files'),
  ]);
  await agent.staysInTouch();
  await agent.write('fails', [
    ...userTurn('r1', 'Mend the login test', 'Trying.'),
    starts('r2'),
    { type: 'RUN_ERROR', threadId: 'fails', runId: 'r2', message: 'No credit left' },
  ]);
});
afterAll(async () => {
  await other.close();
  await it.close();
  expect(it.complaints).toEqual([]);
});

const group = (page: Page, name: string) => page.getByRole('region', { name: new RegExp(`^${name}`) });

async function otherWindow(): Promise<Page> {
  const page = await other.context.newPage();
  await page.goto(`${it.server.url}/sign-in?token=${it.server.token}&next=/inbox`);
  return page;
}

test('the inbox says what needs a person, whose it is and where to see to it, without a barrier', async () => {
  const page = await it.open('/inbox');
  await live(page);
  const asked = group(page, 'Permissions').getByRole('link', { name: /List the files/ });
  expect(await asked.textContent()).toContain('builder · List the files');
  await group(page, 'Failures')
    .getByRole('link', { name: /No credit left builder · Mend the login test/ })
    .waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await asked.click();
  await page.getByRole('region', { name: 'Permission: List the files' }).waitFor();
  await page.close();
});

test('what one claims and answers, the other sees, and neither loses their place', async () => {
  const mine = await it.open('/inbox');
  await live(mine);
  const theirs = await otherWindow();
  await live(theirs);
  await mine.getByLabel('Your name').fill('Ada');
  await mine.getByRole('button', { name: 'Claim: List the files' }).click();
  await mine.getByText('You have this').waitFor();
  await theirs.getByText('Ada has this').waitFor();
  await theirs.getByRole('button', { name: 'Take over: List the files' }).click();
  await theirs.getByText('You have this').waitFor();
  await mine.getByText('Operator has this').waitFor();
  await agent.write('asks', [answered('q1')]);
  for (const page of [mine, theirs]) {
    // It stays under the pointer that pressed there, and says that it is over.
    await group(page, 'Permissions').getByText('Done').waitFor();
    await page.mouse.move(0, 0);
    await group(page, 'Permissions').waitFor({ state: 'detached' });
  }
  await mine.close();
  await theirs.close();
});

test('a failure is put off and seen by keyboard alone, and is then seen everywhere', async () => {
  const page = await it.open('/inbox');
  await live(page);
  const theirs = await otherWindow();
  await live(theirs);
  await page.getByRole('button', { name: 'Snooze: No credit left' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Snooze: No credit left' }).getByText('For an hour').waitFor();
  await page.keyboard.press('Enter');
  await group(theirs, 'Snoozed')
    .getByRole('button', { name: /^Snoozed/, expanded: false })
    .waitFor();
  await page.getByRole('button', { name: 'Wake: No credit left' }).focus();
  await page.keyboard.press('Enter');
  await group(theirs, 'Failures').getByText('No credit left').waitFor();
  await page.getByRole('button', { name: 'Seen: No credit left' }).focus();
  await page.keyboard.press('Enter');
  await theirs.getByText(/^Nothing needs you\./).waitFor();
  // Here it stands where it was, until the reader goes on.
  await group(page, 'Failures').getByText('Done').waitFor();
  expect(await page.evaluate(() => document.activeElement?.getAttribute('data-inbox-row'))).toBeTruthy();
  await page.getByLabel('Your name').focus();
  await page.getByText(/^Nothing needs you\./).waitFor();
  const home = await it.open('/');
  await group(home, 'Failed, seen').waitFor();
  for (const each of [page, theirs, home]) await each.close();
});

test('several are selected and marked at once, and one kind is shown by its address', async () => {
  const many = Array.from({ length: 4 }, (_, at) => asks(`m${at}`, `Permission ${at}`));
  await agent.write('asks', many);
  await agent.write('fails', [
    starts('r3'),
    { type: 'RUN_ERROR', threadId: 'fails', runId: 'r3', message: 'Still no credit' },
  ]);
  const page = await it.open('/inbox');
  await live(page);
  for (const at of [0, 1, 2]) await page.getByRole('checkbox', { name: `Select Permission ${at}` }).check();
  await page.getByRole('button', { name: 'Seen: 3 items selected' }).click();
  await page.getByRole('button', { name: 'Not seen: Permission 2' }).waitFor();
  const { items } = await it.read<InboxList>('/inbox?kind=permission');
  expect(items.map(({ seenAt }) => seenAt !== null)).toEqual([true, true, true, false]);
  await page.getByRole('navigation', { name: 'Kinds' }).getByRole('link', { name: 'Failures' }).click();
  await group(page, 'Permissions').waitFor({ state: 'detached' });
  await group(page, 'Failures').getByText('Still no credit').waitFor();
  expect(new URL(page.url()).search).toBe('?kind=failure');
  await page.close();
});

test('what is new is counted in the tab and beside the way there, on every page, until somebody has seen it', async () => {
  const page = await it.open('/agents');
  await live(page);
  await page.getByRole('link', { name: 'Inbox new: 2' }).waitFor();
  expect(await page.title()).toMatch(/^\(2\) Agents/);
  const icon = () => page.locator('link[rel="icon"]').getAttribute('href');
  expect(await icon()).toBe('/icon-news.svg');
  expect((await page.request.get(`${it.server.url}/icon-news.svg`)).headers()['content-type']).toContain('svg');
  const inbox = await it.read<InboxList>('/inbox');
  const ids = inbox.items.map(({ id }) => id);
  const marked = await page.request.post(`${it.server.url}/api/v1/inbox/marks`, {
    headers: { authorization: `Bearer ${it.server.token}` },
    data: { ids, mark: 'seen' },
  });
  expect(marked.status()).toBe(200);
  await page.getByRole('link', { name: 'Inbox', exact: true }).waitFor();
  expect(await page.title()).toMatch(/^Agents/);
  expect(await icon()).not.toBe('/icon-news.svg');
  await page.close();
});

test('"r" leads to the next request from any page, and a letter answers it where it stands in the inbox', async () => {
  const page = await it.open('/agents');
  await live(page);
  // What hears it comes when the page is idle.
  await expect
    .poll(async () => {
      await page.keyboard.press('r');
      return page.url();
    })
    .toMatch(/\/sessions\/asks#request-/);
  await page.goto(`${it.server.url}/inbox`);
  await live(page);
  await page.keyboard.press('r');
  const card = page.getByRole('region', { name: 'Permission: Permission 0' });
  await card.getByRole('button', { name: 'Allow' }).waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  // The row has the focus, and its card says which letters act on it now.
  expect(await page.evaluate(() => document.activeElement?.hasAttribute('data-inbox-row'))).toBe(true);
  await card.getByText('d', { exact: true }).waitFor();
  await takesPresses(card.getByRole('button', { name: 'Deny', exact: true }));
  await page.keyboard.press('d');
  await card.getByText('Denied, on its way to the agent…').waitFor();
  await page.close();
});

test('several permissions are allowed at one press, once all of what each one asks was seen', async () => {
  const page = await it.open('/inbox');
  await live(page);
  for (const at of [1, 2, 3]) await page.getByRole('checkbox', { name: `Select Permission ${at}` }).check();
  await page.getByRole('button', { name: 'Show what these 3 ask' }).click();
  for (const at of [1, 2, 3]) {
    await page.getByRole('region', { name: `Permission: Permission ${at}` }).scrollIntoViewIfNeeded();
  }
  await press(page.getByRole('button', { name: 'Allow these 3' }));
  await expect.poll(() => page.getByText('Allowed, on its way to the agent…').count()).toBe(3);
  await page.getByText('Allowed, on their way to the agents').waitFor();
  const detail = await it.read<RequestDetail>('/sessions/asks/requests/m3');
  expect(detail.request.answer).toMatchObject({ behavior: 'allow' });
  await page.close();
});

test('a failure is retried with what was asked last, and the inbox is searched and folded', async () => {
  const page = await it.open('/inbox');
  await live(page);
  await agent.write('fails', [
    starts('r4'),
    { type: 'RUN_ERROR', threadId: 'fails', runId: 'r4', message: 'Out of credit' },
  ]);
  const search = page.getByRole('searchbox', { name: 'Search the inbox' });
  await search.fill('login credit');
  await group(page, 'Permissions').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Retry: Out of credit' }).click();
  const text = page.getByLabel('Send again:');
  expect(await text.inputValue()).toBe('Mend the login test');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText(/^Sent to builder\. No runner listens/).waitFor();
  await search.fill('');
  const fold = group(page, 'Permissions').getByRole('button', { name: /^Permissions/ });
  await fold.click();
  await group(page, 'Permissions').getByRole('link').first().waitFor({ state: 'detached' });
  await page.reload();
  await expect.poll(() => fold.getAttribute('aria-expanded')).toBe('false');
  await page.close();
});

test('an overdue reply says who waits, and is settled by what the agent wrote, where it stands or in its session', async () => {
  const asksWho = (messageId: string, delta: string): AgUiEvent[] => [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Grace' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
  const trigger = { kind: 'task' as const, taskIds: ['t1'] };
  await agent.write('owes', [
    ...userTurn('r1', 'Watch the deployment', 'Watching.'),
    ...asksWho('w1', 'Which **port** is it?'),
    ...asksWho('w2', 'Who deployed?'),
    { type: 'RUN_STARTED', threadId: 'owes', runId: 'r2', metadata: { interlude: { turn: 'between-run', trigger } } },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm9', role: 'assistant', delta: 'It listens on port 8080.' },
    { type: 'RUN_FINISHED', threadId: 'owes', runId: 'r2' },
  ]);
  const page = await it.open('/inbox?kind=overdue-reply');
  await live(page);
  await group(page, 'Overdue replies')
    .getByRole('link', { name: /Which port is it\? builder .* Grace waits/ })
    .waitFor();
  await page.getByRole('button', { name: 'Settle: Which port is it?' }).click();
  await page.locator('#content').getByText('It listens on port 8080.').waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await press(page.getByRole('button', { name: 'That is the reply' }));
  await expect.poll(async () => (await it.read<SessionObligations>('/sessions/owes/obligations')).owed.length).toBe(1);
  await page.goto(`${it.server.url}/sessions/owes`);
  await live(page);
  await page.getByRole('button', { name: 'owes 1 reply, 1 overdue' }).click();
  const owed = page.getByRole('dialog', { name: 'Replies owed' });
  await owed.getByText('overdue').waitFor();
  await owed.getByRole('region', { name: 'Settled lately' }).getByText('a text was taken for the reply').waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await press(owed.getByRole('button', { name: 'That is the reply' }));
  await owed.waitFor({ state: 'detached' });
  await page.close();
});

test('the webhook says that none is set, and how to set one', async () => {
  const page = await it.open('/inbox');
  await live(page);
  await page.getByRole('button', { name: 'Webhook' }).click();
  await page.getByText('No webhook is set. Start the server with INTERLUDE_WEBHOOK_URL').waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await page.close();
});

test('the desktop is notified once, whatever tabs there are, and no more of what was answered elsewhere', async () => {
  // The browser's own, which tells of what is made and closed.
  await it.context.addInitScript(() => {
    const made: { title: string; isClosed: boolean }[] = [];
    const Real = Notification;
    class Told extends Real {
      constructor(title: string, options?: NotificationOptions) {
        super(title, options);
        const one = { title, isClosed: false };
        made.push(one);
        const close = this.close.bind(this);
        this.close = () => {
          one.isClosed = true;
          close();
        };
      }
    }
    Object.assign(window, { Notification: Told, made, asked: 0 });
    // A browser without windows may have no desktop, and deny what it was granted below.
    const hasDesktop = Real.permission === 'granted';
    Object.defineProperty(Told, 'permission', { get: () => (hasDesktop ? Real.permission : 'granted') });
    Told.requestPermission = async () => {
      Object.assign(window, { asked: (window as unknown as { asked: number }).asked + 1 });
      return hasDesktop ? Real.requestPermission() : 'granted';
    };
  });
  const origin = it.server.url;
  await it.context.grantPermissions(['notifications'], { origin });
  const [one, two] = [await it.open('/inbox'), await it.open('/agents')];
  for (const page of [one, two]) await live(page);
  const asked = (page: Page) => page.evaluate(() => (window as unknown as { asked: number }).asked);
  const made = async () => {
    const read = (page: Page) => page.evaluate(() => (window as unknown as { made: { title: string }[] }).made);
    return (await Promise.all([one, two].map(read))).flat();
  };
  expect([await asked(one), await asked(two)]).toEqual([0, 0]);
  await one.getByRole('button', { name: 'Notifications' }).click();
  await one.getByRole('button', { name: 'Turn on desktop notifications' }).click();
  await one.getByRole('checkbox', { name: 'Permissions', exact: true }).waitFor();
  expect(await barriersInBothThemes(one)).toEqual([]);
  await agent.write('notified', [starts('n1'), asks('n1', 'Deploy to production')]);
  await expect.poll(made).toEqual([{ title: 'builder: permissions', isClosed: false }]);
  await agent.write('notified', [answered('n1')]);
  await expect.poll(made).toEqual([{ title: 'builder: permissions', isClosed: true }]);
  for (const page of [one, two]) await page.close();
});
