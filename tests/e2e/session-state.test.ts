import { test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('keys show why a session is in its state, and name, mark, pin and archive it on every page at once', async () => {
  const agent = new EventWriter(site.server, 'state');
  await agent.write('state-failed', [
    ...userTurn('r1', 'Mend the login test', 'Trying.'),
    { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
    { type: 'RUN_ERROR', threadId: 's', runId: 'r2', message: 'No credit left' },
  ]);
  const home = await site.open('/?agent=state');
  const listed = (group: RegExp) => home.getByRole('region', { name: group }).getByText('The login test').waitFor();
  await home.locator('[data-session-row="state-failed"]').waitFor();
  const page = await site.load('/sessions/state-failed');
  await live(page);
  await page.keyboard.press('E');
  const why = page.getByRole('dialog', { name: 'Why this state' });
  await why.getByRole('row', { name: /Last turn \(decided\) Failed: No credit left/ }).waitFor();
  await why.getByText(/^Complete to #\d+, nothing missing$/).waitFor();
  await page.keyboard.press('Escape');
  await why.waitFor({ state: 'detached' });

  const menu = page.getByRole('dialog', { name: 'Manage this session' });
  await page.keyboard.press('M');
  await menu.getByRole('button', { name: 'Rename…' }).press('Enter');
  await page.keyboard.type('The login test');
  await page.keyboard.press('Enter');
  await menu.waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'The login test', level: 1 }).waitFor();
  await listed(/^Failed 1/);
  const press = async (name: string) => {
    await page.keyboard.press('M');
    await menu.getByRole('button', { name, exact: true }).press('Enter');
    await menu.waitFor({ state: 'detached' });
  };
  await press('Mark as seen');
  await listed(/^Failed, seen/);
  await press('Pin');
  await listed(/^Pinned/);
  await press('Archive');
  await listed(/^Archived/);
  await agent.write('state-failed', [{ type: 'RUN_STARTED', threadId: 's', runId: 'r3' }]);
  await listed(/^Pinned/);
  await page.close();
  await site.leave(home);
});
