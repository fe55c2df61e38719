import { beforeAll, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { live } from '../support/transcript-page';
import { perFile, visitOwn } from '../support/visit';

/** The largest fleet that Interlude supports. */
const AGENTS = 1_000;
const site = perFile(visitOwn);

beforeAll(async () => {
  const records = Array.from({ length: AGENTS }, (_, index) => ({
    seq: index + 1,
    kind: 'status',
    agentId: `runner-${index}`,
    sessionId: `of-${index}`,
    occurredAt: Date.now(),
    status: { kind: 'claude', host: `build-${index % 3}`, versions: { provider: `Claude Code 2.1.${index % 2}` } },
  }));
  const busy = {
    seq: AGENTS + 1,
    kind: 'event',
    agentId: 'runner-7',
    sessionId: 'second-of-7',
    occurredAt: Date.now(),
    event: { type: 'RUN_STARTED', threadId: 'second-of-7', runId: 'r1' },
  };
  const response = await fetch(`${site.server.url}/api/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ producer: { id: 'seeder', epoch: 1 }, records: [...records, busy] }),
  });
  expect(response.status).toBe(200);
});

test('a thousand agents are sorted and filtered, and the address restores the same view', async () => {
  const page = await site.load('/agents?sort=name');
  await live(page);
  await page.getByText('1,000 agents', { exact: true }).waitFor();
  const heads = page.getByRole('rowheader');
  // The server's count is there before all rows are.
  await expect.poll(async () => (await heads.first().textContent())?.startsWith('runner-0')).toBe(true);
  await expect.poll(async () => (await heads.nth(10).textContent())?.startsWith('runner-10')).toBe(true);
  const sorts = page.getByRole('columnheader', { name: 'Sessions' });
  await sorts.getByRole('button').click();
  await expect.poll(async () => (await heads.first().textContent())?.startsWith('runner-7')).toBe(true);
  expect(await sorts.getAttribute('aria-sort')).toBe('descending');
  await page.getByLabel('Host').selectOption('build-1');
  await page.getByText('333 of 1,000 agents').waitFor();
  await page
    .getByRole('main')
    .getByRole('checkbox', { name: /^Working/ })
    .check({ force: true });
  await page.getByText('1 of 1,000 agents').waitFor();
  await expect
    .poll(() => Object.fromEntries(new URL(page.url()).searchParams))
    .toEqual({ state: 'working', host: 'build-1', sort: 'sessions' });
  await page.reload();
  await page.getByText('1 of 1,000 agents').waitFor();
  await page.goBack();
  await page.getByText('333 of 1,000 agents').waitFor();
  await page.close();
});

test('selected agents have no axe violation', async () => {
  const page = await site.load('/agents?q=runner-70');
  await live(page);
  await page.getByRole('checkbox', { name: 'Select “runner-70”', exact: true }).check();
  await page.getByRole('region', { name: 'Selected agents' }).waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.close();
});
