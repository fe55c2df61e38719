import { beforeAll, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);
let agent: EventWriter;
beforeAll(async () => {
  agent = new EventWriter(site.server, 'states');
});

test('an idle session is listed as waiting on its tasks without a record that says so', async () => {
  await agent.write('states-waits', userTurn('r1', 'Run the tests', [taskStarted('b1', 'npm test')]));
  const home = await site.open('/?agent=states');
  await home
    .getByRole('region', { name: /^Waiting on background/ })
    .getByText('Run the tests')
    .waitFor();
  await site.leave(home);
});

test('the explanation of a state and the menu of a session have no axe violation', async () => {
  await agent.write('states-quiet', userTurn('r1', 'Say hello', 'Hello.'));
  const page = await site.load('/sessions/states-quiet');
  await live(page);
  for (const [key, name] of [
    ['E', 'Why this state'],
    ['M', 'Manage this session'],
  ] as const) {
    await page.keyboard.press(key);
    const dialog = page.getByRole('dialog', { name });
    await dialog.waitFor();
    expect(await violationsInBothThemes(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  }
  await page.close();
});
