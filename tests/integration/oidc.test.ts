import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError, toResponse } from '@interlude/protocol/errors';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ProviderLogout } from '@/lib/server/access/oidc/logout-tokens';
import { oidcSettings } from '@/lib/server/access/oidc/oidc-settings';
import { OidcSignIn } from '@/lib/server/access/oidc/oidc-sign-in';
import { type Account, IdentityProvider } from '@/tests/support/identity-provider';
import { CookieBrowser } from '@/tests/support/team-stage';

const PUBLIC_URL = 'https://interlude.example.com';
/** Encrypts sign-ins in progress. */
const KEY = new Uint8Array(32).fill(7);
const MINUTE = 60_000;
const ADA = { subject: 'ada', email: null };

/** Sign-outs this server was notified of, or the error it returned. */
const notified: (ProviderLogout | Response)[] = [];
/** Holds the server that the provider calls back. */
const backChannel = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const answer = await interlude
    .backChannelLogout(new Request(PUBLIC_URL, { method: 'POST', body }), async (logout) => {
      notified.push(logout);
      return new Response(null);
    })
    .catch(toResponse);
  if (!answer.ok) notified.push(answer);
  lastToken = new URLSearchParams(body).get('logout_token') ?? '';
  response.writeHead(answer.status).end();
});
let lastToken = '';
let identity: IdentityProvider;
let interlude: OidcSignIn;
let now: number;
const log = vi.spyOn(console, 'error').mockImplementation(() => {});

function signInWith(env: Record<string, string> = {}): OidcSignIn {
  const settings = oidcSettings({
    INTERLUDE_OIDC_ISSUER: identity.issuer,
    INTERLUDE_OIDC_CLIENT_ID: 'interlude',
    INTERLUDE_OIDC_CLIENT_SECRET: 'the secret of interlude',
    INTERLUDE_OIDC_SCOPES: 'openid profile email groups',
    INTERLUDE_OIDC_ADMIN_GROUPS: 'admins',
    INTERLUDE_OIDC_OPERATOR_GROUPS: 'on call, developers',
    INTERLUDE_OIDC_VIEWER_GROUPS: 'staff',
    INTERLUDE_PUBLIC_URL: PUBLIC_URL,
    ...env,
  });
  if (settings === null) throw new Error('no settings');
  return new OidcSignIn(settings, () => now);
}

/** Starts a sign-in in a browser, and completes the provider's part. */
async function returnFrom(browser: CookieBrowser, next: string | null = '/sessions/s1', at = interlude): Promise<URL> {
  const address = new URL('/sign-in/provider', PUBLIC_URL);
  const response = await at.begin(browser.request(address), next, KEY);
  expect(response.status).toBe(303);
  browser.keep(address, response.headers);
  return (await browser.follow(response.headers.get('location') ?? '')).url;
}

const finish = (browser: CookieBrowser, callback: URL, at = interlude, key = KEY) =>
  at.finish(browser.request(callback), key);

async function signIn(visitor: string | null, next: string | null = '/', at = interlude) {
  identity.visitor = visitor;
  const browser = new CookieBrowser();
  return finish(browser, await returnFrom(browser, next, at), at);
}

function refusal(code: string, message: RegExp) {
  return (error: unknown) => error instanceof AppError && error.code === code && message.test(error.message);
}

beforeAll(async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
  vi.spyOn(console, 'info').mockImplementation(() => {});
  await new Promise<void>((listening) => backChannel.listen(0, '127.0.0.1', listening));
  const backChannelUrl = `http://127.0.0.1:${(backChannel.address() as AddressInfo).port}/`;
  identity = await IdentityProvider.start({}, [
    { id: 'interlude', secret: 'the secret of interlude', publicUrl: PUBLIC_URL, backChannelUrl },
    { id: 'another', secret: 'the secret of another', publicUrl: PUBLIC_URL, backChannelUrl },
  ]);
});

beforeEach(() => {
  const accounts: Record<string, Account> = {
    ada: { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true, groups: ['admins', 'staff'] },
    grace: { name: 'Grace Hopper', email: 'grace@example.com', email_verified: true, groups: ['developers'] },
    vera: { groups: ['staff'] },
    nobody: { name: 'No Body', email: 'no@example.com', email_verified: true, groups: ['elsewhere'] },
  };
  Object.assign(identity.accounts, accounts);
  now = Date.now();
  interlude = signInWith();
  notified.length = 0;
  log.mockClear();
});

afterAll(async () => {
  await identity.stop();
  await new Promise((closed) => backChannel.close(closed));
  vi.restoreAllMocks();
});

