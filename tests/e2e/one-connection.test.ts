import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { streamCountingProxy } from '../support/test-proxies';
import { live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(() => visitOwn({ proxy: ({ url }) => streamCountingProxy(url) }));

test('tabs share one stream, which outlives the tab that opened it', async () => {
  const agent = new EventWriter(site.server, 'agent-one');
  await agent.write('first', userTurn('r1', 'Hello', 'Here I am'));
  await agent.write('second', userTurn('r1', 'Hello', 'Me too'));
  const first = await site.load('/sessions/first');
  await live(first);
  const again = await site.load('/sessions/first');
  const second = await site.load('/sessions/second');
  const home = await site.load('/');
  for (const page of [again, second, home]) await live(page);
  await expect.poll(() => site.proxy.open).toBe(1);

  await agent.write('first', userTurn('r2', 'Go on', 'Said to every tab'));
  await agent.write('second', userTurn('r2', 'Go on', 'Said to the other tabs'));
  await transcriptOf(first).getByText('Said to every tab').waitFor();
  await transcriptOf(again).getByText('Said to every tab').waitFor();
  await transcriptOf(second).getByText('Said to the other tabs').waitFor();
  await home.getByRole('link').filter({ hasText: 'Said to every tab' }).waitFor();
  expect(site.proxy.open).toBe(1);

  await first.close();
  await agent.write('first', userTurn('r3', 'And now?', 'Still there'));
  await transcriptOf(again).getByText('Still there').waitFor();
  expect(site.proxy.open).toBe(1);
  for (const page of [again, second, home]) await page.close();
  await expect.poll(() => site.proxy.open).toBe(0);
});

test('one tab needs one stream at a time from page to page', async () => {
  await new EventWriter(site.server, 'walked').write('walked', userTurn('r1', 'Hello', 'Walk with me'));
  const page = await site.load('/');
  await live(page);
  await page.locator('[data-session-row="walked"]').click();
  await transcriptOf(page).getByText('Walk with me').waitFor();
  await page.getByRole('link', { name: 'walked', exact: true }).click();
  await page.getByRole('heading', { name: 'walked', level: 1 }).waitFor();
  await page.goBack();
  await transcriptOf(page).getByText('Walk with me').waitFor();
  await expect.poll(() => site.proxy.open).toBe(1);
  await page.close();
});
