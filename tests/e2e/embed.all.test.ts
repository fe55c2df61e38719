import { afterAll, beforeAll, expect, test } from 'vitest';
import { PNG } from '../support/attachments';
import {
  apiRequestsSince,
  type EmbedStage,
  embedEvents,
  embedIn,
  embedStage,
  embedStates,
  embedToken,
  expectLiveByTokenAlone,
  newSession,
  showsTranscript,
} from '../support/embed-stage';
import { LogWriter } from '../support/log-writer';
import { userTurn } from '../support/turn-events';

let site: EmbedStage;
beforeAll(async () => {
  site = await embedStage();
});
afterAll(() => site.close());

test.each([
  ['on the same site', 'sameSite', ''],
  ['sandboxed without an origin', 'crossSite', '&sandbox=allow-scripts'],
  ['in a cross-origin isolated page', 'crossSite', '&isolated'],
] as const)('a frame %s shows a live session with only its token', async (_where, host, more) => {
  await expectLiveByTokenAlone(site, host, more);
});

test('a frame replaces an expiring token without missing an event or redrawing', async () => {
  const { sessionId, agent } = await newSession(site);
  const before = site.console.asked;
  const page = await site.open('crossSite', `session=${sessionId}&ttl=3`);
  const frame = await embedIn(page, site.origin);
  await showsTranscript(frame);
  await frame.evaluate(() => document.querySelector('[data-turn]')?.setAttribute('data-canary', 'still here'));
  // Two tokens expire.
  await expect.poll(() => site.console.asked - before).toBeGreaterThanOrEqual(3);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said under another token'));
  await showsTranscript(frame, 'Said under another token');
  expect(await frame.locator('[data-canary]').count()).toBe(1);
  expect(new Set(await embedStates(page))).toEqual(new Set(['connected']));
  await page.close();
});

test('a frame with a revoked token requests another, says when none arrives, and resumes with a later one', async () => {
  const { sessionId, agent } = await newSession(site);
  const page = await site.open('crossSite', `session=${sessionId}`);
  const frame = await embedIn(page, site.origin);
  await showsTranscript(frame);
  site.console.refuses = true;
  await site.front.revoke(site.front.tokens.at(-1) ?? '');
  const alert = frame.getByRole('alert').filter({ hasText: 'hasn’t provided a new token' });
  await alert.waitFor();
  await frame.getByText('Here I am').waitFor();
  expect(await embedStates(page)).toEqual(['connected', 'signed-out']);
  expect((await embedEvents(page)).find(({ type }) => type === 'token-error')).toMatchObject({
    message: 'not signed in to the console',
  });
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said meanwhile'));
  site.console.refuses = false;
  await alert.getByRole('button', { name: 'Try again' }).click();
  await showsTranscript(frame, 'Said meanwhile');
  await expect.poll(() => alert.count()).toBe(0);
  await page.close();
});

test.each([
  ['that the server refuses', 'rubbish'],
  ['that are empty', 'rubbish=none'],
])('a frame gives up after three tokens %s', async (_what, rubbish) => {
  const { sessionId } = await newSession(site);
  const before = site.console.asked;
  const page = await site.open('crossSite', `session=${sessionId}&${rubbish}`);
  const frame = await embedIn(page, site.origin);
  await frame.getByText('hasn’t provided a valid token').waitFor();
  expect(site.console.asked - before).toBe(3);
  expect(await frame.getByRole('log').count()).toBe(0);
  await page.close();
});

