import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SessionSummary, Turn } from '@/lib/protocol/read-models';
import { ASSISTANT } from '@/lib/runner/demo/assistant-script';
import { FLEET } from '@/lib/runner/demo/fleet';
import { type CliRun, startCli } from '../support/cli';
import { expectWithin } from '../support/pace';
import { press } from '../support/press';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
let demo: CliRun | null = null;
beforeAll(async () => {
  it = await visitOwn({ signedIn: false });
});
afterAll(async () => {
  demo?.process.kill('SIGINT');
  await demo?.ended;
  await it.close();
});

test('a visitor without a sign-in is told how to get one, and a pasted token leads to where they wanted to go', async () => {
  const page = await it.open('/agents');
  await page.getByText('Open the sign-in link').waitFor();
  await page.getByLabel('Token').fill('not-the-token-of-this-server');
  await page.getByRole('button').click();
  await page.waitForURL(/reason=wrong-token/);
  expect(await page.getByLabel('Token').getAttribute('aria-invalid')).toBe('true');
  await page.getByLabel('Token').fill(it.server.token);
  await page.getByRole('button').click();
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/agents');
  await it.context.clearCookies();
  await page.close();
});

test('the sign-in link leads to a start page that says what to do, and the token does not stay in the address', async () => {
  const page = await it.open(`/sign-in?token=${it.server.token}`);
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  expect(page.url()).toBe(`${it.server.url}/`);
  await page.getByText('interlude -- demo').waitFor();
  await page.getByText('interlude -- replay').waitFor();
  await page.getByText('interlude -- runner claude').waitFor();
  await page.getByText('interlude -- hooks install').waitFor();
  await live(page);
  await page.close();
});

test('the link that the terminal printed signs in once, under a name of its own; the owner’s token is not printed', async () => {
  const link = /Sign in: {2}(\S+)/.exec(it.server.output)?.[1] ?? '';
  expect(link).toMatch(/\?token=ilc_/);
  expect(it.server.output).not.toContain(it.server.token);
  const page = await it.context.newPage();
  await page.goto(link);
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  const { hostname, port } = new URL(page.url());
  expect(hostname).toMatch(/^interlude-\w{8}\.localhost$/);
  expect(port).toBe(new URL(it.server.url).port);
  expect(it.server.output).toContain(`Browsers on this machine have it at http://${hostname}:${port}`);
  // A page that is open would say that it is signed out.
  await page.goto('about:blank');
  await it.context.clearCookies({ name: 'interlude', domain: hostname });
  await page.goto(link);
  await page.waitForURL(/\/signed-out\?reason=old-link/);
  await page.close();
});

test('the terminal it was started in says the same ways to connect an agent', () => {
  for (const way of ['runner claude', 'hooks install', 'runner hooks', 'replay']) {
    expect(it.server.output).toContain(`npm run -s interlude -- ${way}`);
  }
});

