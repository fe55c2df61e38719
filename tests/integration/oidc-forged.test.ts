import { AppError } from '@interlude/protocol/errors';
import { type CryptoKey, generateKeyPair, type JWTPayload, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ProviderLogout } from '@/lib/server/access/oidc/logout-tokens';
import { oidcSettings } from '@/lib/server/access/oidc/oidc-settings';
import { OidcSignIn } from '@/lib/server/access/oidc/oidc-sign-in';
import { ForgingProvider } from '@/tests/support/identity-provider';
import { CookieBrowser } from '@/tests/support/team-stage';

const PUBLIC_URL = 'http://localhost:4319';
const CALLBACK = `${PUBLIC_URL}/sign-in/callback`;
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

let provider: ForgingProvider;
/** Encrypts sign-ins in progress. */
const KEY = new Uint8Array(32).fill(7);
let interlude: OidcSignIn;
let strangersKey: CryptoKey;

function signInWith(env: Record<string, string> = {}, sharesDiscovery = true): OidcSignIn {
  const settings = oidcSettings({
    INTERLUDE_OIDC_ISSUER: provider.issuer,
    INTERLUDE_OIDC_CLIENT_ID: 'interlude',
    INTERLUDE_OIDC_CLIENT_SECRET: 'a secret: with + signs',
    INTERLUDE_OIDC_VIEWER_GROUPS: '*',
    INTERLUDE_OIDC_ADMIN_GROUPS: 'admins',
    INTERLUDE_PUBLIC_URL: PUBLIC_URL,
    ...env,
  });
  if (settings === null) throw new Error('no settings');
  return new OidcSignIn(settings, Date.now, sharesDiscovery);
}

const seconds = () => Math.floor(Date.now() / 1000);
const idClaims = (nonce: string): JWTPayload => ({
  iss: provider.issuer,
  aud: 'interlude',
  sub: 'ada',
  iat: seconds(),
  exp: seconds() + 60,
  nonce,
});

/** Signs in at a provider that returns this ID token. */
async function signIn(idTokenFor: (nonce: string) => Promise<string>, at = interlude) {
  const browser = new CookieBrowser();
  const response = await at.begin(new Request(PUBLIC_URL), '/', KEY);
  browser.keep(new URL(CALLBACK), response.headers);
  const query = new URL(response.headers.get('location') ?? '').searchParams;
  provider.token = async () => ({
    access_token: 'for userinfo',
    token_type: 'Bearer',
    id_token: await idTokenFor(query.get('nonce') ?? ''),
  });
  return at.finish(browser.request(`${CALLBACK}?code=c&state=${query.get('state')}`), KEY);
}

const claiming = (more: JWTPayload) => (nonce: string) => provider.sign({ claims: { ...idClaims(nonce), ...more } });

const refusedAs = (code: string, message = /./) => {
  return (error: unknown) => error instanceof AppError && error.code === code && message.test(error.message);
};

beforeAll(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  provider = await ForgingProvider.start();
  strangersKey = (await generateKeyPair('ES256')).privateKey;
});

beforeEach(() => {
  provider.metadata = {};
  provider.userinfo = { sub: 'ada' };
  provider.broken.clear();
  provider.refusing.clear();
  provider.tokenRequests.length = 0;
  provider.asked = 0;
  interlude = signInWith();
});

afterAll(async () => {
  await provider.stop();
  vi.restoreAllMocks();
});

describe('an ID token', () => {
  test('is accepted if every claim is valid', async () => {
    expect(await signIn(claiming({ name: 'Ada' }))).toMatchObject({ subject: 'ada', name: 'Ada', role: 'viewer' });
  });

  const FORGED: Record<string, (nonce: string) => Promise<string>> = {
    'another audience': claiming({ aud: 'another' }),
    'more audiences and no word on whose it is': claiming({ aud: ['interlude', 'another'] }),
    'more audiences, as another’s': claiming({ aud: ['interlude', 'another'], azp: 'another' }),
    'another issuer': claiming({ iss: 'https://evil.example' }),
    'an issuer that differs by a slash': (nonce) => claiming({ iss: `${provider.issuer}/` })(nonce),
    'another nonce': claiming({ nonce: 'another' }),
    'no nonce': claiming({ nonce: undefined }),
    'no subject': claiming({ sub: undefined }),
    'its time over': claiming({ iat: 1000, exp: 2000 }),
    'the signature of a stranger': (nonce) => provider.sign({ claims: idClaims(nonce), withKey: strangersKey }),
    'a key that nobody published': (nonce) => provider.sign({ claims: idClaims(nonce), header: { kid: 'unheard of' } }),
    'no signature': async (nonce) => new UnsecuredJWT(idClaims(nonce)).encode(),
    'the published key as a shared secret': async (nonce) =>
      provider.sign({ claims: idClaims(nonce), header: { alg: 'HS256' }, withKey: await provider.publicBytes() }),
    'our own secret as its key': async (nonce) =>
      provider.sign({
        claims: idClaims(nonce),
        header: { alg: 'HS256' },
        withKey: new TextEncoder().encode('a secret: with + signs, repeated until it is long'),
      }),
  };

  test.each(Object.keys(FORGED))('is refused with %s', async (which) => {
    await expect(signIn(FORGED[which] as (nonce: string) => Promise<string>)).rejects.toSatisfy(
      refusedAs('malformed', /doesn’t match a sign-in/),
    );
  });

  test('is required', async () => {
    await expect(signIn(async () => undefined as unknown as string)).rejects.toSatisfy(refusedAs('malformed'));
  });

  test('is refused without an internal error when it is no token', async () => {
    for (const token of ['', 'x', 'a.b.c', '{}']) {
      const error = await signIn(async () => token).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(AppError);
      expect(['malformed', 'unavailable']).toContain(error.code);
    }
  });
});

