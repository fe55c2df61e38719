import { afterAll, beforeAll, expect, test } from 'vitest';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { taskStarted, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** How a session stands, why, and what people make of it, in a browser and by keyboard. */
let it: OwnVisit;
let agent: EventWriter;
beforeAll(async () => {
  it = await visitOwn();
  agent = new EventWriter(it.server, 'builder');
  await agent.write('failed', [
    ...userTurn('r1', 'Mend the login test', 'Trying.'),
    { type: 'RUN_STARTED', threadId: 'failed', runId: 'r2' },
    { type: 'RUN_ERROR', threadId: 'failed', runId: 'r2', message: 'No credit left' },
  ]);
  await agent.write('quiet', userTurn('r1', 'Say hello', 'Hello.'));
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test('an agent that is still while its tasks run comes to wait on them, without any word of it', async () => {
  await agent.write('waits', userTurn('r1', 'Run the tests', [taskStarted('b1', 'npm test')]));
  const home = await it.open('/');
  await live(home);
  await home
    .getByRole('region', { name: /^Waiting on background/ })
    .getByText('Run the tests')
    .waitFor();
  await home.close();
});

test('the evidence of a state is a key away, says whether anything is missing, and has no barrier', async () => {
  const page = await it.open('/sessions/failed');
  await live(page);
  await page.keyboard.press('E');
  const why = page.getByRole('dialog', { name: 'Why this state' });
  await why.getByText('because the agent, or its last turn, has failed.').waitFor();
  await why.getByRole('row', { name: /Turn \(decided\) failed: No credit left/ }).waitFor();
  await why.getByText(/^Complete to #\d+, nothing missing$/).waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await why.waitFor({ state: 'detached' });
  await page.close();
});

test('a session is named, pinned, seen and archived by keyboard, on every page at once', async () => {
  const home = await it.open('/');
  await live(home);
  const page = await it.open('/sessions/failed');
  await live(page);
  const menu = page.getByRole('dialog', { name: 'Arrange this session' });
  await page.keyboard.press('M');
  await menu.waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await page.keyboard.type('The login test');
  await page.keyboard.press('Enter');
  await menu.waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'The login test', level: 1 }).waitFor();
  await home
    .getByRole('region', { name: /^Failed 1/ })
    .getByText('The login test')
    .waitFor();

  const press = async (name: string) => {
    await page.keyboard.press('M');
    await menu.getByRole('button', { name, exact: true }).press('Enter');
    await menu.waitFor({ state: 'detached' });
  };
  await press('Mark as seen');
  await home
    .getByRole('region', { name: /^Failed, seen/ })
    .getByText('The login test')
    .waitFor();
  await press('Pin');
  await home
    .getByRole('region', { name: /^Pinned/ })
    .getByText('The login test')
    .waitFor();
  await press('Archive');
  await home
    .getByRole('region', { name: /^Archived/ })
    .getByText('The login test')
    .waitFor();

  await agent.write('failed', [{ type: 'RUN_STARTED', threadId: 'failed', runId: 'r3' }]);
  await home
    .getByRole('region', { name: /^Pinned/ })
    .getByText('The login test')
    .waitFor();
  await page.close();
  await home.close();
});

test('every group of the list folds, and stays folded on the next visit', async () => {
  const page = await it.open('/');
  await live(page);
  const idle = page.getByRole('region', { name: /^Idle/ });
  await idle.getByText('Say hello').waitFor();
  await idle.getByRole('button', { name: /^Idle/ }).press('Enter');
  await idle.getByText('Say hello').waitFor({ state: 'detached' });
  await page.reload();
  await live(page);
  expect(await idle.getByRole('button', { name: /^Idle/ }).getAttribute('aria-expanded')).toBe('false');
  expect(await idle.getByText('Say hello').count()).toBe(0);
  await idle.getByRole('button', { name: /^Idle/ }).click();
  await idle.getByText('Say hello').waitFor();
  await page.close();
});
