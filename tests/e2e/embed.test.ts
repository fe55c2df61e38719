import type { Frame, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashOf, PNG } from '../support/attachments';
import { barriersInBothThemes } from '../support/barriers';
import { type EmbedStage, embedIn, embedStage } from '../support/embed-stage';
import { EventWriter } from '../support/event-writer';
import { LogWriter } from '../support/log-writer';
import { userTurn } from '../support/turn-events';
import { requestOpened, WireRunner } from '../support/wire-runner';

let it: EmbedStage;
beforeAll(async () => {
  it = await embedStage();
});
afterAll(() => it.close());

let sessions = 0;
async function aSession() {
  sessions += 1;
  const sessionId = `session-${sessions}`;
  const agent = new EventWriter(it.server, `agent-${sessions}`);
  await agent.write(sessionId, userTurn('r1', 'Hello', 'Here I am'));
  return { sessionId, agentId: `agent-${sessions}`, agent };
}

/** What embed.js told the console. */
type Told = { type: string; state?: string; message?: string; [more: string]: unknown };
const toldTo = (page: Page) => page.evaluate(() => (window as unknown as { events: Told[] }).events);
const statesOf = async (page: Page) =>
  (await toldTo(page)).flatMap(({ type, state }) => (type === 'state' ? state : []));

const asking = (id: string) =>
  requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title: 'Run it', input: { command: 'ls' } });

async function showsTranscript(frame: Frame, text = 'Here I am') {
  await frame.getByRole('log', { name: 'Transcript' }).getByText(text).waitFor();
  await frame.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
}

/** What keeps somebody from using a frame, in both themes and in consoles as wide as a desk's and a phone's. */
async function barriersIn(frame: Frame): Promise<string[]> {
  const found: string[] = [];
  for (const width of [1024, 360]) {
    await frame.page().setViewportSize({ width, height: 700 });
    found.push(...(await barriersInBothThemes(frame)).map((barrier) => `${width} px: ${barrier}`));
    const [wide, shown] = await frame.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    if (Number(wide) > Number(shown)) found.push(`${width} px: scrolls sideways by ${Number(wide) - Number(shown)} px`);
  }
  return found;
}

/** What the frame asked the dashboard for since a place in what passed. */
const askedSince = (from: number) => it.front.passed.slice(from).filter(({ path }) => path.startsWith('/api/'));

test.each([
  ['on the same site', 'sameSite', ''],
  ['of another site, with its cookies blocked', 'crossSite', ''],
  ['of another site, sandboxed without an origin', 'crossSite', '&sandbox=allow-scripts'],
  ['that is isolated from other origins', 'crossSite', '&isolated'],
] as const)('a session is shown live in a console %s', async (_where, host, more) => {
  // somebody is signed in to the dashboard in this browser, and has it open beside
  const own = await signedIn();
  await own.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
  const { sessionId, agent } = await aSession();
  const from = it.front.passed.length;
  const page = await it.open(host, `session=${sessionId}${more}`);
  const frame = await embedIn(page, it.origin);
  await showsTranscript(frame);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said while it was watched'));
  await showsTranscript(frame, 'Said while it was watched');

  // all of it by the token, none of it by the cookie that the browser has, and none of it through the dashboard's worker
  const asked = askedSince(from).filter(({ path, bearer }) => bearer?.startsWith('ile_') || path.includes(sessionId));
  expect(asked.some(({ path }) => path.startsWith('/api/v1/stream'))).toBe(true);
  expect(asked.filter(({ hasCookie, method }) => hasCookie && method !== 'OPTIONS')).toEqual([]);
  expect(await statesOf(page)).toEqual(['connected']);
  const kept = await frame
    .evaluate(() => Object.keys(localStorage))
    .catch((error: Error) => (error.message.includes('sandbox') ? [] : [error.message]));
  expect(kept).toEqual([]);
  await Promise.all([page.close(), own.close()]);
});

