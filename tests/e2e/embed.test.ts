import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbedStage, embedIn, embedStage } from '../support/embed-stage';
import { EventWriter } from '../support/event-writer';
import { userTurn } from '../support/turn-events';

let it: EmbedStage;
beforeAll(async () => {
  it = await embedStage();
});
afterAll(() => it.close());

test('a session is shown live in a console of another site, by a token over the port', async () => {
  const agent = new EventWriter(it.server, 'agent-thin');
  await agent.write('thin', userTurn('r1', 'Hello', 'Here I am'));
  const page = await it.open('crossSite', 'session=thin');
  page.on('console', (m) => console.log(m.text()));
  const frame = await embedIn(page, it.origin);
  try {
    await frame.getByText('Here I am').waitFor({ timeout: 10000 });
  } catch (e) {
    console.log(
      await frame.locator('body').innerText(),
      it.said,
      await page.evaluate(() => (window as any).events),
      it.front.passed.slice(-20),
    );
    await page.screenshot({ path: '/tmp/thin.png' });
    throw e;
  }
  await agent.write('thin', userTurn('r2', 'Go on', 'Said while it was watched'));
  await frame.getByText('Said while it was watched').waitFor();
  console.log(it.said, await page.evaluate(() => (window as any).events));
  await page.screenshot({ path: '/tmp/thin.png' });
  expect(1).toBe(1);
});