describe('an error response', () => {
  const answered = async (query: string) => {
    const browser = new CookieBrowser();
    const response = await interlude.begin(new Request(PUBLIC_URL), '/', KEY);
    browser.keep(new URL(CALLBACK), response.headers);
    const state = new URL(response.headers.get('location') ?? '').searchParams.get('state');
    return interlude.finish(browser.request(`${CALLBACK}?state=${state}&${query}`), KEY);
  };

  test('is reported with what to do', async () => {
    for (const error of ['temporarily_unavailable', 'server_error']) {
      await expect(answered(`error=${error}`)).rejects.toSatisfy(refusedAs('unavailable', /Try again in a minute/));
    }
    await expect(answered('error=invalid_scope')).rejects.toSatisfy(
      refusedAs('forbidden', /\(invalid_scope\).*tell an administrator/),
    );
  });

  test('about client authentication names our secret as the cause', async () => {
    for (const error of ['invalid_client', 'unauthorized_client']) {
      const signing = answered('code=c');
      provider.token = async () => ({ error });
      await expect(signing).rejects.toSatisfy(refusedAs('unavailable', /CLIENT_SECRET/));
    }
  });

  test('can’t inject a line into the log', async () => {
    vi.mocked(console.error).mockClear();
    await answered(`error=invalid_scope&error_description=${encodeURIComponent('x\n[interlude] all is well')}`).catch(
      () => {},
    );
    expect(vi.mocked(console.error).mock.calls).toEqual([
      [expect.stringMatching(/^[^\n]*x \[interlude\] all is well$/)],
    ]);
  });
});

describe('userinfo', () => {
  test('fills in missing claims, and overrides none', async () => {
    provider.userinfo = { sub: 'ada', name: 'Told', groups: ['admins'], sid: 'told' };
    expect(await signIn(claiming({ name: 'Signed', sid: 'signed' }))).toMatchObject({
      name: 'Signed',
      role: 'admin',
      providerSessionId: 'signed',
    });
    expect((await signIn(claiming({ groups: [] }))).role).toBe('viewer');
  });

  test('is requested with the returned token, and its refusal does not blame our secret', async () => {
    provider.refusing.add('/userinfo');
    await expect(signIn(claiming({}))).rejects.toSatisfy(refusedAs('unavailable', /Try again in a minute/));
    provider.refusing.clear();
    provider.refusing.add('/token');
    await expect(signIn(claiming({}))).rejects.toSatisfy(refusedAs('unavailable', /CLIENT_SECRET/));
  });

  test('is a displayable name for any value', async () => {
    const named = async (name: unknown) => (await signIn(claiming({ name }))).name;
    expect(await named('Ada\u202e\nLovelace\ud800')).toBe('Ada Lovelace\ufffd');
    expect(await named('x'.repeat(500))).toBe('x'.repeat(200));
    for (const none of [7, null, '', ' \u200f ', ['Ada']]) expect(await named(none)).toBe('ada');
  });

  test('is no subject that could be confused with another', async () => {
    for (const sub of ['x'.repeat(256), 'ada\ud800']) {
      provider.userinfo = { sub };
      await expect(signIn(claiming({ sub }))).rejects.toSatisfy(refusedAs('malformed'));
    }
  });

  test('must have the same subject', async () => {
    provider.userinfo = { sub: 'grace', groups: ['admins'] };
    await expect(signIn(claiming({}))).rejects.toSatisfy(refusedAs('malformed'));
  });

  test('does not verify an address that it did not name', async () => {
    const at = signInWith({ INTERLUDE_FIRST_ADMIN: 'boss@example.com' });
    provider.userinfo = { sub: 'ada', email: 'ada@example.com', email_verified: true };
    expect((await signIn(claiming({ email: 'boss@example.com' }), at)).role).toBe('viewer');
    expect((await signIn(claiming({ email: 'boss@example.com', email_verified: true }), at)).role).toBe('admin');
  });
});

