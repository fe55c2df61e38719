import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SignInCode } from '@interlude/protocol/access';
import type { OpenApiDocument } from '@interlude/protocol/open-api';
import type { SessionList } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { buildIfStale } from '@/lib/launch/build.mjs';
import { root } from '@/lib/launch/paths.mjs';
import { runCli, startCli } from '../support/cli';
import { embedIn, embedStage } from '../support/embed-stage';
import { EventWriter } from '../support/event-writer';
import { IdentityProvider } from '../support/identity-provider';
import { rawRequest } from '../support/raw-request';
import { reservePort } from '../support/reserve-port.mjs';
import { tempDir } from '../support/temp-dir';
import { TEST_MS } from '../support/timeouts';
import { live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

/** Two parts, the second with characters that are special in a pattern. */
const BASE = '/tools/inter.lude';

let site: OwnVisit;
/** The origin of browsers on this machine. */
let pages = '';
beforeAll(async () => {
  // The build may not exist yet.
  await buildIfStale(BASE);
  site = await visitOwn({ signedIn: false, env: { INTERLUDE_BASE_PATH: BASE } });
  pages = (JSON.parse(await readFile(join(site.server.dataDir, 'server.json'), 'utf8')) as { pages: string }).pages;
}, 2 * TEST_MS);
afterAll(() => site.close());

const origin = () => new URL(site.server.url).origin;
const ask = (path: string, init: RequestInit = {}) => fetch(`${origin()}${path}`, { redirect: 'manual', ...init });
const withToken = () => ({ headers: { authorization: `Bearer ${site.server.token}` } });

/** Signed in with a link, as `npm start` prints it. */
async function signedIn(next = ''): Promise<Page> {
  const { stdout } = await runCli(['sign-in'], {
    INTERLUDE_DATA_DIR: site.server.dataDir,
    INTERLUDE_TOKEN: site.server.token,
  });
  expect(stdout).toMatch(`${site.server.url}/sign-in?token=`);
  const page = await site.context.newPage();
  await page.goto(`${stdout.trim()}${next === '' ? '' : `&next=${encodeURIComponent(next)}`}`);
  return page;
}

test('addresses below the base path answer a visitor like those without one, and all others are 404', async () => {
  const places: [string, number, string | null][] = [
    ['', 307, '/signed-out'],
    ['/', 307, '/signed-out'],
    ['?q=x', 307, '/signed-out?next=%2F%3Fq%3Dx'],
    ['/?q=x', 307, '/signed-out?next=%2F%3Fq%3Dx'],
    ['/settings', 307, '/signed-out?next=%2Fsettings'],
    ['/inbox', 307, '/signed-out?next=%2Finbox'],
    ['/sessions/s1', 307, '/signed-out?next=%2Fsessions%2Fs1'],
    ['/no/such/page', 307, '/signed-out?next=%2Fno%2Fsuch%2Fpage'],
    ['/api/v1/sessions', 401, null],
    ['/api/v1/stream', 401, null],
    ['/metrics', 401, null],
    ['/healthz', 200, null],
    ['/signed-out', 200, null],
    ['/sign-in', 303, '/signed-out'],
  ];
  for (const [path, status, location] of places) {
    const response = await ask(`${BASE}${path}`);
    expect([path, response.status]).toEqual([path, status]);
    const to = response.headers.get('location');
    expect(to && new URL(to, origin()).href).toBe(location && `${origin()}${BASE}${location}`);
    expect(await response.text()).not.toContain('Local admin');
  }
  const shown = await ask(`${BASE}/signed-out`);
  expect(shown.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(shown.headers.get('x-frame-options')).toBe('DENY');
  expect((await ask(`${BASE}/embed.js`)).headers.get('access-control-allow-origin')).toBe('*');
  // Next's internal name of the first page.
  const flight = await ask(`${BASE}?_rsc=1`, { headers: { rsc: '1', 'next-router-state-tree': '' } });
  expect(flight.status).toBe(307);

  const outside = [
    '/',
    '/settings',
    '/signed-out',
    '/sign-in',
    '/api/v1/sessions',
    '/healthz',
    '/_next/static/x',
    '/embed.js',
  ];
  for (const path of [
    ...outside,
    '/tools',
    '/tools/',
    '/tools/interxlude',
    `${BASE}x`,
    `${BASE}%2Fsettings`,
    BASE.toUpperCase(),
  ]) {
    const response = await ask(path, withToken());
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } });
  }
  const { port } = new URL(site.server.url);
  for (const path of [
    '/..',
    '/../lude/settings',
    '/../../settings',
    '/%2e%2E/settings',
    '/..%5c',
    '\\..\\settings',
    '//..//..//x',
  ]) {
    const response = await rawRequest(
      Number(port),
      `GET ${BASE}${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    );
    expect([path, [307, 308, 404].includes(response.status)]).toEqual([path, true]);
    expect(response.body).not.toContain('Local admin');
  }
});

test('no request, link or cookie of any page leaves the base path', async () => {
  const agent = new EventWriter(site.server, 'courier');
  await agent.write('s1', userTurn('r1', 'Hello', 'Here I am'));
  const runner = await WireRunner.connect(site.server, 'courier');
  onTestFinished(() => runner.leave());
  const page = await signedIn();
  await page.waitForURL(pages);
  const cookies = await site.context.cookies(pages);
  expect(cookies.map(({ name, path, httpOnly }) => [name, path, httpOnly])).toEqual([['interlude', BASE, true]]);
  expect(await site.context.cookies(new URL('/', pages).href)).toEqual([]);

  // The list, then a session from it, live.
  await live(page);
  await page
    .getByRole('link', { name: /courier/ })
    .first()
    .click();
  await page.waitForURL(`${pages}/sessions/s1`);
  await transcriptOf(page).getByText('Here I am').waitFor();
  await live(page);
  await agent.write('s1', userTurn('r2', 'Go on', 'Said while it was watched'));
  await transcriptOf(page).getByText('Said while it was watched').waitFor();
  await page.getByRole('textbox', { name: 'Message to “courier”' }).fill('To the runner');
  await page.keyboard.press('Enter');
  const command = await runner.next('message');
  expect(command.body.text).toBe('To the runner');
  await runner.acknowledge(command, 'delivered');
  await transcriptOf(page).getByText('Delivered', { exact: true }).waitFor();

  // Back to the list, whose address keeps the filter.
  await page.getByRole('link', { name: 'Interlude' }).first().click();
  await page.waitForURL(pages);
  await page.getByRole('searchbox', { name: 'Search sessions' }).fill('courier');
  await page.waitForURL(`${pages}?q=courier`);
  await page.reload();
  await page.waitForURL(`${pages}?q=courier`);
  await live(page);
  for (const path of [
    '/inbox',
    '/agents',
    '/agents/courier',
    '/agents/courier/logs',
    '/settings',
    '/settings/access',
    '/settings/audit',
    '/settings/storage',
    '/settings/api',
  ]) {
    await page.goto(`${pages}${path}`);
    await page.getByRole('heading').first().waitFor();
    const leading = await page.evaluate(() =>
      [...document.querySelectorAll('a[href], form[action], link[href], script[src], img[src]')].map(
        (one) => one.getAttribute('href') ?? one.getAttribute('action') ?? one.getAttribute('src') ?? '',
      ),
    );
    const outside = leading.filter(
      (address) => /^(\/|http:)/.test(address) && !new URL(address, pages).href.startsWith(pages),
    );
    expect([path, outside]).toEqual([path, []]);
  }
  await page.goto(`${pages}/settings/audit`);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: /^Export/ }).click(),
  ]);
  expect(await download.failure()).toBeNull();

  // On to a missing page, and then sign out.
  await page.goto(`${pages}/sessions/none`);
  await page
    .getByRole('link', { name: /sessions/i })
    .first()
    .click();
  await page.waitForURL(pages);
  await page.goto(`${pages}/settings`);
  await page.locator('main').getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.waitForURL(/\/signed-out/);
  expect(await site.context.cookies(pages)).toEqual([]);
  await page.goto(`${pages}/settings`);
  await page.waitForURL(`${pages}/signed-out?next=%2Fsettings`);
  await page.getByLabel('Token').fill(site.server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${pages}/settings`);
  await page.close();
  expect(site.complaints.filter((complaint) => !/sessions\/none/.test(complaint))).toEqual([]);
});

