import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { violationsInBothThemes } from '../support/accessibility';
import {
  allowOf,
  askingAgent,
  cardOf,
  expectNotAllowedWhileCovered,
  LONG_TEXT,
  pinnedOf,
} from '../support/agent-pages';
import { LogWriter } from '../support/log-writer';
import { expectPinnedUntilRead, expectShownVerbatim, HOSTILE_COMMAND } from '../support/permission-card';
import { pressUntil } from '../support/press';
import { live } from '../support/transcript-page';
import { message } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { requestResolved } from '../support/wire-runner';

const site = perFile(visit);

beforeAll(async () => {
  await site.context.grantPermissions(['clipboard-read', 'clipboard-write']);
});

afterAll(async () => {
  await site.context.clearPermissions();
});

test.each([
  ['an escape', `${HOSTILE_COMMAND} #\u001b[2K\u001b[1Gls -la src/`, '⟨ESC⟩'],
  ['an operating system command', `\u001b]0;${HOSTILE_COMMAND}\u0007ls -la src/`, '⟨ESC⟩'],
  ['its 8-bit form', `\u009d${HOSTILE_COMMAND}\u009cls -la src/`, '⟨OSC⟩'],
  ['direction marks', `ls \u202e\u2066${HOSTILE_COMMAND}\u2069\u2066`, '⟨RLO⟩'],
])('a command is shown as it runs when it has %s', async (what, command, sign) => {
  await expectShownVerbatim(site, `shown-all-disguised by ${what}`, command, sign);
});

describe('a request cannot be allowed by', () => {
  const COVERS: { what: string; size: [number, number]; cover: (page: Page) => Promise<void> }[] = [
    { what: 'the log, in a narrow window', size: [390, 760], cover: openLog },
    { what: 'the log, in a low window', size: [1000, 470], cover: openLog },
    {
      what: 'a list of the log',
      size: [1280, 620],
      cover: async (page) => {
        await openLog(page);
        await page.getByRole('button', { name: /^Component/ }).click();
        await page.getByText('part 39').last().waitFor();
      },
    },
  ];

  test.each(COVERS)('seeing what $what covered', async ({ what, size: [width, height], cover }) => {
    const stage = await askingAgent(site, `shown-all-covered by ${what}`);
    const { page, agent, sessionId, runner } = stage;
    await page.setViewportSize({ width, height });
    await agent.write(sessionId, message('before', LONG_TEXT));
    const lines = Array.from({ length: 40 }, (_, index) => ({ message: 'hello', component: `part ${index}` }));
    await new LogWriter(site.server, `shown-all-covered by ${what}`, `shown-all-log of ${what}`).write(lines);
    await cover(page);
    await expectNotAllowedWhileCovered(stage);
    await page.close();
    runner.leave();
  });

  test('seeing what is outside the visible part of a magnified page', async () => {
    const { page, ask, runner } = await askingAgent(site, 'shown-all-magnified');
    const cdp = await site.context.newCDPSession(page);
    await cdp.send('Emulation.setPageScaleFactor', { pageScaleFactor: 4 });
    await expect.poll(() => page.evaluate(() => visualViewport?.scale)).toBe(4);
    const start = performance.now();
    await ask('far off', { command: 'rm -rf build' });
    const notice = page.getByText('Review the whole input to enable Allow.');
    await notice.waitFor();
    await expect.poll(() => performance.now() - start).toBeGreaterThan(2 * SETTLE_MS);
    expect(await notice.isVisible()).toBe(true);
    await cdp.send('Emulation.setPageScaleFactor', { pageScaleFactor: 1 });
    await notice.waitFor({ state: 'hidden' });
    await page.close();
    runner.leave();
  });
});

async function openLog(page: Page): Promise<void> {
  await page.keyboard.press('l');
  await page.getByRole('region', { name: 'Log' }).waitFor();
}

test('a permission of 300 kB can be allowed once every page of its input was opened and scrolled through', async () => {
  const { page, ask, runner, close } = await askingAgent(site, 'shown-all-flood');
  const command = `${'echo a line that is not short at all\n'.repeat(9_000)}rm -rf ~`;
  await ask('huge', { command });
  const card = cardOf(page, 'Ask huge');
  await card.getByText('Show the rest of the input to enable Allow.').waitFor();
  const more = card.getByRole('button', { name: /^Show more/ });
  for (let pages = 0; (await more.count()) > 0; pages += 1) {
    expect(pages).toBeLessThan(20);
    expect(await allowOf(card).isEnabled()).toBe(false);
    await more.click();
  }
  await card.getByText('Review the whole input to enable Allow.').waitFor();
  const input = card.getByRole('group', { name: 'Input' });
  // A jump to the end skips what lies between.
  await input.evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await page.waitForTimeout(SETTLE_MS);
  expect(await allowOf(card).isEnabled()).toBe(false);
  const scrollThrough = () =>
    input.evaluate(async (box) => {
      for (
        box.scrollTop = 0;
        box.scrollTop + box.clientHeight < box.scrollHeight - 1;
        box.scrollTop += box.clientHeight - 20
      )
        await new Promise(requestAnimationFrame);
    });
  // A busy page does not see each step.
  await expect
    .poll(async () => {
      await scrollThrough();
      return allowOf(card).isEnabled();
    })
    .toBe(true);
  await pressUntil(allowOf(card), card.getByText('Sending to the agent…'));
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'huge', behavior: 'allow' });
  await close();
});

for (const [width, height] of [
  [360, 740],
  [1280, 800],
] as const) {
  test(`request cards have no axe violation and fit at ${width} px, in light and dark`, async () => {
    const { page, ask, agent, runner, sessionId, close } = await askingAgent(site, `shown-all-width-${width}`);
    await page.setViewportSize({ width, height });
    const lines = Array.from({ length: 40 }, (_, index) => `echo ${index}`).join('\n');
    await ask('q', {
      command: `curl x|sh #\rls \u202e\n\tmake\n${lines}`,
      'na\u200bme': { deep: ['\u001b'] },
      limit: '5',
    });
    await ask('p', { file_path: '/a', old_string: 'x\u00a0y', new_string: 'שלום\nworld' });
    await expect.poll(() => cardOf(page, 'Ask p').count()).toBe(1);
    expect(await violationsInBothThemes(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await agent.write(sessionId, message('long', LONG_TEXT));
    await pinnedOf(page).waitFor();
    await agent.write(sessionId, [requestResolved('q', 'cancelled')]);
    await pinnedOf(page).getByText('Withdrawn. Nothing was sent.').waitFor();
    expect(await violationsInBothThemes(page)).toEqual([]);
    expect(runner.commands).toEqual([]);
    await close();
  });
}

test.each([
  [740, 360],
  [800, 300],
])(
  'pins a request whose head is out of view, and enables Allow only once its head was seen, at %i × %i',
  (width, height) => expectPinnedUntilRead(site, width, height, null),
);

test('a request shows every key of its input, live and reloaded', async () => {
  const { page, ask, close } = await askingAgent(site, 'asked-whole');
  await ask('q', JSON.parse('{"command":"ls","__proto__":{"command":"evil"},"nested":{"__proto__":{"a":1}}}'));
  const box = cardOf(page, 'Ask q').getByRole('group', { name: 'Input' });
  await box.waitFor();
  const shown = await box.textContent();
  expect(shown).toContain('evil');
  expect(shown?.match(/__proto__/g)).toHaveLength(2);
  await page.reload();
  await live(page);
  expect(await box.textContent()).toBe(shown);
  await close();
});
