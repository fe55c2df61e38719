import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { followToSession, type HostileVisit, visitHostile } from '../support/hostile-visit';
import { live, transcriptOf } from '../support/transcript-page';
import { message, toolCall, userTurn } from '../support/turn-events';

let site: HostileVisit;
beforeAll(async () => {
  site = await visitHostile();
});
beforeEach(() => {
  site.complaints.length = 0;
});
afterAll(() => site.close());

describe('a session with the id', () => {
  const ids = [
    'with/slash',
    'with%2Fslash',
    '100%',
    'schön ☃ 🤖 ‮rtl',
    'a?b=c#d&e+f',
    '../../signed-out',
    '<img src=x onerror=harm()>',
    '"quoted\' `ticks` \\back',
    '__proto__',
    'constructor',
  ];
  // One tab shows them in turn.
  let page: Page;
  beforeAll(async () => {
    page = await site.loadArmed('/');
    await live(page);
  });
  afterAll(() => page.close());

  test.each(ids)('%s has its own live page', (id) => followToSession(site, page, id, `${ids.indexOf(id)} of it`));
});

test('a page stays live with a line of a megabyte and a table of 5,000 rows', async () => {
  const agent = new EventWriter(site.server, 'flood');
  const table = `| a | b |\n| --- | --- |\n${Array.from({ length: 5_000 }, (_, index) => `| row ${index} | ${index} |`).join('\n')}`;
  const line = 'x'.repeat(950_000);
  await agent.write('flood', [
    ...userTurn('r1', 'Say it', [...message('line', line), ...toolCall('c1', 'Bash', { command: line }, 'done')]),
    ...userTurn('r2', 'Read it', toolCall('c2', 'Read', { file_path: 'big' }, line)),
    ...userTurn('r3', 'List it', table),
  ]);
  const page = await site.loadArmed('/sessions/flood');
  await live(page);
  await page.getByText('row 299').waitFor();
  await page.getByText('Showing the beginning of 5,000 rows').waitFor();
  await transcriptOf(page).hover();
  await page.keyboard.press('Home');
  await agent.write('flood', userTurn('r4', 'Alive?', 'Alive'));
  await page.keyboard.press('End');
  await transcriptOf(page).getByText('Alive', { exact: true }).waitFor();
  await site.nothingActed(page);
  await page.close();
});

test('no page writes to the console, except the browser’s own line for a missing page', async () => {
  await new EventWriter(site.server, 'writer').write('hostile', site.everywhere());
  for (const path of ['/', '/sessions/hostile', '/agents', '/agents/writer', '/signed-out']) {
    const page = await site.load(path);
    if (path !== '/signed-out') await live(page);
    await page.close();
  }
  expect(site.complaints).toEqual([]);
  for (const path of ['/sessions/nowhere', '/agents/nowhere', '/nowhere']) {
    const page = await site.load(path);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.close();
  }
  expect(site.complaints.filter((one) => !one.includes('404'))).toEqual([]);
});
