import type { SessionSummary } from '@interlude/protocol/read-models';
import { ASSISTANT } from '@interlude/runner/cli/demo/assistant-script';
import { afterAll, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { type CliRun, runCli, startCli } from '../support/cli';
import { CONNECT } from '../support/first-start';
import { live, transcriptOf } from '../support/transcript-page';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(() => visitOwn({ signedIn: false }));
let demo: CliRun | null = null;
afterAll(async () => {
  demo?.process.kill('SIGINT');
  await demo?.ended;
});

test('the sign-in page says how to sign in, and a pasted token leads to the visitor’s destination', async () => {
  const page = await site.load('/agents');
  await page.getByText('Get a sign-in link').waitFor();
  await page.getByLabel('Token').fill('not-the-token-of-this-server');
  await page.getByRole('button').click();
  await page.waitForURL(/reason=wrong-token/);
  expect(await page.getByLabel('Token').getAttribute('aria-invalid')).toBe('true');
  await page.getByLabel('Token').fill(site.server.token);
  await page.getByRole('button').click();
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/agents');
  await site.context.clearCookies();
  await page.close();
});

test('the start page lists the same ways to connect an agent as the terminal, and keeps no token in its address', async () => {
  const page = await site.load(`/sign-in?token=${site.server.token}`);
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  expect(page.url()).toBe(`${site.server.url}/`);
  await page.getByText('npx interlude demo').waitFor();
  await page.getByText(CONNECT).click();
  for (const way of ['runner claude', 'hooks install']) await page.getByText(`npx interlude ${way}`).waitFor();
  for (const way of ['runner claude', 'hooks install', 'runner hooks', 'replay']) {
    expect(site.server.output).toContain(`npx interlude ${way}`);
  }
  await live(page);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.close();
});

test('a sign-in link works once, under the server’s local name, and the server’s log has no secret', async () => {
  expect(site.server.output).toContain('npx interlude sign-in');
  for (const secret of ['?token=', 'ilc_', site.server.token]) expect(site.server.output).not.toContain(secret);
  const { stdout } = await runCli(['sign-in'], {
    INTERLUDE_DATA_DIR: site.server.dataDir,
    INTERLUDE_TOKEN: site.server.token,
    INTERLUDE_URL: site.server.url,
  });
  const link = stdout.trim();
  expect(link).toMatch(/\?token=ilc_/);
  const page = await site.context.newPage();
  await page.goto(link);
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  const { hostname, port } = new URL(page.url());
  expect(hostname).toMatch(/^interlude-\w{8}\.localhost$/);
  expect(port).toBe(new URL(site.server.url).port);
  expect(site.server.output).toContain(`Browsers on this machine are redirected to http://${hostname}:${port}`);
  // An open page would show that it is signed out.
  await page.goto('about:blank');
  await site.context.clearCookies({ name: 'interlude', domain: hostname });
  await page.goto(link);
  await page.waitForURL(/\/signed-out\?reason=old-link/);
  await page.close();
});

test('the demo’s sessions appear on the start page without a reload', async () => {
  const page = await site.load(`/sign-in?token=${site.server.token}`);
  const nav = page.getByRole('navigation', { name: 'Sessions' });
  await page.getByRole('heading', { name: 'Nothing is running yet' }).waitFor();
  demo = startCli(['demo'], {
    INTERLUDE_DATA_DIR: site.server.dataDir,
    INTERLUDE_TOKEN: site.server.token,
    INTERLUDE_URL: site.server.url,
  });
  await expect.poll(() => nav.getByRole('link').count()).toBeGreaterThanOrEqual(6);
  await site.leave(page);
});

test('a replayed demo session accepts no message, says so, and links to the answering agent', async () => {
  const sessions = async () => (await site.read<{ sessions: SessionSummary[] }>('/sessions')).sessions;
  const working = async () =>
    (await sessions()).filter(
      ({ state, agentId }) => agentId !== ASSISTANT && (state === 'working' || state === 'needs-input'),
    );
  await expect.poll(async () => (await working()).length).toBeGreaterThan(0);
  // The one with the most time left; a session that is ending accepts nothing.
  const say = async () => {
    const [one] = (await working()).sort((a, b) => b.startedAt - a.startedAt);
    const response = await fetch(`${site.server.url}/api/v1/sessions/${encodeURIComponent(one?.id ?? '')}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'are you there?', clientId: 'newcomer-1' }),
    });
    return { id: one?.id, status: response.status };
  };
  let notice = await say();
  while (notice.status === 409 || notice.id === undefined) notice = await say();
  expect(notice.status).toBe(202);
  const page = await site.open(`/sessions/${notice.id}`);
  await live(page);
  const instead = page.getByRole('region', { name: 'Composer' });
  await instead.getByText('this agent replays a recording and can’t answer messages').waitFor();
  expect(await page.getByRole('textbox', { name: /^Message to/ }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /^(?:Interrupt|Allow|Deny|Stop )/ }).count()).toBe(0);

  await transcriptOf(page)
    .getByText(/this agent replays a recording and can’t answer messages/)
    .first()
    .waitFor();

  await instead.getByRole('link', { name: `Write to “${ASSISTANT}” instead` }).click();
  await page.getByRole('textbox', { name: `Message to “${ASSISTANT}”` }).waitFor();
  await page.close();
});
