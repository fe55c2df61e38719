import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

const HEBREW = 'שלום! הבדיקות עברו, אבל `npm run build` נכשל. ראו את **היומן**.';
const ARABIC = 'نجحت الاختبارات كلها (12 من 12)، لكن `deploy.sh` فشل!';
const COLUMNS = ['Service', 'Region', 'Owner', 'Status', 'Last deployment', 'Reason'];
const WIDE = [
  `| ${COLUMNS.join(' | ')} |`,
  `|${COLUMNS.map(() => '---').join('|')}|`,
  '| authentication-gateway | eu-central-1 | infrastructure | degraded | 2026-11-20 14:03 | Certificates expired while nobody was looking, and the renewal waits for approval |',
  '| `payments/ledger-reconciliation` | us-east-2 | finance | ok | 2026-11-21 09:15 | Nothing |',
].join('\n');
const NARROW = '| Check | Result |\n|---|--:|\n| lint | 0 |\n| unit | 3 |';
const RTL_TABLE = '| בדיקה | תוצאה |\n|---|---|\n| יחידה | עברה |';
const LINE = 'x1y2 '.repeat(10_000);
const RUN = 'abcdefghij'.repeat(5_000);

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  const agent = new EventWriter(it.server, 'agent-words');
  const turn = userTurn('r1', `${HEBREW}\nand a line in English (with an end).\n${ARABIC}`, [
    ...message('a1', `${HEBREW}\n\n- ${ARABIC}\n- ${HEBREW}\n\n> ${ARABIC}\n\n${RTL_TABLE}`),
    ...message('a2', `Here is the state of **all** services:\n\n${WIDE}\n\nand of the checks:\n\n${NARROW}`),
  ]);
  await agent.write('tables', turn);
  await agent.write('previews', userTurn('r1', `# ${HEBREW}`, `**Done** — see [log](https://a.b/c): ${HEBREW}`));
  await agent.write(
    'lines',
    userTurn('r1', LINE, [
      ...message('l1', LINE),
      ...message('l2', RUN),
      ...message('l3', `\`\`\`\n${RUN}\n\`\`\``),
      ...message('l4', `A \`${RUN}\` in a line`),
      ...message('l5', JSON.stringify({ rows: Array.from({ length: 4_000 }, (_, at) => ({ at, ok: true })) })),
      ...reasoning('l6', LINE),
      ...toolCall('c1', 'Bash', { command: `echo ${RUN}` }, RUN),
      taskStarted('t1', 'Count', { task_type: 'local_agent' }),
      taskEnded('t1', 'completed', { summary: LINE }),
    ]),
  );
  const noon = new Date().setHours(12, 0, 0, 0);
  const day = 86_400_000;
  for (const [at, ago] of [3, 3, 1, 0].entries()) {
    await agent.write('days', userTurn(`r${at}`, `Question ${at}`, `Answer ${at}.`), { at: noon - ago * day + at });
  }
  // Half an hour before and after midnight in India.
  const evening = new Date(noon - 3 * day).setUTCHours(18, 0, 0, 0);
  for (const at of [0, 1]) {
    await agent.write('midnight', userTurn(`r${at}`, 'Question', `Answer ${at}.`), { at: evening + at * 3_600_000 });
  }
  const many = Array.from({ length: 300 }, (_, at) => userTurn(`r${at}`, `Question ${at}`, `Answer ${at}.`));
  await agent.write('long', many.flat(), { stepMs: 40 });
});
afterEach(() => expect(it.complaints).toEqual([]));
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

async function shot(page: Page, name: string): Promise<void> {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
}

test('a wide table scrolls in its own box and breaks no word, at every width', async () => {
  const page = await it.open('/sessions/tables');
  await live(page);
  for (const [width, colorScheme] of [
    [360, 'light'],
    [1024, 'dark'],
    [1680, 'light'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await scrollTable(page, width);
  }
  await page.close();
});

async function scrollTable(page: Page, width: number): Promise<void> {
  const table = transcriptOf(page).getByRole('region', { name: 'Table: Service, Region, Owner, Status' });
  await table.waitFor();
  await table.focus();
  expect(await isFocused(table)).toBe(true);
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => table.evaluate((box) => box.scrollLeft)).toBeGreaterThan(0);
  await shot(page, `tables-end-${width}`);
  await table.evaluate((box) => box.scrollTo(0, 0));
  // A word that was broken stands on two lines.
  const broken = await table.evaluate((box) => {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    const found: string[] = [];
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const { 0: word, index } of (node.nodeValue ?? '').matchAll(/\w{4,}/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        if (range.getClientRects().length > 1) found.push(word);
      }
    }
    return found;
  });
  expect(broken).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false);
  const checks = transcriptOf(page).locator('table', { hasText: 'Check' });
  expect(await checks.locator('..').getAttribute('tabindex')).toBe(null);
  await checks.scrollIntoViewIfNeeded();
  await shot(page, `tables-${width}`);
  await transcriptOf(page).evaluate((log) => log.scrollTo(0, 0));
  await shot(page, `direction-${width}`);
}

