import { expect, test } from 'vitest';
import { playRecording } from '../support/play-recording';
import { transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const it = perFile(visit);

test('a shell command that fails in the background has the documented accessible names', async () => {
  const session = await playRecording(it.server, 'bash-bg', 'names-bash-bg');
  const page = await it.open(`/sessions/${session}`);
  await page.getByRole('navigation', { name: 'Sessions', exact: true }).waitFor();
  await page.getByRole('status', { name: 'Connection', exact: true }).getByText('Live').waitFor();
  const turns = transcriptOf(page).getByRole('article');
  await expect
    .poll(() => turns.evaluateAll((all) => all.map((turn) => turn.getAttribute('aria-label'))))
    .toEqual(['User turn', 'Between-run turn: woken by Poll (failed, exit 3)', 'Outside any turn']);
  const asked = transcriptOf(page).getByRole('article', { name: 'User turn', exact: true });
  await asked.getByRole('group', { name: 'Task Poll: failed', exact: true }).waitFor();
  const woken = page.getByRole('article', { name: 'Between-run turn: woken by Poll (failed, exit 3)', exact: true });
  await woken.getByText('Poll exited with code 3').waitFor();
  expect(await woken.getByRole('link', { name: 'Poll', exact: true }).count()).toBe(1);
  await it.leave(page);
});