test('a runner posts to the address with its base path and receives its commands there', async () => {
  const home = await tempDir();
  const env = { INTERLUDE_DATA_DIR: home, INTERLUDE_TOKEN: site.server.token, INTERLUDE_URL: `${site.server.url}/` };
  const run = startCli(['demo'], env);
  onTestFinished(async () => {
    run.process.kill('SIGTERM');
    await run.ended;
  });
  const ofDemo = async () => (await site.read<SessionList>('/sessions?agent=talk-to-me')).sessions.map(({ id }) => id);
  await expect.poll(ofDemo).toHaveLength(1);
  const [sessionId] = await ofDemo();
  const page = await signedIn(`/sessions/${sessionId}`);
  await page.waitForURL(`${pages}/sessions/${sessionId}`);
  await page.getByRole('textbox', { name: 'Message to “talk-to-me”' }).fill('Ask me a question');
  await page.keyboard.press('Enter');
  await transcriptOf(page).getByText('Here is one.').waitFor();
  await page.close();
});

test('an embed shows a session below the base path, and reports links with it', async () => {
  const stage = await embedStage(BASE);
  onTestFinished(() => stage.close());
  const agent = new EventWriter(stage.server, 'shown');
  await agent.write('e1', userTurn('r1', 'Hello', 'Here in a frame'));
  const page = await stage.open('crossSite', 'session=e1');
  const frame = await embedIn(page, stage.origin);
  await transcriptOf(frame as unknown as Page)
    .getByText('Here in a frame')
    .waitFor();
  await frame.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
  await agent.write('e1', userTurn('r2', 'Go on', 'Said while it was watched'));
  await frame.getByText('Said while it was watched').waitFor();
  const list = await stage.open('crossSite', 'fleet');
  const fleet = await embedIn(list, stage.origin);
  await fleet.getByRole('link', { name: /shown/ }).first().click();
  const reported = () =>
    list.evaluate(() =>
      (window as unknown as { events: { type: string }[] }).events.filter(({ type }) => type === 'navigate'),
    );
  await expect.poll(reported).toEqual([
    {
      type: 'navigate',
      to: { session: 'e1', anchor: null },
      path: '/sessions/e1',
      url: `${stage.origin}/sessions/e1`,
    },
  ]);
  const outside = stage.front.passed.filter(({ path }) => !path.startsWith(`${BASE}/`));
  expect(outside).toEqual([]);
});

