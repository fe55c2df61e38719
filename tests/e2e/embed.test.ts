import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  apiRequestsSince,
  type EmbedStage,
  embedEvents,
  embedIn,
  embedStage,
  embedToken,
  expectLiveByTokenAlone,
  newSession,
  permissionAsked,
  showsTranscript,
  signInBeside,
} from '../support/embed-stage';
import { LogWriter } from '../support/log-writer';
import { userTurn } from '../support/turn-events';
import { WireRunner } from '../support/wire-runner';

let site: EmbedStage;
beforeAll(async () => {
  site = await embedStage();
});
afterAll(() => site.close());

test('a frame on another site, with cookies blocked, shows a live session with only its token', async () => {
  await expectLiveByTokenAlone(site, 'crossSite');
});

test('frames show an agent’s log live, and report a followed link to the console instead of following it', async () => {
  const { sessionId, agentId } = await newSession(site);
  const writer = new LogWriter(site.server, agentId, `${agentId}-log`);
  await writer.write([{ message: 'A line of the log' }]);
  const from = site.front.passed.length;
  const logs = await site.open('crossSite', `agentLogs=${agentId}`);
  const log = await embedIn(logs, site.origin);
  await log.getByText('A line of the log').waitFor();
  await writer.write([{ message: 'A later line' }]);
  await log.getByText('A later line').waitFor();
  await logs.close();

  const page = await site.open('crossSite', 'fleet');
  const fleet = await embedIn(page, site.origin);
  const address = fleet.url();
  await fleet.locator(`[data-session-row="${sessionId}"]`).click();
  await expect
    .poll(() => embedEvents(page))
    .toContainEqual({
      type: 'navigate',
      to: { session: sessionId, anchor: null },
      path: `/sessions/${sessionId}`,
      url: `${site.origin}/sessions/${sessionId}`,
    });
  expect(fleet.url()).toBe(address);
  // Nothing was requested from the dashboard's own pages, not even prefetched.
  const known = /^\/(embed[./]|_next\/static\/|api\/v1\/)/;
  expect(site.front.passed.slice(from).filter(({ path }) => !known.test(path))).toEqual([]);
  await page.close();
});

test('no address, history, page, worker name, storage or console contains a token', async () => {
  const { sessionId, agent } = await newSession(site);
  const from = site.front.passed.length;
  const page = await site.open('sameSite', `session=${sessionId}`);
  const frame = await embedIn(page, site.origin);
  await showsTranscript(frame);
  const before = site.console.asked;
  await site.front.revoke(site.front.tokens.at(-1) ?? '');
  await expect.poll(() => site.console.asked).toBeGreaterThan(before);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'And on'));
  await showsTranscript(frame, 'And on');
  const used = new Set(
    site.front.passed.slice(from).flatMap(({ bearer }) => (bearer?.startsWith('ile_') ? bearer : [])),
  );
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
    ...site.front.passed.map(({ path }) => path),
    ...site.said,
    ...site.context.serviceWorkers().map((worker) => worker.url()),
    ...page.workers().map((worker) => worker.url()),
    await page.content(),
    site.server.output,
  ];
  for (const token of used) expect([...places, ...outside].filter((text) => text.includes(token))).toEqual([]);
  await page.close();
});

