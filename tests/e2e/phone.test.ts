import type { RequestDetail } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { EventWriter, permissionAsked, turnStarted } from '../support/event-writer';
import { horizontalOverflows } from '../support/page-checks';
import { press, untilPressable } from '../support/press';
import { live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { openProfile, perFile, visitOwn } from '../support/visit';
import { requestOpened } from '../support/wire-runner';

const AGENT = 'phone';
const HEIGHT = 740;
const LONG_AGENT = 'phone-opencode-design-system-1';
const LONG_TITLE = 'Profile the cold start of the Lambda and get it under 400 ms.';
/** Above the keyboard. */
const KEYBOARD_HEIGHT = 420;

const site = perFile(visitOwn);
beforeAll(async () => {
  const agent = new EventWriter(site.server, AGENT);
  for (const at of [0, 1, 2])
    await agent.write(`phone-${at}`, [turnStarted('r'), permissionAsked(`p${at}`, `Step ${at}`)]);
  const long = Array.from({ length: 30 }, (_, line) => `Line ${line}`).join('\n\n');
  const databases = ['Staging', 'Replica', 'Production'].map((label) => ({
    label,
    description: `The ${label} database`,
  }));
  const input = { questions: [{ question: 'Which database?', options: databases }] };
  await agent.write('phone-asks', [
    ...userTurn('r1', 'Begin', long),
    turnStarted('r2'),
    requestOpened({ request_id: 'q', kind: 'question', tool_name: 'AskUserQuestion', title: 'Which database?', input }),
  ]);
  await agent.staysInTouch();
  const other = new EventWriter(site.server, LONG_AGENT);
  const command = 'rm -rf node_modules dist && git log --oneline -20 --since=yesterday';
  const asked = { kind: 'permission', tool_name: 'Bash', title: 'Bash', input: { command } };
  await other.write('phone-long', [
    ...userTurn('r1', LONG_TITLE, 'Yes.'),
    turnStarted('r2'),
    requestOpened({ request_id: 'long', ...asked }),
  ]);
  const options = [
    { id: 'once', label: 'Yes', kind: 'allow' },
    { id: 'always', label: 'Yes, and don’t ask again for rm', kind: 'allow', isLasting: true },
    { id: 'no', label: 'No', kind: 'deny' },
  ];
  await other.write('phone-choices', [
    ...userTurn('r1', 'Clean up', 'Yes.'),
    turnStarted('r2'),
    requestOpened({ request_id: 'choices', ...asked, options }),
  ]);
  const ended = { type: 'CUSTOM', name: 'session:ended', value: { exitCode: 137 } };
  await other.write('phone-crashed', [...userTurn('r1', 'Begin', 'Yes.'), ended], { at: Date.now() - 100 * 3_600_000 });
  await other.staysInTouch();
});

async function onPhone(path: string): Promise<Page> {
  const { context, close } = await openProfile({
    viewport: { width: 360, height: HEIGHT },
    hasTouch: true,
    isMobile: true,
    storageState: await site.context.storageState(),
  });
  onTestFinished(close);
  const page = await context.newPage();
  await page.goto(`${site.server.url}${path}`);
  await live(page);
  return page;
}

async function topOf(page: Page, row: string): Promise<number | undefined> {
  const box = await page.locator(row).first().boundingBox();
  return box?.y;
}

/** Moves a finger. */
async function swipe(page: Page, from: { x: number; y: number }, to: { x: number; y: number }): Promise<void> {
  const cdp = await page.context().newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...touchPoints: { x: number; y: number }[]) =>
    cdp.send('Input.dispatchTouchEvent', { type, touchPoints });
  await touch('touchStart', from);
  for (const part of [0.25, 0.5, 0.75, 1]) {
    await touch('touchMove', { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part });
  }
  await touch('touchEnd');
}

const answerOf = async (at: number) =>
  (await site.read<RequestDetail>(`/sessions/phone-${at}/requests/p${at}`)).request.answer;

