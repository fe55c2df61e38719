import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import {
  allowOf,
  askingAgent,
  cardOf,
  expectNotAllowedWhileCovered,
  LONG_TEXT,
  pinnedOf,
} from '../support/agent-pages';
import { EventWriter } from '../support/event-writer';
import { expectShownVerbatim, HOSTILE_COMMAND } from '../support/permission-card';
import { press, untilPressable } from '../support/press';
import { INVISIBLE } from '../support/rendered-text';
import { live, transcriptOf } from '../support/transcript-page';
import { message, taskStarted, toolCall, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { requestOpened, requestResolved } from '../support/wire-runner';

const site = perFile(visit);
beforeAll(async () => {
  await site.context.grantPermissions(['clipboard-read', 'clipboard-write']);
});
afterAll(async () => {
  await site.context.clearPermissions();
});

/**
 * Presses a key and the buttons of a request card from within the page as soon as the card appears, which no test driver
 * is quick enough for. Resolves with the time until the card accepts a press.
 */
async function pressAtOnce(page: Page, region: string, key: string): Promise<{ after: number }> {
  return page.evaluate(
    async ([name, sign, settlesMs]) => {
      const find = () => document.querySelector<HTMLElement>(`section[aria-label="${name}"]`);
      // A frame would be too late a start: on a busy page the card settles before the next one.
      await new Promise<void>((resolve) => {
        const look = () => find() !== null && resolve();
        new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
        look();
      });
      const start = performance.now();
      const card = find() as HTMLElement;
      card.focus();
      const press = () => {
        card.dispatchEvent(new KeyboardEvent('keydown', { key: sign ?? '', bubbles: true, cancelable: true }));
        for (const button of card.querySelectorAll('button'))
          if (/^(?:Allow|Deny)/.test(button.textContent)) button.click();
      };
      press();
      while (performance.now() - start < 400) await new Promise(requestAnimationFrame);
      // On a busy page the card may have settled already.
      if (performance.now() - start < settlesMs / 2 + 200) press();
      // Its buttons may appear later than the card.
      const canPress = () =>
        [...(find()?.querySelectorAll('button') ?? [])].some(
          (button) => button.textContent.startsWith('Allow') && button.getAttribute('aria-disabled') !== 'true',
        );
      while (!canPress()) await new Promise(requestAnimationFrame);
      return { after: performance.now() - start };
    },
    [region, key, SETTLE_MS] as const,
  );
}

test.each([
  ['a carriage return', `${HOSTILE_COMMAND} #\rls -la src/`, '⟨CR⟩'],
  [
    'harmless lines behind it',
    `${HOSTILE_COMMAND}\n${Array.from({ length: 23 }, (_, index) => `echo ${index}`).join('\n')}`,
    '',
  ],
])('command is shown as it runs when it has %s', async (what, command, sign) => {
  await expectShownVerbatim(site, `shown-disguised by ${what}`, command, sign);
});

test('command wraps inside its box when it is one long line', async () => {
  const { page, ask, close } = await askingAgent(site, 'shown-wide');
  await ask('q', { command: `ls ${'x'.repeat(5_000)} ; rm -rf ~`, note: `${'y'.repeat(3_000)}` });
  const input = cardOf(page, 'Ask q').getByRole('group', { name: 'Input' });
  await input.waitFor();
  expect(await input.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
  await close();
});

test('permission can be allowed once its whole input was on screen, and denied before', async () => {
  const { page, ask, runner, agent, sessionId, close } = await askingAgent(site, 'shown-reader');
  const command = Array.from({ length: 60 }, (_, index) => `echo ${index}`).join('\n');
  await ask('long', { command, timeout: 5 });
  const card = cardOf(page, 'Ask long');
  await card.getByText('Review the whole input to enable Allow.').waitFor();
  await card.getByText('61 lines').waitFor();
  await untilPressable(card.getByRole('button', { name: 'Deny', exact: true }));
  expect(await allowOf(card).isEnabled()).toBe(false);
  await card.focus();
  await page.keyboard.press('a');
  await allowOf(card).click({ force: true });
  expect(runner.commands).toEqual([]);
  // The keyboard alone scrolls it. A busy page does not see what two presses in one frame skip: those start over.
  const input = card.getByRole('group', { name: 'Input' });
  await input.focus();
  await expect
    .poll(async () => {
      await page.keyboard.press('PageDown');
      const isAtEnd = await input.evaluate(async (box) => {
        for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
        return box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
      });
      if (await allowOf(card).isEnabled()) return true;
      if (isAtEnd) await page.keyboard.press('Home');
      return false;
    })
    .toBe(true);
  await card.getByText('Review the whole input to enable Allow.').waitFor({ state: 'hidden' });
  await card.focus();
  await page.keyboard.press('a');
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'long', behavior: 'allow' });
  await agent.write(sessionId, [requestResolved('long', 'allowed')]);

  await ask('short', { command: 'ls' });
  const short = cardOf(page, 'Ask short');
  await expect.poll(() => allowOf(short).isEnabled()).toBe(true);
  await close();
});

