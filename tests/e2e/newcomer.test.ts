import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCli } from '../support/cli';
import { isFocused, live } from '../support/transcript-page';
import { type Visit, visit } from '../support/visit';

let it: Visit;
beforeAll(async () => {
  it = await visit({ signedIn: false });
});
afterAll(() => it.close());

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
  await page.getByText('npm start -- --demo').waitFor();
  await page.getByText('interlude -- replay').waitFor();
  await page.getByText('interlude -- runner claude').waitFor();
  await page.getByText('interlude -- hooks install').waitFor();
  await live(page);
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
  const demo = startCli(['demo'], {
    INTERLUDE_DATA_DIR: it.server.dataDir,
    INTERLUDE_TOKEN: it.server.token,
    INTERLUDE_URL: it.server.url,
  });
  try {
    await nav.getByRole('link').first().waitFor();
    const appearedAt = performance.now();
    await expect.poll(() => nav.getByRole('link').count()).toBeGreaterThanOrEqual(6);

    const woken = nav.getByRole('link').filter({ hasText: 'Woke by itself' }).first();
    await woken.click({ timeout: 10_000 });
    const turn = page.getByRole('article', { name: /^Between-run turn: woken by .+ \(\w+(, exit \d+)?\)/ }).last();
    await turn.waitFor();
    expect(performance.now() - appearedAt).toBeLessThan(10_000);

    const toCard = turn.locator('header').getByRole('link').first();
    const description = (await toCard.textContent()) ?? '';
    await toCard.click();
    const card = page.getByRole('group', { name: new RegExp(`^Task ${escaped(description)}: `) }).first();
    await expect.poll(() => isFocused(card)).toBe(true);
    await card.getByRole('link', { name: 'Woke the agent' }).click();
    await expect.poll(() => isFocused(turn)).toBe(true);
  } finally {
    demo.process.kill('SIGINT');
    await demo.ended;
  }
});

test('no page had anything to complain about', () => {
  expect(it.complaints).toEqual([]);
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