describe('a sign-in', () => {
  test('returns the person, their role and their destination', async () => {
    identity.visitor = 'ada';
    const browser = new CookieBrowser();
    const callback = await returnFrom(browser, '/sessions/s1?tab=tasks');
    expect(callback.origin + callback.pathname).toBe(`${PUBLIC_URL}/sign-in/callback`);
    const person = await finish(browser, callback);
    expect(person).toEqual({
      issuer: identity.issuer,
      subject: 'ada',
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      role: 'admin',
      providerSessionId: expect.stringMatching(/.+/),
      refreshToken: expect.stringMatching(/.+/),
      idToken: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      next: '/sessions/s1?tab=tasks',
      clearedCookie: expect.stringContaining('Max-Age=0'),
    });
    browser.keep(callback, new Headers({ 'set-cookie': person.clearedCookie }));
    expect(browser.cookiesFor(callback)).toBe('');
  });

  test('is refreshed with its refresh token only', async () => {
    const { refreshToken } = await signIn('ada');
    const again = await interlude.refresh(ADA, refreshToken ?? '', async () => {});
    expect(again).toMatchObject({ name: 'Ada Lovelace', email: 'ada@example.com', role: 'admin' });
    expect(await interlude.refresh(ADA, 'made-up', async () => {})).toBe(null);
  });

  test('refuses a refresh for another subject', async () => {
    const { refreshToken } = await signIn('vera');
    await expect(interlude.refresh(ADA, refreshToken ?? '', async () => {})).rejects.toSatisfy(
      refusal('unavailable', /is unreachable or sent an invalid response/),
    );
  });

  test('is named by its subject when the provider returns no name', async () => {
    expect(await signIn('vera')).toMatchObject({ subject: 'vera', name: 'vera', email: null, role: 'viewer' });
  });

  test('sends a code challenge, state and nonce, and exposes none of their secrets', async () => {
    const response = await interlude.begin(new Request(PUBLIC_URL), '/', KEY);
    const query = new URL(response.headers.get('location') ?? '').searchParams;
    expect(Object.fromEntries(query)).toMatchObject({
      response_type: 'code',
      client_id: 'interlude',
      code_challenge_method: 'S256',
      redirect_uri: `${PUBLIC_URL}/sign-in/callback`,
      scope: 'openid profile email groups',
    });
    expect(response.headers.get('cache-control')).toBe('no-store');
    const [cookie = ''] = response.headers.getSetCookie();
    expect(cookie).toMatch(
      /^__Secure-interlude-oidc-[\w-]{43}=\S+; Path=\/sign-in; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/,
    );
    expect(cookie).not.toContain(query.get('nonce'));
    expect(query.get('nonce')).toMatch(/^[\w-]{43}$/);
  });

  test('works in a second tab without breaking the first', async () => {
    identity.visitor = 'ada';
    const browser = new CookieBrowser();
    const first = await returnFrom(browser, '/first');
    const second = await returnFrom(browser, '/second');
    expect((await finish(browser, second)).next).toBe('/second');
    expect((await finish(browser, first)).next).toBe('/first');
  });

  test('keeps the newest five in progress', async () => {
    identity.visitor = 'ada';
    const browser = new CookieBrowser();
    const callbacks: URL[] = [];
    for (let tab = 0; tab < 7; tab++) {
      callbacks.push(await returnFrom(browser, `/${tab}`));
      now += 1000;
    }
    const last = callbacks[6] as URL;
    expect(browser.cookiesFor(last).split('; ')).toHaveLength(5);
    expect((await finish(browser, last)).next).toBe('/6');
    await expect(finish(browser, callbacks[0] as URL)).rejects.toSatisfy(
      refusal('malformed', /no such sign-in in progress/),
    );
  });

  test('completes on an instance that did not start it', async () => {
    identity.visitor = 'ada';
    const browser = new CookieBrowser();
    const callback = await returnFrom(browser);
    expect((await finish(browser, callback, signInWith())).subject).toBe('ada');
  });

  test.each([
    ['a site', 'https://evil.example/'],
    ['a host', '//evil.example'],
    ['a host after a backslash', '/\\evil.example'],
    ['a host after a tab', '/\t/evil.example'],
    ['a script', 'javascript:alert(1)'],
    ['more than a cookie can hold', `/${'x'.repeat(2000)}`],
    ['nothing', null],
  ])('redirects only within this server when given %s', async (_, next) => {
    expect((await signIn('ada', next)).next).toBe('/');
  });
});

