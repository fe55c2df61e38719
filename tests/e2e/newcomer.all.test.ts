import type { SessionSummary, Turn } from '@interlude/protocol/read-models';
import { ASSISTANT } from '@interlude/runner/cli/demo/assistant-script';
import { FLEET } from '@interlude/runner/cli/demo/demo-source';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliRun, startCli } from '../support/cli';
import { press } from '../support/press';
import { expectWithin } from '../support/timing';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(visitOwn);
let demo: CliRun;
beforeAll(async () => {
  demo = startCli(['demo'], {
    INTERLUDE_DATA_DIR: site.server.dataDir,
    INTERLUDE_TOKEN: site.server.token,
    INTERLUDE_URL: site.server.url,
  });
});
afterAll(async () => {
  demo.process.kill('SIGINT');
  await demo.ended;
});

test('a task of the demo ends within ten seconds and wakes its agent', async () => {
  const page = await site.load('/');
  const nav = page.getByRole('navigation', { name: 'Sessions' });

  const wokenSession = nav.getByRole('link').filter({ hasText: 'Woke by itself' }).first();
  await wokenSession.click();
  const turn = page.getByRole('article', { name: /^Between-run turn: woken by .+ \(\w+(, exit \d+)?\)/ }).last();
  await turn.waitFor();
  // By the demo's clock, which does not depend on the speed of the page.
  const id = new URL(page.url()).pathname.split('/').at(-1);
  const { turns } = await site.read<{ turns: Turn[] }>(`/sessions/${id}/transcript`);
  const { sessions } = await site.read<{ sessions: SessionSummary[] }>('/sessions');
  const wokeAt = turns.find(({ kind }) => kind === 'between-run')?.startedAt ?? Infinity;
  // Some were in the middle of their recording when the demo started, and began before it.
  const atTheBeginning = FLEET.filter(({ beginsAtMs }) => beginsAtMs === 0).map(({ agentId }) => agentId);
  const startedAt = sessions.filter(({ agentId }) => atTheBeginning.includes(agentId)).map((one) => one.startedAt);
  expect(startedAt).not.toEqual([]);
  expectWithin(wokeAt - Math.min(...startedAt), 10_000);

  const toCard = turn.locator('header').getByRole('link').first();
  const description = (await toCard.textContent()) ?? '';
  await toCard.click();
  const card = page.getByRole('group', { name: new RegExp(`^Task ${escaped(description)}: `) }).first();
  await expect.poll(() => isFocused(card)).toBe(true);
  await card.getByRole('link', { name: 'Woke the agent' }).click();
  await expect.poll(() => isFocused(turn)).toBe(true);
  await page.close();
});

test('an agent of the demo logs more at level debug', async () => {
  const page = await site.load('/agents/checkout-service/logs');
  const log = page.getByRole('log', { name: 'Agent log' });
  await log.getByText(/playing recording test-run as session checkout-service-/).waitFor();
  await log
    .getByText(/turn started: answering a message$/)
    .first()
    .waitFor();
  await log
    .getByText(/task \w+ “.+” \w+, exit \d+ after [\d.]+ s$/)
    .first()
    .waitFor();
  expect(await log.getByText(/tells of/).count()).toBe(0);
  await page.getByRole('button', { name: /^Runner writes/ }).click();
  await page.getByRole('radiogroup', { name: 'Runner log level' }).getByRole('radio', { name: 'debug' }).click();
  await log.getByText(/info → debug/).waitFor();
  // Its sent records, or its status should it be idle just then.
  await log
    .getByText(/tells of|status: /)
    .first()
    .waitFor();
  await page.close();
});

test('the demo’s answering agent runs what it was allowed to, and wakes by itself', async () => {
  const page = await site.load('/');
  const nav = page.getByRole('navigation', { name: 'Sessions' });
  await nav.getByRole('link').filter({ hasText: ASSISTANT }).first().click();
  await transcriptOf(page).getByText('I am a scripted demo agent').waitFor();
  await live(page);
  const composer = page.getByRole('textbox', { name: `Message to “${ASSISTANT}”` });
  await composer.fill('Run the tests, please');
  await composer.press('Enter');
  const request = page.getByRole('region', { name: /^Permission: “Run the tests/ }).first();
  await request.getByText('node tests.mjs').waitFor();
  await press(request.getByRole('button', { name: 'Allow', exact: true }));
  await page
    .getByRole('group', { name: /^Task Run the tests: running/ })
    .first()
    .waitFor();
  const wokenTurn = page.getByRole('article', { name: /^Between-run turn: woken by Run the tests \(completed/ });
  await wokenTurn.getByText('The tests are done, with exit code 0', { exact: false }).waitFor();
  await page.close();
});

test('no session works once the demo is stopped, and the answering agent has exited', async () => {
  const sessions = async () => (await site.read<{ sessions: SessionSummary[] }>('/sessions')).sessions;
  const working = async () => (await sessions()).filter(({ state }) => state === 'working' || state === 'needs-input');
  await expect.poll(async () => (await working()).length).toBeGreaterThan(0);
  demo.process.kill('SIGINT');
  expect((await demo.ended).exitCode).toBe(130);
  await expect.poll(working).toEqual([]);
  expect((await sessions()).find(({ agentId }) => agentId === ASSISTANT)?.state).toBe('exited');

  const recorded = (await sessions()).find(({ agentId }) => agentId !== ASSISTANT);
  const page = await site.load(`/sessions/${recorded?.id}`);
  const composer = page.getByRole('region', { name: 'Composer' });
  await composer.getByText(`“${ASSISTANT}” is offline until the demo runs again`).waitFor();
  expect(await composer.getByRole('link').count()).toBe(0);
  await page.close();
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
