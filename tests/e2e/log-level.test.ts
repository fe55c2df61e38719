import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentLogLevel, AgentSummary } from '@/lib/protocol/read-models';
import { barriersInBothThemes } from '../support/barriers';
import { type QuietRunner, startQuietRunner } from '../support/quiet-runner';
import { tempDir } from '../support/temp-dir';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';

/** The level turned by hand, in a browser, of runners that run. */
let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

/** A runner the dashboard has heard of, so that its agent has a page. */
async function runner(agentId: string, folder?: string): Promise<QuietRunner> {
  const started = await startQuietRunner({
    agentId,
    folder: folder ?? (await tempDir()),
    endpoint: async () => ({ url: it.server.url, token: it.server.token }),
  });
  await expect.poll(() => connectionOf(agentId).catch(String)).toBe('connected');
  return started;
}
const levelOf = (agentId: string) => it.read<AgentLogLevel>(`/agents/${agentId}/log-level`);
const connectionOf = async (agentId: string) =>
  (await it.read<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent.connection;
const group = (page: Page) => page.getByRole('radiogroup', { name: 'Runner log level' });
const level = (page: Page, name: string) => group(page).getByRole('radio', { name, exact: true });

test('turns a running runner, shows when it goes back, and gives it back', async () => {
  const { logger } = await runner('turned');
  const page = await it.open('/agents/turned');
  await live(page);
  await page.getByText('info, its default').waitFor();
  await level(page, 'debug').click();
  await page.getByText(/^debug since \d\d:\d\d:\d\d, back to info in 14:\d\d$/).waitFor();
  expect(logger.level.get()).toBe('debug');
  expect(await level(page, 'debug').getAttribute('aria-checked')).toBe('true');
  expect(await barriersInBothThemes(page)).toEqual([]);

  await page.getByLabel('Time limit').selectOption('1 h');
  await page.getByText(/^debug since \d\d:\d\d:\d\d, back to info in 59:\d\d$/).waitFor();
  await page.getByLabel('Time limit').selectOption('until changed');
  await page.getByText(/^debug since \d\d:\d\d:\d\d, until it is changed$/).waitFor();

  // somebody else turns it, at the runner's own port
  logger.level.set('error', { by: 'control-port' });
  await page
    .getByText(/^the runner says error since \d\d:\d\d:\d\d, set by control-port; debug was asked for$/)
    .waitFor();
  await page.getByRole('button', { name: 'Back to default' }).click();
  await page.getByText('info, its default').waitFor();
  expect(logger.level.get()).toBe('info');
  await page.close();
});

test('by keys alone: arrows pass over levels without turning anything, space turns', async () => {
  const { logger } = await runner('keyed');
  const page = await it.open('/agents/keyed');
  await live(page);
  await page.getByText('info, its default').waitFor();
  await level(page, 'info').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowLeft');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('warn');
  expect((await levelOf('keyed')).desired).toBeNull();
  await page.keyboard.press('Space');
  await expect.poll(() => logger.level.get()).toBe('warn');
  await page.getByText(/^warn since .*, until it is changed$/).waitFor();
  await page.close();
});

test('of all agents that are selected, each with what came of it: one waits until it is back', async () => {
  const here = await runner('here');
  const folder = await tempDir();
  const gone = await runner('gone', folder);
  await gone.close();
  await expect.poll(() => connectionOf('gone')).toBe('away');
  const page = await it.open('/agents');
  await live(page);
  await page.getByRole('checkbox', { name: 'Select here' }).check();
  await page.getByRole('checkbox', { name: 'Select gone' }).check();
  await page.getByText('2 selected').waitFor();
  await level(page, 'debug').click();
  await page.getByText('1 of 2 confirmed, 1 waiting for the agent').waitFor();
  const outcome = page.getByRole('list', { name: 'What came of it' });
  await outcome.getByText(/^debug since .*, back to info in 1[45]:\d\d$/).waitFor();
  await outcome.getByText(/^debug requested .*; waits: the agent is away since .*; over in 14:\d\d$/).waitFor();
  expect(here.logger.level.get()).toBe('debug');
  expect(await barriersInBothThemes(page)).toEqual([]);
  const back = await runner('gone', folder);
  await page.getByText('2 of 2 confirmed').waitFor();
  expect(back.logger.level.get()).toBe('debug');
  await page.close();
});

test('a time limit ends, also when the server is killed in between, at the server and at the runner', async () => {
  const { logger } = await runner('limited');
  const put = await fetch(`${it.server.url}/api/v1/agents/limited/log-level`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ level: 'debug', ttlSeconds: 4 }),
  });
  expect(put.status).toBe(202);
  await expect.poll(() => levelOf('limited')).toMatchObject({ level: 'debug', desired: { state: 'confirmed' } });
  await it.server.kill9();
  await expect.poll(() => logger.level.get()).toBe('info');
  await it.server.restart();
  await expect.poll(() => levelOf('limited')).toMatchObject({ level: 'info', by: null, desired: null });
});