test('an agent’s log is shown live, and the list of sessions leads where the console decides', async () => {
  const { sessionId, agentId } = await aSession();
  const writer = new LogWriter(it.server, agentId, `${agentId}-log`);
  await writer.write([{ message: 'A line of the log' }]);
  const from = it.front.passed.length;
  const logs = await it.open('crossSite', `agentLogs=${agentId}`);
  const log = await embedIn(logs, it.origin);
  await log.getByText('A line of the log').waitFor();
  await writer.write([{ message: 'A later line' }]);
  await log.getByText('A later line').waitFor();
  expect(await barriersIn(log)).toEqual([]);
  await logs.close();

  const page = await it.open('crossSite', 'fleet');
  const fleet = await embedIn(page, it.origin);
  const address = fleet.url();
  await fleet.locator(`[data-session-row="${sessionId}"]`).click();
  await expect
    .poll(() => toldTo(page))
    .toContainEqual({
      type: 'navigate',
      to: { session: sessionId, anchor: null },
      path: `/sessions/${sessionId}`,
      url: `${it.origin}/sessions/${sessionId}`,
    });
  expect(fleet.url()).toBe(address);
  expect(await barriersIn(fleet)).toEqual([]);
  // nothing was asked of the dashboard's own pages, not even beforehand
  const known = /^\/(embed[./]|_next\/static\/|api\/v1\/)/;
  expect(it.front.passed.slice(from).filter(({ path }) => !known.test(path))).toEqual([]);
  await page.close();
});

test('a token that ends is replaced over the port, and nothing is missed or lost from sight', async () => {
  const { sessionId, agent } = await aSession();
  const before = it.console.asked;
  const page = await it.open('crossSite', `session=${sessionId}&ttl=3`);
  const frame = await embedIn(page, it.origin);
  await showsTranscript(frame);
  await frame.evaluate(() => document.querySelector('[data-turn]')?.setAttribute('data-canary', 'still here'));
  // two tokens come and go
  await expect.poll(() => it.console.asked - before).toBeGreaterThanOrEqual(3);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said under another token'));
  await showsTranscript(frame, 'Said under another token');
  expect(await frame.locator('[data-canary]').count()).toBe(1);
  expect(new Set(await statesOf(page))).toEqual(new Set(['connected']));
  await page.close();
});

test('a revoked token is asked for anew; where none comes, words say what to do, and a later one goes on', async () => {
  const { sessionId, agent } = await aSession();
  const page = await it.open('crossSite', `session=${sessionId}`);
  const frame = await embedIn(page, it.origin);
  await showsTranscript(frame);
  it.console.refuses = true;
  it.front.revoke(it.front.tokens.at(-1) ?? '');
  const words = frame.getByRole('alert').filter({ hasText: 'has given no new token' });
  await words.waitFor();
  await frame.getByText('Here I am').waitFor();
  expect(await statesOf(page)).toEqual(['connected', 'signed-out']);
  expect((await toldTo(page)).find(({ type }) => type === 'token-error')).toMatchObject({
    message: 'not signed in to the console',
  });
  expect(await barriersIn(frame)).toEqual([]);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said meanwhile'));
  it.console.refuses = false;
  await words.getByRole('button', { name: 'Try again' }).click();
  await showsTranscript(frame, 'Said meanwhile');
  await expect.poll(() => words.count()).toBe(0);
  await page.close();
});

test.each([
  ['that the server never takes', 'rubbish'],
  ['that are none', 'rubbish=none'],
])('tokens %s are not asked for without an end', async (_what, rubbish) => {
  const { sessionId } = await aSession();
  const before = it.console.asked;
  const page = await it.open('crossSite', `session=${sessionId}&${rubbish}`);
  const frame = await embedIn(page, it.origin);
  await frame.getByText('has given no token that this server takes').waitFor();
  expect(it.console.asked - before).toBe(3);
  expect(await frame.getByRole('log').count()).toBe(0);
  expect(await barriersIn(frame)).toEqual([]);
  await page.close();
});