describe('a role', () => {
  test('is determined at each sign-in', async () => {
    expect((await signIn('grace')).role).toBe('operator');
    identity.accounts.grace = { groups: ['staff'] };
    expect((await signIn('grace')).role).toBe('viewer');
    identity.accounts.grace = { groups: [] };
    expect((await signIn('grace')).role).toBeNull();
  });

  test('is required, and its absence is explained', async () => {
    expect((await signIn('nobody')).role).toBeNull();
  });

  test('is admin for the configured admin’s email if the provider has verified it', async () => {
    const at = signInWith({ INTERLUDE_FIRST_ADMIN: 'no@example.com' });
    expect((await signIn('nobody', '/', at)).role).toBe('admin');
    identity.accounts.nobody = { email: 'no@example.com', email_verified: false };
    expect((await signIn('nobody', '/', at)).role).toBeNull();
    identity.accounts.nobody = { email: 'no@example.com' };
    expect((await signIn('nobody', '/', at)).role).toBeNull();
  });
});

describe('an invalid callback', () => {
  let browser: CookieBrowser;
  let callback: URL;

  beforeEach(async () => {
    identity.visitor = 'ada';
    browser = new CookieBrowser();
    callback = await returnFrom(browser);
  });

  const changed = (change: (query: URLSearchParams) => void) => {
    const url = new URL(callback);
    change(url.searchParams);
    return url;
  };

  test('is refused without a state, with a wrong one or with two', async () => {
    await expect(
      finish(
        browser,
        changed((q) => q.delete('state')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /no state/));
    await expect(
      finish(
        browser,
        changed((q) => q.set('state', 'x')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /no such sign-in in progress/));
    await expect(
      finish(
        browser,
        changed((q) => q.append('state', 'x')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /"state"/));
    expect((await finish(browser, callback)).subject).toBe('ada');
  });

  test('is refused without the issuer or with another', async () => {
    await expect(
      finish(
        browser,
        changed((q) => q.delete('iss')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /"iss"/));
    await expect(
      finish(
        browser,
        changed((q) => q.set('iss', 'https://evil.example')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /"iss"/));
  });

  test('is refused without a code, with a made-up one or with that of another sign-in', async () => {
    const other = await returnFrom(new CookieBrowser());
    const code = other.searchParams.get('code') ?? '';
    await expect(
      finish(
        browser,
        changed((q) => q.delete('code')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /code/));
    await expect(
      finish(
        browser,
        changed((q) => q.set('code', 'x')),
      ),
    ).rejects.toSatisfy(refusal('malformed', /rejected this/));
    await expect(
      finish(
        browser,
        changed((q) => q.set('code', code)),
      ),
    ).rejects.toSatisfy(refusal('malformed', /rejected this/));
  });

  test('is refused when it is repeated', async () => {
    expect((await finish(browser, callback)).subject).toBe('ada');
    await expect(finish(browser, callback)).rejects.toSatisfy(refusal('malformed', /already used/));
  });

  test('is refused in a browser that did not start the sign-in', async () => {
    await expect(finish(new CookieBrowser(), callback)).rejects.toSatisfy(
      refusal('malformed', /no such sign-in in progress/),
    );
    const another = new CookieBrowser();
    await returnFrom(another);
    await expect(finish(another, callback)).rejects.toSatisfy(refusal('malformed', /no such sign-in in progress/));
  });

  test('is refused with another sign-in’s cookie under its own name', async () => {
    const another = new CookieBrowser();
    const theirs = await returnFrom(another);
    const value = another.cookiesFor(theirs).split('=')[1];
    const name = browser.cookiesFor(callback).split('=')[0];
    const request = new Request(callback, { headers: { cookie: `${name}=${value}` } });
    await expect(interlude.finish(request, KEY)).rejects.toSatisfy(refusal('malformed', /belongs to another/));
  });

  test('is refused with an altered cookie, or one encrypted with another key', async () => {
    const cookie = browser.cookiesFor(callback);
    const [name] = cookie.split('=');
    const flipped = cookie.slice(0, -3) + (cookie.at(-3) === 'A' ? 'B' : 'A') + cookie.slice(-2);
    const plain = `${btoa('{"alg":"none"}')}.${btoa('{}')}.`;
    for (const bad of [flipped, `${name}=`, `${name}=x.y.z`, `${name}=${plain}`, `${name}=%00`]) {
      const request = new Request(callback, { headers: { cookie: bad } });
      await expect(interlude.finish(request, KEY)).rejects.toSatisfy(refusal('malformed', /can’t be read/));
    }
    const another = new Uint8Array(32).fill(8);
    await expect(finish(browser, callback, interlude, another)).rejects.toSatisfy(
      refusal('malformed', /can’t be read/),
    );
  });

  test('is refused after ten minutes', async () => {
    now += 10 * MINUTE + 1000;
    await expect(finish(browser, callback)).rejects.toSatisfy(refusal('malformed', /longer than 10 minutes/));
  });

  test('reports that the person or the provider declined', async () => {
    await expect(signIn(null)).rejects.toSatisfy(refusal('forbidden', /access_denied.*declined/));
  });

  test('repeats no forged error text', async () => {
    const forged = changed((q) => {
      q.delete('code');
      q.set('error', 'Call +1 555 now');
      q.set('error_description', 'or else');
    });
    const error = await finish(browser, forged).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'forbidden' });
    expect(error.message).not.toMatch(/555|or else/);
  });
});

describe('a provider', () => {
  test('is reported when away, and required only when it returns', async () => {
    identity.visitor = 'ada';
    const browser = new CookieBrowser();
    const callback = await returnFrom(browser);
    await identity.stop();
    try {
      const restarted = signInWith();
      await expect(restarted.begin(new Request(PUBLIC_URL), '/', KEY)).rejects.toSatisfy(
        refusal('unavailable', /Try again/),
      );
      await expect(finish(browser, callback)).rejects.toSatisfy(refusal('unavailable', /Try again/));
      now += 2 * MINUTE;
      await expect(interlude.begin(new Request(PUBLIC_URL), '/', KEY)).rejects.toSatisfy(
        refusal('unavailable', /Try again/),
      );
      expect(log.mock.calls.join('\n')).toContain('ECONNREFUSED');
    } finally {
      await identity.startAgain();
    }
    expect((await finish(browser, callback)).subject).toBe('ada');
    expect((await signIn('ada')).subject).toBe('ada');
  });

  test('is reported as misconfigured when it refuses our secret', async () => {
    const at = signInWith({ INTERLUDE_OIDC_CLIENT_SECRET: 'wrong' });
    await expect(signIn('ada', '/', at)).rejects.toSatisfy(refusal('unavailable', /INTERLUDE_OIDC_CLIENT_SECRET/));
    expect(log.mock.calls.join('\n')).not.toContain('wrong');
  });
});

describe('a sign-out', () => {
  async function signedIn(visitor: string) {
    identity.visitor = visitor;
    const browser = new CookieBrowser();
    const person = await finish(browser, await returnFrom(browser));
    return { browser, person };
  }

  /** Signs out at the provider, like the provider's own page. */
  async function signOut(browser: CookieBrowser, address: string): Promise<URL> {
    const { response } = await browser.follow(address);
    const form = await response.text();
    const xsrf = /name="xsrf" value="(\w+)"/.exec(form)?.[1] ?? '';
    const action = /action="([^"]+)"/.exec(form)?.[1] ?? '';
    const body = new URLSearchParams({ xsrf, logout: 'yes' });
    return (await browser.follow(action, { method: 'POST', body })).url;
  }

  test('redirects to the provider and back, and the provider notifies the server', async () => {
    const { browser, person } = await signedIn('ada');
    const address = await interlude.endSessionUrl('/signed-out', person.idToken);
    const end = await signOut(browser, address ?? '');
    expect(end.href).toBe(`${PUBLIC_URL}/signed-out`);
    expect(notified).toEqual([
      { subject: 'ada', providerSessionId: person.providerSessionId, issuedAt: expect.closeTo(now, -4) },
    ]);
  });

  test('stays local while the provider is away', async () => {
    const restarted = signInWith();
    await identity.stop();
    expect(await restarted.endSessionUrl('/signed-out')).toBeNull();
    await identity.startAgain();
    expect(await restarted.endSessionUrl('/signed-out')).toContain(identity.issuer);
  });

  test('is accepted once, while fresh and for its audience only', async () => {
    const { browser } = await signedIn('grace');
    await signOut(browser, (await interlude.endSessionUrl('/signed-out')) ?? '');
    expect(notified).toHaveLength(1);
    const post = (at: OidcSignIn, end = async (_: ProviderLogout) => 'ended') =>
      at.backChannelLogout(new Request(PUBLIC_URL, { method: 'POST', body: `logout_token=${lastToken}` }), end);
    await expect(post(interlude)).rejects.toSatisfy(refusal('malformed', /already used/));
    const another = signInWith({ INTERLUDE_OIDC_CLIENT_ID: 'another' });
    await expect(post(another)).rejects.toSatisfy(refusal('malformed', /"aud"/));
    const restarted = signInWith();
    await expect(post(restarted, () => Promise.reject(new Error('the disk is full')))).rejects.toThrow('disk is full');
    expect(await post(restarted)).toBe('ended');
    now += 6 * MINUTE;
    await expect(post(signInWith())).rejects.toSatisfy(refusal('malformed', /"exp"|"iat"/));
  });
});