test('a sign-in with the identity provider returns below the base path', async () => {
  for (const level of ['warn', 'info'] as const) {
    const muted = vi.spyOn(console, level).mockImplementation(() => {});
    onTestFinished(() => muted.mockRestore());
  }
  const port = await reservePort();
  const publicUrl = `http://127.0.0.1:${port}${BASE}`;
  const identity = await IdentityProvider.start({ ada: { name: 'Ada Lovelace', groups: ['admins'] } }, [
    { id: 'interlude', secret: 'the secret of interlude', publicUrl },
  ]);
  onTestFinished(() => identity.stop());
  const team = await visitOwn({
    port,
    signedIn: false,
    env: {
      INTERLUDE_BASE_PATH: BASE,
      INTERLUDE_PUBLIC_URL: publicUrl,
      INTERLUDE_LOCAL_NAME: '',
      INTERLUDE_OIDC_ISSUER: identity.issuer,
      INTERLUDE_OIDC_CLIENT_ID: 'interlude',
      INTERLUDE_OIDC_CLIENT_SECRET: 'the secret of interlude',
      INTERLUDE_OIDC_SCOPES: 'openid profile email groups',
      INTERLUDE_OIDC_ADMIN_GROUPS: 'admins',
    },
  });
  onTestFinished(() => team.close());
  identity.visitor = 'ada';
  const page = await team.open('/settings?from=link');
  await page.getByRole('link', { name: /^Sign in with/ }).click();
  await page.waitForURL(`${publicUrl}/settings?from=link`);
  await page.getByText('Ada Lovelace').first().waitFor();
  const cookies = (await team.context.cookies(publicUrl)).filter(({ name }) => name.startsWith('interlude'));
  expect(cookies.map(({ name, path }) => [name, path])).toEqual([['interlude', BASE]]);
  // The provider does not choose the destination: a forged answer gets a page that links back.
  await page.goto(`${publicUrl}/sign-in/callback?state=forged&code=x`);
  await page.getByRole('link', { name: 'Go to the sign-in page' }).click();
  await page.waitForURL(`${publicUrl}/signed-out`);
});