describe('a provider', () => {
  test('is refused when its issuer differs from the setting', async () => {
    provider.metadata = { issuer: 'https://evil.example' };
    await expect(interlude.begin(new Request(PUBLIC_URL), '/', KEY)).rejects.toSatisfy(refusedAs('unavailable'));
  });

  test('is refused for all tenants, though the library would accept it', async () => {
    vi.stubGlobal('fetch', async () =>
      Response.json({
        issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
        authorization_endpoint: 'https://x.example',
      }),
    );
    try {
      const at = signInWith({ INTERLUDE_OIDC_ISSUER: 'https://login.microsoftonline.com/common/v2.0' });
      await expect(at.begin(new Request(PUBLIC_URL), '/', KEY)).rejects.toSatisfy(
        refusedAs('unavailable', /your tenant/),
      );
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test.each(['/.well-known/openid-configuration', '/token', '/keys', '/userinfo'])(
    'is reported when its %s is broken',
    async (path) => {
      provider.broken.add(path);
      await expect(signIn(claiming({}))).rejects.toSatisfy(refusedAs('unavailable', /Try again in a minute/));
    },
  );

  test('is discovered once for concurrent sign-ins', async () => {
    const answers = await Promise.all([1, 2, 3].map(() => interlude.begin(new Request(PUBLIC_URL), '/', KEY)));
    expect(new Set(answers.map(({ headers }) => headers.get('location'))).size).toBe(3);
    expect(provider.asked).toBe(1);
  });

  test('is discovered by each request where requests may not share promises', async () => {
    const at = signInWith({}, false);
    await Promise.all([1, 2, 3].map(() => at.begin(new Request(PUBLIC_URL), '/', KEY)));
    expect(provider.asked).toBe(3);
    await at.begin(new Request(PUBLIC_URL), '/', KEY);
    expect(provider.asked).toBe(3);
  });

  test('receives the secret with its preferred or the configured method', async () => {
    const sent = async (at: OidcSignIn) => {
      await signIn(claiming({}), at);
      const { authorization, body } = provider.tokenRequests.at(-1) ?? {};
      return { isBasic: authorization?.startsWith('Basic ') ?? false, isPost: body?.includes('client_secret=') };
    };
    expect(await sent(signInWith())).toEqual({ isBasic: true, isPost: false });
    provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post'] };
    expect(await sent(signInWith())).toEqual({ isBasic: false, isPost: true });
    expect(await sent(signInWith({ INTERLUDE_OIDC_CLIENT_AUTH: 'basic' }))).toEqual({ isBasic: true, isPost: false });
    provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'] };
    expect(await sent(signInWith({ INTERLUDE_OIDC_CLIENT_AUTH: 'post' }))).toEqual({ isBasic: false, isPost: true });
  });

  test('may be reached without TLS on this machine, which permits cookies without it', async () => {
    const [cookie] = (await interlude.begin(new Request(PUBLIC_URL), '/', KEY)).headers.getSetCookie();
    expect(cookie).toMatch(/^interlude-oidc-/);
    expect(cookie).not.toContain('Secure');
  });
});

describe('a logout token', () => {
  let count = 0;
  const logoutClaims = (more: JWTPayload = {}): JWTPayload => ({
    iss: provider.issuer,
    aud: 'interlude',
    iat: seconds(),
    exp: seconds() + 120,
    jti: `logout ${count++}`,
    sub: 'ada',
    events: { [EVENT]: {} },
    ...more,
  });
  const post = (body: BodyInit, at = interlude) =>
    at.backChannelLogout(new Request(PUBLIC_URL, { method: 'POST', body }), async (logout: ProviderLogout) => logout);
  const send = (token: string, at = interlude) => post(new URLSearchParams({ logout_token: token }), at);
  const typed = { typ: 'logout+jwt' };

  test('ends one sign-in or all of a person', async () => {
    const one = logoutClaims({ sid: 'the one' });
    const issuedAt = Number(one.iat) * 1000 + 999;
    expect(await send(await provider.sign({ claims: one, header: typed }))).toEqual({
      subject: 'ada',
      providerSessionId: 'the one',
      issuedAt,
    });
    const all = await provider.sign({ claims: logoutClaims(), header: { typ: 'JWT' } });
    expect(await send(all)).toMatchObject({ subject: 'ada', providerSessionId: null });
    const unnamed = await provider.sign({ claims: logoutClaims({ sub: undefined, sid: 'the one' }) });
    expect(await send(unnamed)).toMatchObject({ subject: null, providerSessionId: 'the one' });
  });

  const FORGED: Record<string, () => Promise<string>> = {
    'of a stranger': () => provider.sign({ claims: logoutClaims(), header: typed, withKey: strangersKey }),
    'of a key that nobody published': () => provider.sign({ claims: logoutClaims(), header: { ...typed, kid: 'x' } }),
    'without a signature': async () => new UnsecuredJWT(logoutClaims()).encode(),
    'signed with the published key as a secret': async () =>
      provider.sign({ claims: logoutClaims(), header: { alg: 'HS256' }, withKey: await provider.publicBytes() }),
    'of another type': () => provider.sign({ claims: logoutClaims(), header: { typ: 'at+jwt' } }),
    'for another audience': () => provider.sign({ claims: logoutClaims({ aud: 'another' }), header: typed }),
    'of another issuer': () => provider.sign({ claims: logoutClaims({ iss: 'https://evil.example' }), header: typed }),
    'without an issuer': () => provider.sign({ claims: logoutClaims({ iss: undefined }), header: typed }),
    'without its event': () => provider.sign({ claims: logoutClaims({ events: {} }), header: typed }),
    'with its event in a list': () => provider.sign({ claims: logoutClaims({ events: [EVENT] }), header: typed }),
    'with an event that is no object': () =>
      provider.sign({ claims: logoutClaims({ events: { [EVENT]: true } }), header: typed }),
    'that is an ID token': () => provider.sign({ claims: logoutClaims({ nonce: 'n' }), header: typed }),
    'that says nobody': () => provider.sign({ claims: logoutClaims({ sub: undefined }), header: typed }),
    'that says who by a number': () =>
      provider.sign({ claims: logoutClaims({ sub: undefined, sid: 5 }), header: typed }),
    'without an id': () => provider.sign({ claims: logoutClaims({ jti: undefined }), header: typed }),
    'with an empty id': () => provider.sign({ claims: logoutClaims({ jti: '' }), header: typed }),
    'with a number as its id': () =>
      provider.sign({ claims: logoutClaims({ jti: 5 as unknown as string }), header: typed }),
    'without a time': () => provider.sign({ claims: logoutClaims({ iat: undefined }), header: typed }),
    'of an hour ago': () =>
      provider.sign({ claims: logoutClaims({ iat: seconds() - 3600, exp: undefined }), header: typed }),
    'of an hour to come': () =>
      provider.sign({ claims: logoutClaims({ iat: seconds() + 3600, exp: undefined }), header: typed }),
    'whose time is over': () => provider.sign({ claims: logoutClaims({ exp: seconds() - 60 }), header: typed }),
    'that is no token': async () => 'x.y.z',
  };

  test.each(Object.keys(FORGED))('is refused %s', async (which) => {
    const token = await (FORGED[which] as () => Promise<string>)();
    await expect(send(token)).rejects.toSatisfy(refusedAs('malformed', /logout token is rejected/));
  });

  test('must be the only field of a form of its size', async () => {
    const token = await provider.sign({ claims: logoutClaims(), header: typed });
    for (const body of ['', 'logout_token=', `logout_token=${token}&logout_token=${token}`, `{"logout_token":"x"}`]) {
      await expect(post(body)).rejects.toSatisfy(refusedAs('malformed', /one field/));
    }
    await expect(post(`logout_token=${'x'.repeat(40_000)}`)).rejects.toSatisfy(refusedAs('too_large'));
  });

  test('is not verified with keys fetched without TLS from another machine', async () => {
    const requests: string[] = [];
    vi.stubGlobal('fetch', async (url: string | URL) => {
      requests.push(String(url));
      return Response.json({ issuer: 'https://id.example.com', jwks_uri: 'http://id.example.com/keys' });
    });
    try {
      const at = signInWith({ INTERLUDE_OIDC_ISSUER: 'https://id.example.com' });
      const token = await provider.sign({ claims: logoutClaims({ iss: 'https://id.example.com' }), header: typed });
      await expect(send(token, at)).rejects.toSatisfy(refusedAs('unavailable'));
      expect(requests).toEqual(['https://id.example.com/.well-known/openid-configuration']);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test('is not accepted while the keys are unavailable', async () => {
    const token = await provider.sign({ claims: logoutClaims(), header: typed });
    provider.broken.add('/keys');
    await expect(send(token)).rejects.toSatisfy(refusedAs('unavailable'));
    provider.broken.clear();
    expect(await send(token)).toMatchObject({ subject: 'ada' });
  });
});