test('a token in the fragment is used once, and is gone from the address before anything else', async () => {
  const { sessionId } = await aSession();
  const token = await tokenFor(sessionId, it.originOf('crossSite'));
  const page = await it.open('crossSite', `session=${sessionId}&token=${token}`, '/fragment');
  const frame = await embedIn(page, it.origin);
  await showsTranscript(frame);
  expect(frame.url()).toBe(`${it.origin}/embed/sessions/${sessionId}`);
  expect(await frame.evaluate(() => [location.hash, JSON.stringify(history.state)].join())).not.toContain(token);
  // nobody tells it of a theme: it follows the system's
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await frame.locator(`html.${colorScheme}`).waitFor();
  }
  await page.close();
});

test('a token is found in no address, history, page, worker name, storage or console', async () => {
  const { sessionId, agent } = await aSession();
  const from = it.front.passed.length;
  const page = await it.open('sameSite', `session=${sessionId}&ttl=4`);
  const frame = await embedIn(page, it.origin);
  await showsTranscript(frame);
  const before = it.console.asked;
  await expect.poll(() => it.console.asked).toBeGreaterThan(before);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'And on'));
  await showsTranscript(frame, 'And on');
  const used = new Set(it.front.passed.slice(from).flatMap(({ bearer }) => (bearer?.startsWith('ile_') ? bearer : [])));
  expect(used.size).toBeGreaterThan(1);
  const places = await frame.evaluate(() => [
    document.documentElement.outerHTML,
    location.href,
    document.referrer,
    window.name,
    JSON.stringify(history.state),
    JSON.stringify({ ...localStorage, ...sessionStorage }),
    ...performance.getEntries().map(({ name }) => name),
    ...Object.getOwnPropertyNames(window)
      .map((name) => Reflect.get(window, name) as unknown)
      .filter((value) => typeof value === 'string'),
  ]);
  const outside = [
    ...it.front.passed.map(({ path }) => path),
    ...it.said,
    ...it.context.serviceWorkers().map((worker) => worker.url()),
    ...page.workers().map((worker) => worker.url()),
    await page.content(),
    it.server.output,
  ];
  for (const token of used) expect([...places, ...outside].filter((text) => text.includes(token))).toEqual([]);
  await page.close();
});

test('who only looks finds nothing to act with', async () => {
  const { sessionId, agent, agentId } = await aSession();
  await agent.status(sessionId, { kind: 'test' });
  const runner = await WireRunner.connect(it.server, agentId);
  const started = { type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: 'Poll the queue' } };
  await agent.write(sessionId, [started, asking('ask-1')]);
  const page = await it.open('crossSite', `session=${sessionId}`);
  const frame = await embedIn(page, it.origin);
  const card = frame.getByRole('region', { name: /^Permission/ }).first();
  await card.getByText('You can look here, and not answer.').waitFor();
  expect(await card.getByRole('button', { name: /Allow|Deny/ }).count()).toBe(0);
  for (const name of [/^Interrupt/, /^Stop/, /^Reply/, 'Arrange this session']) {
    expect(await frame.getByRole('button', { name }).count()).toBe(0);
  }
  expect(await frame.getByRole('textbox', { name: /^Message to/ }).count()).toBe(0);
  // the list of tasks stays where there is room for it, and gives way where there is not
  const tasks = frame.getByRole('complementary', { name: 'Tasks' });
  for (const width of [1024, 360]) {
    await page.setViewportSize({ width, height: 700 });
    if (!(await tasks.isVisible())) await frame.getByRole('button', { name: '1 task', exact: true }).click();
    await tasks.getByRole('link', { name: /^Poll the queue/ }).click();
    await expect.poll(() => tasks.isVisible()).toBe(width === 1024);
    if (width === 1024) await frame.getByRole('button', { name: '1 task', exact: true }).click();
  }
  expect(await barriersIn(frame)).toEqual([]);
  runner.leave();
  await page.close();
});

