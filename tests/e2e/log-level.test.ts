import type { AgentSummary } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type SilentRunner, startSilentRunner } from '../support/silent-runner';
import { tempDir } from '../support/temp-dir';
import { live } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

/** Starts a runner, and resolves once its agent has a page. */
async function runner(agentId: string, folder?: string): Promise<SilentRunner> {
  const started = await startSilentRunner({
    agentId,
    folder: folder ?? (await tempDir()),
    endpoint: async () => ({ url: site.server.url, token: site.server.token }),
  });
  await expect.poll(() => connectionOf(agentId).catch(String)).toBe('connected');
  return started;
}
const connectionOf = async (agentId: string) =>
  (await site.read<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent.connection;
const group = (page: Page) => page.getByRole('radiogroup', { name: 'Runner log level' });
const level = (page: Page, name: string) => group(page).getByRole('radio', { name, exact: true });

test('sets a running runner’s level for a time, until it is changed and reset', async () => {
  const { logger } = await runner('log-level-turned');
  const page = await site.open('/agents/log-level-turned');
  await live(page);
  await page.getByText('info, its default').waitFor();
  await level(page, 'debug').click();
  await page.getByText(/^debug since \d\d:\d\d:\d\d, back to info in 14 min \d+ s$/).waitFor();
  expect(logger.level.get()).toBe('debug');
  expect(await level(page, 'debug').getAttribute('aria-checked')).toBe('true');

  await page.getByLabel('Time limit').selectOption('1 h');
  await page.getByText(/^debug since \d\d:\d\d:\d\d, back to info in 59 min \d+ s$/).waitFor();
  await page.getByLabel('Time limit').selectOption('until changed');
  await page.getByText(/^debug since \d\d:\d\d:\d\d, until changed$/).waitFor();

  // At the runner's control port.
  logger.level.set('error', { by: 'control-port' });
  await page
    .getByText(/^the runner has reported error since \d\d:\d\d:\d\d, set by control-port; debug was requested$/)
    .waitFor();
  await page.getByRole('button', { name: 'Back to default' }).click();
  await page.getByText('info, its default').waitFor();
  expect(logger.level.get()).toBe('info');
  await site.leave(page);
});

test('sets the level of all selected agents, including an absent one on its return', async () => {
  const here = await runner('log-level-here');
  const folder = await tempDir();
  const gone = await runner('log-level-gone', folder);
  await gone.close();
  await expect.poll(() => connectionOf('log-level-gone')).toBe('away');
  const page = await site.open('/agents?q=log-level');
  await page.getByRole('checkbox', { name: 'Select “log-level-here”' }).check();
  await page.getByRole('checkbox', { name: 'Select “log-level-gone”' }).check();
  await page.getByText('2 selected').waitFor();
  await level(page, 'debug').click();
  await page.getByText('1 of 2 confirmed, 1 waiting for the agent').waitFor();
  const outcome = page.getByRole('list', { name: 'Results' });
  await outcome.getByText(/^debug since .*, back to info in 1[45] min \d+ s$/).waitFor();
  await outcome.getByText(/^debug requested .*; waiting: agent offline since .*; expires in 14 min \d+ s$/).waitFor();
  expect(here.logger.level.get()).toBe('debug');
  const back = await runner('log-level-gone', folder);
  await page.getByText('2 of 2 confirmed').waitFor();
  expect(back.logger.level.get()).toBe('debug');
  await site.leave(page);
});
