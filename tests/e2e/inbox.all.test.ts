import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { SessionObligations } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import type { EventWriter } from '../support/event-writer';
import { writeInbox } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(() => visitOwn({ env: { INTERLUDE_REPLY_OVERDUE_MINUTES: '0.02' } }));
let agent: EventWriter;

beforeAll(async () => {
  agent = await writeInbox(site.server);
});

const group = (page: Page, name: string) => page.getByRole('region', { name: new RegExp(`^${name}`) });

test('the inbox, an open request in it, and its two panels have no axe violation', async () => {
  // A headless browser may deny the permission.
  await site.context.addInitScript(() => {
    Object.defineProperty(Notification, 'permission', { get: () => 'granted' });
    Notification.requestPermission = async () => 'granted';
  });
  const page = await site.load('/inbox');
  await live(page);
  await group(page, 'Needs you').getByText('No credit left').waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.keyboard.press('r');
  await page
    .getByRole('region', { name: 'Permission: “List the files”' })
    .getByRole('button', { name: 'Allow' })
    .waitFor();
  await page.getByRole('link', { name: 'Notification settings' }).click();
  await page.getByRole('button', { name: 'Turn on desktop notifications' }).click();
  await page.getByRole('button', { name: 'Turn off' }).waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.close();
});

test('an overdue reply names who waits, and is settled with the agent’s text in its row or in its session', async () => {
  const message = (messageId: string, delta: string): AgUiEvent[] => [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Grace' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
  const trigger = { kind: 'task' as const, taskIds: ['t1'] };
  await agent.write('owes', [
    ...userTurn('r1', 'Watch the deployment', 'Watching.'),
    ...message('w1', 'Which **port** is it?'),
    ...message('w2', 'Who deployed?'),
    { type: 'RUN_STARTED', threadId: 'owes', runId: 'r2', metadata: { interlude: { turn: 'between-run', trigger } } },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm9', role: 'assistant', delta: 'It listens on port 8080.' },
    { type: 'RUN_FINISHED', threadId: 'owes', runId: 'r2' },
  ]);
  let page = await site.load('/inbox?kind=overdue-reply');
  await live(page);
  await group(page, 'Needs you')
    .getByRole('listitem')
    .filter({ hasText: /Which port is it\?.*builder.*“Grace” is waiting for a reply/s })
    .waitFor();
  await page.getByRole('button', { name: 'Review reply: “Which port is it?”' }).click();
  // Both overdue replies of the session have the same candidate.
  await page.locator('#content').getByText('It listens on port 8080.').first().waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await press(page.getByRole('button', { name: 'Accept as reply' }).first());
  await expect
    .poll(async () => (await site.read<SessionObligations>('/sessions/owes/obligations')).owed.length)
    .toBe(1);
  await site.leave(page);
  page = await site.load('/sessions/owes');
  await live(page);
  await page.getByRole('button', { name: '1 reply overdue' }).click();
  const dialog = page.getByRole('dialog', { name: 'Pending replies' });
  await dialog.getByText('overdue').waitFor();
  await dialog.getByRole('region', { name: 'Recently settled' }).getByText('accepted as reply').waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await press(dialog.getByRole('button', { name: 'Accept as reply' }));
  await dialog.waitFor({ state: 'detached' });
  await page.close();
});