test('what is written from right to left begins at the right', async () => {
  const page = await it.open('/sessions/tables');
  await live(page);
  const directions = await transcriptOf(page).evaluate((log) =>
    [...log.querySelectorAll('p, li, td, blockquote, ul')]
      .filter((element) => /^[^a-z]*[\u0590-\u06ff]/i.test(element.textContent ?? ''))
      .map((element) => getComputedStyle(element).direction),
  );
  expect(directions.length).toBeGreaterThan(6);
  expect(new Set(directions)).toEqual(new Set(['rtl']));
  await page.close();
  const list = await it.open('/');
  await live(list);
  const row = list.locator('[data-session-row="previews"]');
  expect(await row.textContent()).toContain('Done — see log: שלום! הבדיקות עברו, אבל npm run build נכשל');
  await shot(list, 'previews');
  await list.setViewportSize({ width: 360, height: 800 });
  await shot(list, 'previews-360');
  await list.close();
});

test('between turns on different days the day is said, and nothing moves for it', async () => {
  const page = await it.open('/sessions/days');
  await live(page);
  const separators = transcriptOf(page).getByRole('separator');
  await expect.poll(() => separators.count()).toBe(3);
  const words = await separators.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
  expect(words[0]).toMatch(/^[A-Z][a-z]+day \d+ [A-Z][a-z]+( \d{4})?$/);
  expect(words.slice(1)).toEqual(['Yesterday', 'Today']);
  await shot(page, 'days-1280');
  for (const width of [360, 1680]) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: width === 360 ? 'dark' : 'light' });
    await shot(page, `days-${width}`);
  }
  await page.close();
});

test.each([
  ['UTC', 1],
  ['Asia/Kolkata', 2],
])('the day is the reader’s own, in %s too', async (timezoneId, count) => {
  const page = await it.context.newPage();
  const devtools = await it.context.newCDPSession(page);
  await devtools.send('Emulation.setTimezoneOverride', { timezoneId });
  await page.goto(`${it.server.url}/sessions/midnight`);
  await live(page);
  await transcriptOf(page).getByText('Answer 1.').waitFor();
  await expect.poll(() => transcriptOf(page).getByRole('separator').count()).toBe(count);
  await page.close();
});

test('a link to a turn that is not there says so, once all has been looked through', async () => {
  const page = await it.open('/sessions/long#turn-nowhere');
  const notice = page.getByRole('status', { name: 'Link', exact: true });
  await notice.getByText('This link leads to a turn that is not in this session. You are at its newest end.').waitFor();
  await transcriptOf(page).getByText('Answer 299.').waitFor();
  await shot(page, 'missing');
  await notice.getByRole('button', { name: 'Dismiss' }).click();
  await expect.poll(() => notice.textContent()).toBe('');
  // One that is there shows it, and says nothing.
  await page.evaluate(() => {
    location.hash = 'turn-r20';
  });
  await transcriptOf(page).getByText('Answer 20.').waitFor();
  expect(await notice.textContent()).toBe('');
  await page.evaluate(() => {
    location.hash = 'task-99999999';
  });
  await notice.getByText('This link leads to a task that is not in this session.').waitFor();
  await page.setViewportSize({ width: 360, height: 700 });
  await shot(page, 'missing-360');
  await page.close();
});

test('a link that can’t be followed says why, and can be tried again', async () => {
  const page = await it.context.newPage();
  let isDown = true;
  await page.route(/\/transcript\?.*before=/, async (route) => {
    if (!isDown) return route.continue();
    const body = JSON.stringify({ error: { code: 'unavailable', message: 'The database does not answer.' } });
    return route.fulfill({ status: 400, contentType: 'application/json', body });
  });
  await page.goto(`${it.server.url}/sessions/long#turn-r20`);
  const notice = page.getByRole('status', { name: 'Link', exact: true });
  await notice.getByText('The turn this link leads to could not be loaded: The database does not answer.').waitFor();
  await transcriptOf(page).getByText('Answer 299.').waitFor();
  await shot(page, 'failed');
  isDown = false;
  await notice.getByRole('button', { name: 'Retry' }).click();
  await transcriptOf(page).getByText('Answer 20.').waitFor();
  await expect.poll(() => notice.textContent()).toBe('');
  await page.close();
  it.complaints.splice(0, it.complaints.length, ...it.complaints.filter((words) => !words.includes('400')));
});

test('while it is looked for, that is said', async () => {
  const page = await it.context.newPage();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/transcript\?.*before=/, async (route) => {
    await released;
    return route.continue();
  });
  await page.goto(`${it.server.url}/sessions/long#turn-r20`);
  const notice = page.getByRole('status', { name: 'Link', exact: true });
  await notice.getByText('Looking for the turn this link leads to, in 30 turns so far…').waitFor();
  release();
  await page.locator('[data-turn="r20"].animate-flash').waitFor();
  expect(await notice.textContent()).toBe('');
  await page.close();
});

test('an address that names nothing of a session opens it at its end', async () => {
  const page = await it.open('/sessions/long#elsewhere');
  await live(page);
  await transcriptOf(page).getByText('Answer 299.').waitFor();
  const left = await transcriptOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
  expect(left).toBeLessThan(40);
  expect(await page.getByRole('status', { name: 'Link', exact: true }).textContent()).toBe('');
  await page.close();
});

test('a line of 50 kB is folded wherever it stands', async () => {
  const page = await it.open('/sessions/lines');
  await live(page);
  const log = transcriptOf(page);
  for (const name of [/^Thought/, /^Bash/]) await log.getByRole('button', { name }).first().click();
  await shot(page, 'lines');
  await log.evaluate((box) => box.scrollTo(0, 0));
  await shot(page, 'lines-top');
  const longest = await log.evaluate((box) =>
    Math.max(...[...box.querySelectorAll('p, pre, code, .verbatim')].map((text) => text.textContent?.length ?? 0)),
  );
  expect(longest).toBeLessThan(10_000);
  await page.close();
});