test('request cannot be allowed by what a dialog covered', async () => {
  const stage = await askingAgent(site, 'shown-covered');
  const { page, agent, sessionId, close } = stage;
  await agent.write(sessionId, message('before', LONG_TEXT));
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await expectNotAllowedWhileCovered(stage);
  await close();
});

test('request card ignores keys and clicks when it has just appeared, inline or pinned', async () => {
  const { page, ask, agent, runner, sessionId, close } = await askingAgent(site, 'shown-hasty');
  const inline = pressAtOnce(page, 'Permission: “Ask first”', 'a');
  await ask('first', { command: 'ls' });
  expect((await inline).after).toBeGreaterThanOrEqual(SETTLE_MS);
  expect(runner.commands).toEqual([]);
  // The card scrolls out of sight, and its pinned copy appears.
  const pinned = pressAtOnce(page, 'Permission, pinned: “Ask first”', 'a');
  await agent.write(sessionId, message('long', LONG_TEXT));
  expect((await pinned).after).toBeGreaterThanOrEqual(SETTLE_MS);
  expect(runner.commands).toEqual([]);
  await press(allowOf(pinnedOf(page)));
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'first', behavior: 'allow' });
  await close();
});

test('pinned request stays in place and says so when it is withdrawn, and the next one follows its dismissal', async () => {
  const { page, ask, agent, runner, sessionId, close } = await askingAgent(site, 'shown-swapper');
  await ask('a', { command: 'ls' }, 'List it');
  await ask('b', { command: 'rm -rf ~' }, 'Remove it');
  await cardOf(page, 'Remove it').waitFor();
  await agent.write(sessionId, message('long', LONG_TEXT));
  const pinned = pinnedOf(page);
  const first = pinned.getByRole('region', { name: 'Permission, pinned: “List it”' });
  await first.focus();
  await agent.write(sessionId, [requestResolved('a', 'cancelled')]);
  await first.getByText('Withdrawn. Nothing was sent.').waitFor();
  await page.keyboard.press('a');
  await page.keyboard.press('d');
  expect(await allowOf(first).count()).toBe(0);
  expect(await pinned.getByRole('region').count()).toBe(1);
  const next = pressAtOnce(page, 'Permission, pinned: “Remove it”', 'a');
  await first.getByRole('button', { name: 'Dismiss' }).click();
  expect((await next).after).toBeGreaterThanOrEqual(SETTLE_MS);
  expect(runner.commands).toEqual([]);
  await page.keyboard.press('d');
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'b', behavior: 'deny' });
  await close();
});

test('click beside a pinned request hits its target when that request was withdrawn', async () => {
  const { page, ask, agent, runner, sessionId, close } = await askingAgent(site, 'shown-presser');
  await ask('a', { command: 'ls' }, 'List it');
  await cardOf(page, 'List it').waitFor();
  await agent.write(sessionId, message('long', LONG_TEXT));
  await ask('b', { command: 'pwd' }, 'Where is it');
  const pinned = pinnedOf(page).getByRole('region', { name: 'Permission, pinned: “List it”' });
  await pinned.focus();
  await agent.write(sessionId, [requestResolved('a', 'cancelled')]);
  await pinned.getByText('Withdrawn. Nothing was sent.').waitFor();
  await press(cardOf(page, 'Where is it').getByRole('button', { name: 'Deny', exact: true }));
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'b', behavior: 'deny' });
  await pinned.waitFor({ state: 'detached' });
  await close();
});