test('in the demo sessions appear by themselves, and within ten seconds a task ends and its agent wakes', async () => {
  const page = await it.open(`/sign-in?token=${it.server.token}`);
  const nav = page.getByRole('navigation', { name: 'Sessions' });
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  demo = startCli(['demo'], {
    INTERLUDE_DATA_DIR: it.server.dataDir,
    INTERLUDE_TOKEN: it.server.token,
    INTERLUDE_URL: it.server.url,
  });
  await nav.getByRole('link').first().waitFor();
  await expect.poll(() => nav.getByRole('link').count()).toBeGreaterThanOrEqual(6);

  const woken = nav.getByRole('link').filter({ hasText: 'Woke by itself' }).first();
  await woken.click();
  const turn = page.getByRole('article', { name: /^Between-run turn: woken by .+ \(\w+(, exit \d+)?\)/ }).last();
  await turn.waitFor();
  // by the clock of the demo: how fast a page is on this machine is no matter here
  const id = new URL(page.url()).pathname.split('/').at(-1);
  const { turns } = await it.read<{ turns: Turn[] }>(`/sessions/${id}/transcript`);
  const { sessions } = await it.read<{ sessions: SessionSummary[] }>('/sessions');
  const wokeAt = turns.find(({ kind }) => kind === 'between-run')?.startedAt ?? Infinity;
  // Some are in the middle of their recording when the demo starts, and began before it.
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

test('an agent of the demo has a log, and turned to debug it says more', async () => {
  const page = await it.open('/agents/checkout-service/logs');
  const log = page.getByRole('log', { name: 'Agent log' });
  await log.getByText(/plays the recording test-run as session checkout-service-/).waitFor();
  await log
    .getByText(/turn began: answers a message$/)
    .first()
    .waitFor();
  await log
    .getByText(/task \w+ “.+” \w+, exit \d+ after [\d.]+ s$/)
    .first()
    .waitFor();
  expect(await log.getByText(/tells of/).count()).toBe(0);
  await page.getByRole('radiogroup', { name: 'Runner log level' }).getByRole('radio', { name: 'debug' }).click();
  await log.getByText(/info → debug/).waitFor();
  // what it hands over, or how it is, should it rest just then
  await log
    .getByText(/tells of|status: /)
    .first()
    .waitFor();
  await page.close();
});

test('somebody types to the agent that answers, allows what it asks for, and sees it wake by itself', async () => {
  const page = await it.open('/');
  const nav = page.getByRole('navigation', { name: 'Sessions' });
  await nav.getByRole('link').filter({ hasText: ASSISTANT }).first().click();
  await transcriptOf(page).getByText('I am a scripted agent of the demo').waitFor();
  await live(page);
  const composer = page.getByRole('textbox', { name: `Message to ${ASSISTANT}` });
  await composer.fill('Run the tests, please');
  await composer.press('Enter');
  const request = page.getByRole('region', { name: /^Permission: Run the tests/ }).first();
  await request.getByText('node tests.mjs').waitFor();
  await press(request.getByRole('button', { name: 'Allow', exact: true }));
  await page
    .getByRole('group', { name: /^Task Run the tests: running/ })
    .first()
    .waitFor();
  const woken = page.getByRole('article', { name: /^Between-run turn: woken by Run the tests \(completed/ });
  await woken.getByText('The tests are done, with exit code 0', { exact: false }).waitFor();
  await page.close();
});

test('a recording’s session says before one types that it can’t answer, and leads to the agent that can; its API refuses with the reason', async () => {
  const sessions = async () => (await it.read<{ sessions: SessionSummary[] }>('/sessions')).sessions;
  const working = async () =>
    (await sessions()).filter(
      ({ state, agentId }) => agentId !== ASSISTANT && (state === 'working' || state === 'needs-input'),
    );
  await expect.poll(async () => (await working()).length).toBeGreaterThan(0);
  // The one that goes on longest; one that ends at this moment takes nothing.
  const say = async () => {
    const [one] = (await working()).sort((a, b) => b.startedAt - a.startedAt);
    const response = await fetch(`${it.server.url}/api/v1/sessions/${encodeURIComponent(one?.id ?? '')}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'are you there?', clientId: 'newcomer-1' }),
    });
    return { id: one?.id, status: response.status };
  };
  let said = await say();
  while (said.status === 409 || said.id === undefined) said = await say();
  expect(said.status).toBe(202);
  const page = await it.open(`/sessions/${said.id}`);
  await live(page);
  const instead = page.getByRole('region', { name: 'Composer' });
  await instead.getByText('this agent replays a recording, and nobody reads messages to it').waitFor();
  expect(await page.getByRole('textbox', { name: /^Message to/ }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /^(?:Interrupt|Allow|Deny|Stop )/ }).count()).toBe(0);

  await transcriptOf(page)
    .getByText(/this agent replays a recording, and nobody reads messages to it/)
    .first()
    .waitFor();

  await instead.getByRole('link', { name: `Write to ${ASSISTANT} instead` }).click();
  await page.getByRole('textbox', { name: `Message to ${ASSISTANT}` }).waitFor();
  await page.close();
});

test('when the demo is stopped nothing says that it works, and the agent that answers has ended', async () => {
  const sessions = async () => (await it.read<{ sessions: SessionSummary[] }>('/sessions')).sessions;
  const working = async () => (await sessions()).filter(({ state }) => state === 'working' || state === 'needs-input');
  await expect.poll(async () => (await working()).length).toBeGreaterThan(0);
  demo?.process.kill('SIGINT');
  expect((await demo?.ended)?.exitCode).toBe(130);
  await expect.poll(working).toEqual([]);
  expect((await sessions()).find(({ agentId }) => agentId === ASSISTANT)?.state).toBe('exited');

  const recorded = (await sessions()).find(({ agentId }) => agentId !== ASSISTANT);
  const page = await it.open(`/sessions/${recorded?.id}`);
  const composer = page.getByRole('region', { name: 'Composer' });
  await composer.getByText(`${ASSISTANT} is offline until the demo runs again`).waitFor();
  expect(await composer.getByRole('link').count()).toBe(0);
  await page.close();
});

test('no page had anything to complain about', () => {
  expect(it.complaints).toEqual([]);
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
