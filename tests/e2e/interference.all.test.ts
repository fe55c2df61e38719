import { beforeAll, expect, test } from 'vitest';
import { TURN_ROWS } from '@/components/transcript/item-rows';
import { EventWriter } from '../support/event-writer';
import { hostileSessions } from '../support/hostile-sessions';
import { probeHealth } from '../support/latency-probes';
import { expectWithin } from '../support/timing';
import { live } from '../support/transcript-page';
import { perFile, visitOwn } from '../support/visit';

/**
 * The bench limits these pages to 100 ms on an idle machine. Before their content was bounded they took up to a minute.
 */
const LONGEST_MS = 1_500;

const site = perFile(visitOwn);
const ids: string[] = [];
beforeAll(async () => {
  const agent = new EventWriter(site.server, 'hostile');
  for (const { id, events } of hostileSessions()) {
    await agent.write(id, events);
    ids.push(id);
  }
});

test('the page of a hostile session blocks no other request', async () => {
  const headers = { cookie: (await site.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ') };
  // The first page also loads the code that renders it.
  await (await fetch(`${site.server.url}/sessions/${ids[0]}`, { headers })).text();
  for (const id of ids) {
    const { longestMs } = await probeHealth(site.server.url, async () => {
      const response = await fetch(`${site.server.url}/sessions/${id}`, { headers });
      expect(response.status).toBe(200);
      await response.text();
    });
    expectWithin(longestMs, LONGEST_MS, id);
  }
});

test('a turn of ten thousand replies shows its ends, and 200 more on a press', async () => {
  const page = await site.open('/sessions/messages');
  await live(page);
  const answers = page.getByRole('log', { name: 'Transcript' }).locator('[id^="message-m"]');
  // The page renders a few turns at a time.
  await expect.poll(() => answers.count()).toBeGreaterThanOrEqual(TURN_ROWS.head + TURN_ROWS.tail);
  const before = await answers.count();
  expect(before).toBeLessThan(300);
  await page.getByText(/earlier items are not shown/).scrollIntoViewIfNeeded();
  await page.getByRole('button', { name: 'Show the next 200' }).click();
  await expect.poll(() => answers.count()).toBe(before + 200);
  await page.close();
});

test('a link to a reply in the middle of a turn of thousands shows it', async () => {
  const page = await site.open('/sessions/messages#message-m9000');
  await page.getByRole('log', { name: 'Transcript' }).getByText('answer 9000', { exact: false }).waitFor();
  await page.close();
});