test('the OpenAPI document names the base path', async () => {
  const document = (await (await ask(`${BASE}/api/v1/openapi.json`, withToken())).json()) as OpenApiDocument;
  expect(document.servers).toEqual([{ url: BASE, description: 'This server' }]);
  expect(Object.keys(document.paths)).toContain('/api/v1/sessions');
});

const nginx = spawnSync('nginx', ['-v']).error === undefined;

test.skipIf(!nginx).each(['', '/'])(
  'nginx forwards the base path as documented, from a location that ends in %j',
  async (end) => {
    const page = await readFile(join(root, 'docs/sub-path.md'), 'utf8');
    const [, block = ''] = /```nginx\n([\s\S]+?)```/.exec(page) ?? [];
    const location = block
      .replace('location /interlude', `location ${BASE}${end}`)
      .replace('127.0.0.1:4319', new URL(site.server.url).host);
    expect(location).toContain(`proxy_pass ${origin()};`);
    const folder = await tempDir();
    const port = await reservePort();
    const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    );
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    const server = `server { listen 127.0.0.1:${port}; ${location} }`;
    await writeFile(
      join(folder, 'nginx.conf'),
      `${user} daemon off; master_process off; pid ${folder}/pid; error_log stderr; events {}\nhttp { access_log off; ${temp.join(' ')} ${server} }`,
    );
    const proxy = spawn('nginx', ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    onTestFinished(async () => {
      proxy.kill('SIGTERM');
      if (proxy.exitCode === null) await once(proxy, 'exit');
    });
    const through = `http://127.0.0.1:${port}`;
    await expect
      .poll(() =>
        fetch(`${through}${BASE}/healthz`).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
    // Signed out, whatever nginx and Next do with the slash.
    const first = await fetch(`${through}${BASE}`);
    expect([first.status, first.url]).toEqual([200, `${through}${BASE}/signed-out`]);
    const { path } = (await (
      await ask(`${BASE}/api/v1/sign-in-codes`, { method: 'POST', ...withToken() })
    ).json()) as SignInCode;
    const entered = await fetch(`${through}${BASE}${path}`, { redirect: 'manual' });
    expect([entered.status, entered.headers.get('location')]).toEqual([303, BASE]);
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
    const home = await fetch(`${through}${BASE}`, { headers: { cookie } });
    expect(home.status).toBe(200);
    expect(await home.text()).toContain('Sessions');
    const stream = await fetch(`${through}${BASE}/api/v1/stream?topic=fleet&after=0`, withToken());
    const reader = stream.body?.pipeThrough(new TextDecoderStream() as never).getReader();
    expect(String((await reader?.read())?.value)).toContain('event: hello');
    await reader?.cancel();
  },
);
