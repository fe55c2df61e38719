import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { InboxList } from '@/lib/protocol/inbox';
import { barriersInBothThemes } from '../support/barriers';
import { type ChromiumProfile, openProfile } from '../support/chromium';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

/** What needs a person, before two of them in browsers of their own. */
let it: Visit;
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
  it = await visit();
  other = await openProfile();
  agent = new EventWriter(it.server, 'builder');
  await agent.write('asks', [
    ...userTurn('r1', 'List the **files**', 'Yes.'),
    starts('r2'),
    asks('q1', 'List the files'),
  ]);
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
  for (const page of [mine, theirs]) await group(page, 'Permissions').waitFor({ state: 'detached' });
  await mine.close();
  await theirs.close();
});

test('a failure is put off and seen by keyboard alone, and is then seen everywhere', async () => {
  const page = await it.open('/inbox');
  await live(page);
  const theirs = await otherWindow();
  await live(theirs);
  await page.getByRole('combobox', { name: 'Snooze: No credit left' }).focus();
  await page.keyboard.type('For an h');
  await group(page, 'Snoozed').getByText('No credit left').waitFor();
  await page.getByRole('button', { name: 'Wake: No credit left' }).focus();
  await page.keyboard.press('Enter');
  await group(theirs, 'Failures').getByText('No credit left').waitFor();
  await page.getByRole('button', { name: 'Seen: No credit left' }).focus();
  await page.keyboard.press('Enter');
  for (const each of [page, theirs]) await each.getByText(/^Nothing needs you\./).waitFor();
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