test('who may act writes from the frame, and approves in a window of ours', async () => {
  await (await signedIn()).close();
  const { sessionId, agent, agentId } = await aSession();
  await agent.status(sessionId, { kind: 'test' });
  const runner = await WireRunner.connect(it.server, agentId);
  await agent.write(sessionId, [asking('ask-2')]);
  const from = it.front.passed.length;
  const page = await it.open('crossSite', `session=${sessionId}&mayAct=1`);
  const frame = await embedIn(page, it.origin);
  const field = frame.getByRole('textbox', { name: `Message to ${agentId}` });
  await field.fill('From the frame');
  await field.press('Enter');
  expect((await runner.next('message')).body).toMatchObject({ text: 'From the frame' });

  const card = frame.getByRole('region', { name: /^Permission/ }).first();
  expect(await card.getByRole('button', { name: /Allow|Deny/ }).count()).toBe(0);
  expect(await barriersIn(frame)).toEqual([]);
  const opens = it.context.waitForEvent('page');
  await card.getByRole('link', { name: 'Answer in Interlude' }).click();
  const own = await opens;
  await own.waitForURL(`${it.origin}/sessions/${sessionId}#request-ask-2`);
  expect(await own.evaluate(() => window.opener)).toBeNull();
  await own
    .getByRole('region', { name: /^Permission/ })
    .first()
    .waitFor();
  expect(askedSince(from).filter(({ method, path }) => method === 'POST' && path.includes('/requests/'))).toEqual([]);
  runner.leave();
  await Promise.all([page.close(), own.close()]);
});

test('pictures and files of messages come by the token', async () => {
  const { sessionId, agentId } = await aSession();
  const bytes = Uint8Array.from(PNG);
  const sent = await fetch(`${it.server.url}/api/v1/sessions/${sessionId}/attachments?name=a.png`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'image/png' },
    body: bytes,
  });
  const { hash, name } = (await sent.json()) as { hash: string; name: string };
  await fetch(`${it.server.url}/api/v1/sessions/${sessionId}/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'See this', clientId: 'picture', attachments: [{ hash, name }] }),
  });
  await new LogWriter(it.server, agentId, `${agentId}-log`).write([{ message: 'A line to keep' }]);
  const from = it.front.passed.length;
  const page = await it.open('crossSite', `session=${sessionId}&sandbox=allow-scripts allow-downloads`);
  const frame = await embedIn(page, it.origin);
  const picture = frame.getByRole('img', { name: 'a.png' });
  await expect.poll(() => picture.evaluate((img) => (img as HTMLImageElement).naturalWidth)).toBe(1);
  const fetched = askedSince(from).filter(({ path, method }) => path.includes(hashOf(PNG)) && method === 'GET');
  expect(fetched.map(({ bearer, hasCookie }) => [bearer?.startsWith('ile_'), hasCookie])).toEqual([[true, false]]);
  const saves = page.waitForEvent('download');
  await frame.getByRole('link', { name: /a\.png/ }).click();
  expect((await saves).suggestedFilename()).toBe('a.png');
  await page.close();

  const logs = await it.open('crossSite', `agentLogs=${agentId}`);
  const log = await embedIn(logs, it.origin);
  const saved = logs.waitForEvent('download');
  await log.getByRole('link', { name: 'Download what is filtered' }).click();
  expect((await saved).suggestedFilename()).toContain(agentId);
  await logs.close();
});

test('the console sets the theme and follows the height', async () => {
  const { sessionId } = await aSession();
  const page = await it.open('crossSite', `session=${sessionId}&theme=dark&autoHeight`);
  const frame = await embedIn(page, it.origin);
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

test('opened by itself, or in a frame within a frame, the shell says why it shows nothing, and takes no token', async () => {
  const { sessionId } = await aSession();
  const token = await tokenFor(sessionId, it.originOf('crossSite'));
  const alone = await it.context.newPage();
  await alone.goto(`${it.origin}/embed/sessions/${sessionId}#token=${token}`);
  await alone.getByText('This page is made to be shown in a frame').waitFor();
  expect(alone.url()).toBe(`${it.origin}/embed/sessions/${sessionId}`);
  const around = await it.open('sameSite', `session=${sessionId}`, '/around');
  const nested = await embedIn(around, it.origin);
  await nested.getByText('This frame stands in a page that is a frame itself').waitFor();
  const used = it.front.passed.some(({ bearer }) => bearer === token);
  expect(used).toBe(false);
  for (const shell of [alone.mainFrame(), nested]) {
    expect(await shell.getByText('Here I am').count()).toBe(0);
    expect(await barriersIn(shell)).toEqual([]);
  }
  await Promise.all([alone.close(), around.close()]);
});