test('typed answer stays with its question when another question takes its place', async () => {
  const { page, agent, runner, sessionId, close } = await askingAgent(site, 'shown-quizzer');
  const question = (id: string, title: string) =>
    agent.write(sessionId, [requestOpened({ request_id: id, kind: 'question', title, input: null })]);
  await question('a', 'Which branch?');
  await question('b', 'Which password?');
  await agent.write(sessionId, message('long', LONG_TEXT));
  const pinned = pinnedOf(page);
  await pinned.getByRole('region', { name: 'Question, pinned: “Which branch?”' }).getByRole('textbox').fill('main');
  // The card in the transcript has the same draft.
  await expect
    .poll(() =>
      page
        .locator('#request-a')
        .getByRole('textbox')
        .inputValue()
        .catch(() => 'main'),
    )
    .toBe('main');
  await agent.write(sessionId, [requestResolved('a', 'cancelled')]);
  await pinned.getByText('Withdrawn. Nothing was sent.').waitFor();
  await page.keyboard.type('more');
  await pinned.getByRole('button', { name: 'Dismiss' }).click();
  const field = pinned.getByRole('region', { name: 'Question, pinned: “Which password?”' }).getByRole('textbox');
  expect(await field.inputValue()).toBe('');
  await field.fill('none');
  await press(pinned.getByRole('button', { name: 'Answer' }));
  expect((await runner.next('question.answer')).body).toMatchObject({
    requestId: 'b',
    answers: { 'Which password?': 'none' },
  });
  await close();
});

test('names show invisible characters as signs in the page, its title and its labels', async () => {
  const trick = 'nightly\u202e\u2066 \u001b[31mbuild\u200b\u00ad\u{e0041}\ufe0f\u009d';
  const agent = new EventWriter(site.server, `shown-agent ${trick}`);
  await agent.write('shown-tricky', [
    { type: 'CUSTOM', name: 'interlude:notice', value: { text: trick } },
    ...userTurn('r1', trick, [
      ...toolCall('c1', `mcp__${trick}__x`, { [trick]: trick, command: trick }, 'done'),
      taskStarted('t1', trick, { output_file: `/tmp/${trick}` }),
      ...message('m1', `[a link](https://evil.test/${encodeURIComponent(trick)} "https://good.test/")`),
      requestOpened({ request_id: 'p', kind: 'permission', tool_name: trick, title: trick, input: { [trick]: trick } }),
      requestOpened({
        request_id: 'q',
        kind: 'question',
        title: trick,
        input: { questions: [{ question: trick, header: trick, options: [{ label: trick, description: trick }] }] },
      }),
    ]),
  ]);
  const paths = ['/sessions/shown-tricky', '/', '/agents', `/agents/${encodeURIComponent(`shown-agent ${trick}`)}`];
  for (const path of paths) {
    const page = await site.open(path);
    await live(page);
    await page.getByText('⟨RLO⟩').first().waitFor();
    expect(await unseenIn(page, INVISIBLE.source)).toEqual([]);
    expect(await page.title()).not.toMatch(INVISIBLE);
    if (path !== '/' && path !== '/agents') expect(await page.title()).toContain('⟨RLO⟩');
    await site.leave(page);
  }
  const page = await site.open('/sessions/shown-tricky');
  expect(await transcriptOf(page).getByRole('link', { name: 'a link' }).getAttribute('title')).toMatch(
    /^https:\/\/evil\.test\//,
  );
  await site.leave(page);
});

/** Returns the texts and labels of a page that contain an invisible character. */
function unseenIn(page: Page, unseen: string): Promise<string[]> {
  return page.evaluate((source) => {
    const pattern = new RegExp(source, 'u');
    const found: string[] = [];
    for (const element of document.body.querySelectorAll('*')) {
      // Messages are prose and keep their characters.
      if (element.matches('script, style, [id^="message-"] p')) continue;
      for (const name of ['title', 'aria-label', 'placeholder', 'alt', 'aria-description']) {
        const value = element.getAttribute(name);
        if (value !== null && pattern.test(value)) found.push(`${element.tagName} ${name}: ${JSON.stringify(value)}`);
      }
      for (const node of element.childNodes) {
        if (node.nodeType === Node.TEXT_NODE && pattern.test(node.nodeValue ?? '')) {
          found.push(`${element.outerHTML.slice(0, 120)}: ${JSON.stringify(node.nodeValue)}`);
        }
      }
    }
    return found;
  }, unseen);
}
