import { expect, test } from 'vitest';
import { playRecording } from '../support/play-recording';
import { transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('a shell command that fails in the background has the documented accessible names', async () => {
  const session = await playRecording(site.server, 'bash-bg', 'names-bash-bg');
  const page = await site.open(`/sessions/${session}`);
  await page.getByRole('navigation', { name: 'Sessions', exact: true }).waitFor();
  await page.getByRole('status', { name: 'Connection', exact: true }).getByText('Live').waitFor();
  const turns = transcriptOf(page).getByRole('article');
  await expect
    .poll(() => turns.evaluateAll((all) => all.map((turn) => turn.getAttribute('aria-label'))))
    .toEqual(['User turn', 'Between-run turn: woken by Poll (failed, exit 3)', 'Outside any turn']);
  const userTurn = transcriptOf(page).getByRole('article', { name: 'User turn', exact: true });
  await userTurn.getByRole('group', { name: 'Task Poll: failed', exact: true }).waitFor();
  const wokenTurn = page.getByRole('article', {
    name: 'Between-run turn: woken by Poll (failed, exit 3)',
    exact: true,
  });
  await wokenTurn.getByText('Poll exited with code 3').waitFor();
  expect(await wokenTurn.getByRole('link', { name: 'Poll', exact: true }).count()).toBe(1);
  await site.leave(page);
});