test('a request is answered with one tap on its inbox row, and with two in the review', async () => {
  const page = await onPhone('/inbox');
  const allow = page.getByRole('button', { name: 'Allow: “Step 0”' });
  await untilPressable(allow);
  await allow.tap();
  await expect.poll(() => answerOf(0)).toMatchObject({ behavior: 'allow' });
  await page.getByRole('button', { name: /^Review \d requests$/ }).tap();
  const deny = page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true });
  await untilPressable(deny);
  const box = await deny.boundingBox();
  expect(box?.y).toBeGreaterThan(HEIGHT / 2);
  expect(box?.height).toBeGreaterThanOrEqual(44);
  await deny.tap();
  await expect.poll(() => answerOf(1)).toMatchObject({ behavior: 'deny' });
});

test('an inbox row cuts neither title nor agent, and breaks its command before a flag, not within', async () => {
  const page = await onPhone('/inbox');
  const row = page.getByRole('listitem').filter({ hasText: LONG_TITLE });
  const texts = [row.getByText(LONG_TITLE, { exact: true }), row.getByText(LONG_AGENT, { exact: true })];
  for (const text of texts) {
    const cut = await text.evaluate((box) => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]);
    expect(Math.max(...cut)).toBeLessThanOrEqual(1);
  }
  const broken = await row
    .locator('bdi')
    .first()
    .evaluate((command) => {
      const walker = document.createTreeWalker(command, NodeFilter.SHOW_TEXT);
      const found: string[] = [];
      for (let node = walker.nextNode() as Text | null; node !== null; node = walker.nextNode() as Text | null) {
        for (const { index, 0: flag } of node.data.matchAll(/--?\w[\w-]*/g)) {
          const range = new Range();
          range.setStart(node, index);
          range.setEnd(node, index + flag.length);
          if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) found.push(flag);
        }
      }
      return { found, text: command.textContent };
    });
  expect(broken).toEqual({ found: [], text: expect.stringContaining('--oneline -20 --since') });
});

test('a card ends with Allow and Deny in halves, whatever else it offers', async () => {
  const page = await onPhone('/sessions/phone-long');
  const places = async (allow: RegExp, deny: RegExp) => {
    const card = page.getByRole('region', { name: 'Permission: “Bash”' });
    await card.getByRole('button', { name: 'Deny with a reason' }).waitFor();
    const [box, ...buttons] = await Promise.all(
      [card, ...[allow, deny].map((name) => card.getByRole('button', { name }))].map((one) => one.boundingBox()),
    );
    return buttons.map((one) => one && box && [one.x, one.width, box.y + box.height - one.y - one.height]);
  };
  const plain = await places(/^Allow$/, /^Deny$/);
  expect(plain[1]?.slice(1)).toEqual(plain[0]?.slice(1));
  await page.goto(`${site.server.url}/sessions/phone-choices`);
  await live(page);
  expect(await places(/^Allow: “Yes”$/, /^Deny: “No”$/)).toEqual(plain);
});

test('a session’s header shows its state in full, and the time after it', async () => {
  const page = await onPhone('/sessions/phone-crashed');
  const state = page.locator('main header').getByText('Failed, exit code 137', { exact: true });
  expect(await state.evaluate((text) => text.scrollWidth - text.clientWidth)).toBeLessThanOrEqual(0);
  const row = await page.locator('main header p').boundingBox();
  const time = await page.locator('main header p time').last().boundingBox();
  expect(time && row && time.x + time.width <= row.x + row.width).toBe(true);
});

test('a swipe leads to the next request and back, and so do buttons', async () => {
  const page = await onPhone('/inbox');
  await page.getByRole('button', { name: /^Review \d requests$/ }).tap();
  const review = page.getByRole('dialog', { name: 'Review requests' });
  const shows = (at: number) => review.getByText(new RegExp(`^Request ${at} of`)).waitFor();
  const [left, right] = [
    { x: 60, y: 600 },
    { x: 300, y: 610 },
  ];
  await shows(1);
  await swipe(page, right, left);
  await shows(2);
  await swipe(page, left, right);
  await shows(1);
  await swipe(page, { x: 200, y: 700 }, { x: 280, y: 500 });
  await shows(1);
  await review.getByRole('button', { name: 'Next request' }).tap();
  await shows(2);
});

