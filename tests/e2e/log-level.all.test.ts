import type { AgentLogLevel } from '@interlude/protocol/read-models';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { startSilentRunner } from '../support/silent-runner';
import { tempDir } from '../support/temp-dir';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(visitOwn);

async function runner(agentId: string) {
  const started = await startSilentRunner({
    agentId,
    folder: await tempDir(),
    endpoint: async () => ({ url: site.server.url, token: site.server.token }),
  });
  await expect
    .poll(() => site.read(`/agents/${agentId}`).catch(String))
    .toMatchObject({
      agent: { connection: 'connected' },
    });
  return started;
}

test('has no axe violations while a level is set, for one agent or several', async () => {
  await runner('looked-at');
  const page = await site.open('/agents/looked-at');
  const debug = page
    .getByRole('radiogroup', { name: 'Runner log level' })
    .getByRole('radio', { name: 'debug', exact: true });
  await debug.click();
  await page.getByText(/^debug since .*, back to info in 14 min \d+ s$/).waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.goto(`${site.server.url}/agents`);
  await page.getByRole('checkbox', { name: 'Select “looked-at”' }).check();
  await debug.click();
  await page.getByText('1 of 1 confirmed').waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.close();
});

test('a level expires at the server and at the runner, even when the server is killed meanwhile', async () => {
  const { logger } = await runner('limited');
  const levelOf = () => site.read<AgentLogLevel>('/agents/limited/log-level');
  const put = await fetch(`${site.server.url}/api/v1/agents/limited/log-level`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${site.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ level: 'debug', ttlSeconds: 4 }),
  });
  expect(put.status).toBe(202);
  await expect.poll(levelOf).toMatchObject({ level: 'debug', desired: { state: 'confirmed' } });
  await site.server.kill9();
  await expect.poll(() => logger.level.get()).toBe('info');
  await site.server.restart();
  await expect.poll(levelOf).toMatchObject({ level: 'info', by: null, desired: null });
});