test('a token for another console’s pages is not used, and words say whose it is', async () => {
  const { sessionId } = await aSession();
  const page = await it.open('crossSite', `session=${sessionId}&parentOrigin=${it.originOf('sameSite')}`);
  const frame = await embedIn(page, it.origin);
  const words = `The token that came is for frames in pages of ${it.originOf('sameSite')}`;
  await frame.getByText(words).waitFor();
  expect(await frame.getByText('Here I am').count()).toBe(0);
  expect(await barriersIn(frame)).toEqual([]);
  expect((await toldTo(page)).at(-1)).toMatchObject({ type: 'state', state: 'error' });
  const used = it.front.tokens.at(-1);
  const asked = it.front.passed.filter(({ bearer }) => bearer === used);
  expect(asked.map(({ path }) => path)).toEqual(['/api/v1/me']);
  await page.close();
});

test.each([
  ['that may not embed', 'stranger', ''],
  ['without an origin', 'crossSite', '&null'],
] as const)('a page %s gets no frame at all, and embed.js says what to look at', async (_what, host, more) => {
  const { sessionId } = await aSession();
  const page = await it.open(host, `session=${sessionId}${more}`);
  await expect
    .poll(async () => (await toldTo(page)).find(({ type }) => type === 'state'))
    .toMatchObject({ state: 'error', message: expect.stringContaining('INTERLUDE_EMBED_ORIGINS') });
  expect(page.frames().some((frame) => frame.url().startsWith(`${it.origin}/embed/`))).toBe(false);
  await page.close();
});

test('only embeds, and what is the same for everybody, may be framed or read from elsewhere', async () => {
  const headersOf = async (path: string, more: Record<string, string> = {}) =>
    (await fetch(`${it.server.url}${path}`, { redirect: 'manual', headers: more })).headers;
  const embed = await headersOf('/embed/fleet');
  expect(embed.get('content-security-policy')).toContain(
    `frame-ancestors ${it.originOf('sameSite')} ${it.originOf('crossSite')}`,
  );
  expect(Object.fromEntries(embed)).toMatchObject({
    'cross-origin-resource-policy': 'cross-origin',
    'cross-origin-embedder-policy': 'require-corp',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  });
  for (const name of ['x-frame-options', 'cross-origin-opener-policy', 'access-control-allow-origin', 'set-cookie']) {
    expect([name, embed.get(name)]).toEqual([name, null]);
  }
  const text = await (await fetch(`${it.server.url}/embed/fleet`)).text();
  const script = /src="(\/_next\/static\/[^"]+\.js)"/.exec(text)?.[1] ?? '';
  for (const path of ['/embed.js', script]) {
    const given = await headersOf(path);
    expect(given.get('access-control-allow-origin')).toBe('*');
    expect(given.get('cross-origin-resource-policy')).toBe('cross-origin');
  }
  for (const path of [
    '/',
    '/signed-out',
    '/embed',
    '/embed/other',
    '/embed/fleet/x',
    '/embed.jsx',
    '/sessions/embed',
    '/api/v1/sessions',
  ]) {
    const own = await headersOf(path);
    expect([path, own.get('x-frame-options')]).toEqual([path, 'DENY']);
    expect([path, own.get('access-control-allow-origin')]).toEqual([path, null]);
    expect([path, own.get('cross-origin-resource-policy')]).toEqual([path, 'same-origin']);
  }
  expect((await headersOf('/api/v1/sessions', { origin: 'null' })).get('access-control-allow-origin')).toBe('*');
});

/** The dashboard itself, in the same browser. */
async function signedIn(): Promise<Page> {
  const own = await it.context.newPage();
  await own.goto(`${it.origin}/sign-in?token=${it.server.token}`);
  // over plain http a browser does not say that nobody led it there
  await own.getByRole('button', { name: 'Sign in' }).click();
  return own;
}

async function tokenFor(sessionId: string, parentOrigin: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${it.front.port}/api/v1/embed-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.server.token}` },
    body: JSON.stringify({ sessionId, parentOrigin }),
  });
  return ((await answer.json()) as { token: string }).token;
}