test('a question stays in thumb reach while the reader scrolls up, and leaves room for the transcript', async () => {
  const page = await onPhone('/sessions/phone-asks');
  const card = page.getByRole('region', { name: 'Question: “Which database?”' });
  const submit = (of: typeof card) => of.getByRole('button', { name: 'Answer', exact: true });
  const isInReach = async (of: typeof card) => {
    const [button, composer] = await Promise.all([
      submit(of).boundingBox(),
      page.getByRole('form', { name: 'Composer' }).boundingBox(),
    ]);
    if (button === null || composer === null) return false;
    return button.y > HEIGHT / 2 && button.y + button.height <= composer.y;
  };
  await expect.poll(() => isInReach(card)).toBe(true);
  await swipe(page, { x: 180, y: 200 }, { x: 180, y: 560 });
  await swipe(page, { x: 180, y: 200 }, { x: 180, y: 560 });
  const pinned = page.getByRole('region', { name: 'Question, pinned: “Which database?”' });
  await expect.poll(() => isInReach(pinned)).toBe(true);
  await page.setViewportSize({ width: 360, height: KEYBOARD_HEIGHT });
  await page.getByRole('textbox', { name: /^Message to/ }).tap();
  const composer = page.getByRole('form', { name: 'Composer' });
  const bottom = async () => composer.boundingBox().then((box) => box && box.y + box.height);
  await expect.poll(bottom).toBe(KEYBOARD_HEIGHT);
  expect((await transcriptOf(page).boundingBox())?.height).toBeGreaterThan(60);
  await page.setViewportSize({ width: 360, height: HEIGHT });
  await pinned.getByRole('radio', { name: /^Replica/ }).tap();
  expect(await pinned.getByRole('radio', { name: /^Replica/ }).isChecked()).toBe(true);
  await press(submit(pinned));
  const answer = async () => (await site.read<RequestDetail>('/sessions/phone-asks/requests/q')).request.answer;
  await expect.poll(answer).not.toBeNull();
});

test('the first row of each list, and the first line of a log, is near the top', async () => {
  const page = await onPhone('/');
  for (const [path, row, topPx] of [
    ['/', '[data-session-row]', 170],
    ['/inbox', '[data-inbox-row]', 170],
    ['/agents', '[data-agent-row]', 180],
    [`/agents/${AGENT}/logs`, '[role="log"]', 180],
    ['/sessions/phone-asks?tab=log', '[role="log"][aria-label="Agent log"]', 180],
  ] as const) {
    await page.goto(`${site.server.url}${path}`);
    await live(page);
    await expect.poll(() => topOf(page, row), { message: path }).toBeLessThanOrEqual(topPx);
  }
});

test('the first row of the inbox is near the top of a tablet', async () => {
  const page = await onPhone('/inbox');
  await page.setViewportSize({ width: 768, height: 1024 });
  await expect.poll(() => topOf(page, '[data-inbox-row]')).toBeLessThanOrEqual(150);
});

test('the actions on selected agents leave most of the screen to the agents', async () => {
  const page = await onPhone('/agents');
  await page.getByRole('checkbox', { name: `Select “${AGENT}”` }).tap();
  const bar = page.getByRole('region', { name: 'Selected agents' });
  const height = () => bar.boundingBox().then((box) => box?.height);
  await expect.poll(height).toBeLessThanOrEqual(160);
  await bar.getByRole('button', { name: 'Log level…' }).tap();
  await expect.poll(height).toBeGreaterThan(160);
});

test('a strip of filters scrolls to the current one', async () => {
  const page = await onPhone('/settings/webhook');
  const link = page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name: 'Webhook' });
  const end = () => link.boundingBox().then((box) => box && box.x + box.width);
  await expect.poll(end).toBeLessThanOrEqual(360);
});

test('no page scrolls sideways at 320 px', async () => {
  const page = await onPhone('/');
  await page.setViewportSize({ width: 320, height: HEIGHT });
  const session = '/sessions/phone-asks';
  const settings = ['', '/access', '/appearance', '/audit', '/notifications', '/shortcuts', '/storage', '/webhook'];
  for (const path of [
    ...['/', '/inbox', '/agents', `/agents/${AGENT}`, `/agents/${AGENT}/logs`, '/help'],
    ...[session, `${session}?tab=tasks`, `${session}?tab=log`, `${session}?tab=details`],
    ...settings.map((of) => `/settings${of}`),
  ]) {
    await page.goto(`${site.server.url}${path}`);
    await live(page);
    expect(await horizontalOverflows(page), path).toEqual([]);
  }
});