test('a viewer’s frame has no controls that act', async () => {
  const { sessionId, agent, agentId } = await newSession(site);
  await agent.status(sessionId, { kind: 'test' });
  const runner = await WireRunner.connect(site.server, agentId);
  const started = { type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: 'Poll the queue' } };
  await agent.write(sessionId, [started, permissionAsked('ask-1')]);
  const page = await site.open('crossSite', `session=${sessionId}`);
  const frame = await embedIn(page, site.origin);
  const card = frame.getByRole('region', { name: /^Permission/ }).first();
  await card.getByText('You can view this request, but not answer it.').waitFor();
  expect(await card.getByRole('button', { name: /Allow|Deny/ }).count()).toBe(0);
  for (const name of [/^Interrupt/, /^Stop/, /^Reply/, 'Manage this session']) {
    expect(await frame.getByRole('button', { name }).count()).toBe(0);
  }
  expect(await frame.getByRole('textbox', { name: /^Message to/ }).count()).toBe(0);
  const tasks = frame.getByRole('complementary', { name: 'Tasks' });
  for (const width of [1024, 360]) {
    await page.setViewportSize({ width, height: 700 });
    await frame.getByRole('tab', { name: 'Tasks 1' }).click();
    await tasks.getByRole('link', { name: /^Poll the queue/ }).click();
    await frame.getByRole('tab', { name: 'Transcript', selected: true }).waitFor();
    await expect.poll(() => tasks.isVisible()).toBe(false);
  }
  runner.leave();
  await page.close();
});

test('an operator’s frame sends messages, and opens the dashboard to answer a request', async () => {
  await (await signInBeside(site)).close();
  const { sessionId, agent, agentId } = await newSession(site);
  await agent.status(sessionId, { kind: 'test' });
  const runner = await WireRunner.connect(site.server, agentId);
  await agent.write(sessionId, [permissionAsked('ask-2')]);
  const from = site.front.passed.length;
  const page = await site.open('crossSite', `session=${sessionId}&mayAct=1`);
  const frame = await embedIn(page, site.origin);
  const field = frame.getByRole('textbox', { name: `Message to “${agentId}”` });
  await field.fill('From the frame');
  await field.press('Enter');
  expect((await runner.next('message')).body).toMatchObject({ text: 'From the frame' });

  const card = frame.getByRole('region', { name: /^Permission/ }).first();
  expect(await card.getByRole('button', { name: /Allow|Deny/ }).count()).toBe(0);
  const opens = site.context.waitForEvent('page');
  await card.getByRole('link', { name: 'Answer in Interlude' }).click();
  const own = await opens;
  await own.waitForURL(`${site.origin}/sessions/${sessionId}#request-ask-2`);
  expect(await own.evaluate(() => window.opener)).toBeNull();
  await own
    .getByRole('region', { name: /^Permission/ })
    .first()
    .waitFor();
  expect(
    apiRequestsSince(site, from).filter(({ method, path }) => method === 'POST' && path.includes('/requests/')),
  ).toEqual([]);
  runner.leave();
  await Promise.all([page.close(), own.close()]);
});

test('a shell outside a frame, or in a nested frame, says why it is empty and uses no token', async () => {
  const { sessionId } = await newSession(site);
  const token = await embedToken(site, sessionId);
  const alone = await site.context.newPage();
  await alone.goto(`${site.origin}/embed/sessions/${sessionId}#token=${token}`);
  await alone.getByText('This page only works in a frame').waitFor();
  expect(alone.url()).toBe(`${site.origin}/embed/sessions/${sessionId}`);
  const around = await site.open('sameSite', `session=${sessionId}`, '/around');
  const nested = await embedIn(around, site.origin);
  await nested.getByText('This frame is inside another frame').waitFor();
  const used = site.front.passed.some(({ bearer }) => bearer === token);
  expect(used).toBe(false);
  for (const shell of [alone.mainFrame(), nested]) {
    expect(await shell.getByText('Here I am').count()).toBe(0);
  }
  await Promise.all([alone.close(), around.close()]);
});

test('headers allow other sites to frame embeds only, and to read only public files', async () => {
  const headersOf = async (path: string, more: Record<string, string> = {}) =>
    (await fetch(`${site.server.url}${path}`, { redirect: 'manual', headers: more })).headers;
  const embed = await headersOf('/embed/fleet');
  expect(embed.get('content-security-policy')).toContain(
    `frame-ancestors ${site.originOf('sameSite')} ${site.originOf('crossSite')}`,
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
  const text = await (await fetch(`${site.server.url}/embed/fleet`)).text();
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