test('a frame loads pictures and files with its token', async () => {
  const { sessionId, agentId } = await newSession(site);
  const bytes = Uint8Array.from(PNG);
  const sent = await fetch(`${site.server.url}/api/v1/sessions/${sessionId}/attachments?name=a.png`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.server.token}`, 'content-type': 'image/png' },
    body: bytes,
  });
  const { hash, name } = (await sent.json()) as { hash: string; name: string };
  await fetch(`${site.server.url}/api/v1/sessions/${sessionId}/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'See this', clientId: 'picture', attachments: [{ hash, name }] }),
  });
  await new LogWriter(site.server, agentId, `${agentId}-log`).write([{ message: 'A line to keep' }]);
  const from = site.front.passed.length;
  const page = await site.open('crossSite', `session=${sessionId}&sandbox=allow-scripts allow-downloads`);
  const frame = await embedIn(page, site.origin);
  const picture = frame.getByRole('img', { name: '“a.png”' });
  await expect.poll(() => picture.evaluate((img) => (img as HTMLImageElement).naturalWidth)).toBe(1);
  // The hash in its address is the reader's own.
  const fetched = apiRequestsSince(site, from).filter(
    ({ path, method }) => path.includes('/attachments/') && method === 'GET',
  );
  expect(fetched.map(({ bearer, hasCookie }) => [bearer?.startsWith('ile_'), hasCookie])).toEqual([[true, false]]);
  const download = page.waitForEvent('download');
  await frame.getByRole('link', { name: /a\.png/ }).click();
  expect((await download).suggestedFilename()).toBe('a.png');
  await page.close();

  const logs = await site.open('crossSite', `agentLogs=${agentId}`);
  const log = await embedIn(logs, site.origin);
  const saved = logs.waitForEvent('download');
  await log.getByRole('link', { name: 'Download filtered log' }).click();
  expect((await saved).suggestedFilename()).toContain(agentId);
  await logs.close();
});

test('the console sets a frame’s theme and follows its height', async () => {
  const { sessionId } = await newSession(site);
  const page = await site.open('crossSite', `session=${sessionId}&theme=dark&autoHeight`);
  const frame = await embedIn(page, site.origin);
  await showsTranscript(frame);
  const isDark = () => frame.evaluate(() => document.documentElement.classList.contains('dark'));
  expect(await isDark()).toBe(true);
  await page.evaluate(() =>
    (window as unknown as { embed: { setTheme(theme: string): void } }).embed.setTheme('light'),
  );
  await expect.poll(isDark).toBe(false);
  const spare = () =>
    frame.evaluate(() => {
      const log = document.querySelector('[role="log"]') as HTMLElement;
      return [log.scrollHeight - log.clientHeight, innerHeight];
    });
  await expect.poll(async () => (await spare())[0]).toBeLessThanOrEqual(1);
  expect((await spare())[1]).toBeLessThan(600);
  await page.close();
});

test('a frame refuses a token for another console’s pages, and names that console', async () => {
  const { sessionId } = await newSession(site);
  const page = await site.open('crossSite', `session=${sessionId}&parentOrigin=${site.originOf('sameSite')}`);
  const frame = await embedIn(page, site.origin);
  const words = `The token is for pages from ${site.originOf('sameSite')}`;
  await frame.getByText(words).waitFor();
  expect(await frame.getByText('Here I am').count()).toBe(0);
  expect((await embedEvents(page)).at(-1)).toMatchObject({ type: 'state', state: 'error' });
  const used = site.front.tokens.at(-1);
  const requests = site.front.passed.filter(({ bearer }) => bearer === used);
  expect(requests.map(({ path }) => path)).toEqual(['/api/v1/me']);
  await page.close();
});

test('a token in the fragment is removed from the address before the frame uses it', async () => {
  const { sessionId } = await newSession(site);
  const token = await embedToken(site, sessionId);
  const page = await site.open('crossSite', `session=${sessionId}&token=${token}`, '/fragment');
  const frame = await embedIn(page, site.origin);
  await showsTranscript(frame);
  expect(frame.url()).toBe(`${site.origin}/embed/sessions/${sessionId}`);
  expect(await frame.evaluate(() => [location.hash, JSON.stringify(history.state)].join())).not.toContain(token);
  // Without a theme from its parent, the frame follows the system's.
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await frame.locator(`html.${colorScheme}`).waitFor();
  }
  await page.close();
});

test.each([
  ['that may not embed', 'stranger', ''],
  ['without an origin', 'crossSite', '&null'],
] as const)('a page %s gets no frame, and embed.js names the setting to check', async (_what, host, more) => {
  const { sessionId } = await newSession(site);
  const page = await site.open(host, `session=${sessionId}${more}`);
  await expect
    .poll(async () => (await embedEvents(page)).find(({ type }) => type === 'state'))
    .toMatchObject({ state: 'error', message: expect.stringContaining('INTERLUDE_EMBED_ORIGINS') });
  expect(page.frames().some((frame) => frame.url().startsWith(`${site.origin}/embed/`))).toBe(false);
  await page.close();
});
