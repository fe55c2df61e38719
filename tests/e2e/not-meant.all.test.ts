import { expect, test } from 'vitest';
import {
  clickOnceMoved,
  expectNoClickOnSlidingCard,
  openSettledCard,
  SCROLLS,
  topOf,
} from '../support/permission-card';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('a card that moves up when the one above it goes ignores a click while an arrow key is held', async () => {
  await expectNoClickOnSlidingCard(site, 'meant-all-up', { scroll: SCROLLS['an arrow key'], isFollowed: false });
});

test('a card that moves up with the followed end ignores a click while the wheel turns', async () => {
  await expectNoClickOnSlidingCard(site, 'meant-all-end', { scroll: SCROLLS['the wheel'], isFollowed: true });
});

test('a settled card accepts a click at once when a busy page handles the scrolling late', async () => {
  const { page, allow, runner, close } = await openSettledCard(site, 'meant-all-busy');
  await page.evaluate(() => {
    const beBusy = () => {
      const since = performance.now();
      while (performance.now() - since < 600);
    };
    window.addEventListener('wheel', beBusy, { once: true, passive: true });
  });
  const clicked = clickOnceMoved(allow, await topOf(allow));
  await page.mouse.wheel(0, 40);
  expect((await clicked).isOffered).toBe(false);
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'a', behavior: 'allow' });
  await close();
});
