import { describe, expect, test, vi } from 'vitest';
import { type AccessSettings, accessSettings, sessionIdleMs, sessionMs } from '@/lib/server/access/access-settings';
import { checkHost } from '@/lib/server/access/request-origin';
import { sameSecret } from '@/lib/server/access/secret';
import { clearedCookie, sessionCookie, sessionSecret } from '@/lib/server/access/session-cookie';

const TOKEN = 'a-token-of-enough-characters';
const settingsOf = (env: Record<string, string>): AccessSettings => accessSettings({ INTERLUDE_TOKEN: TOKEN, ...env });

describe('access settings', () => {
  test('require a token of at least 16 characters', () => {
    expect(() => accessSettings({})).toThrow('INTERLUDE_TOKEN is not set');
    expect(() => accessSettings({ INTERLUDE_TOKEN: '  ' })).toThrow('not set');
    expect(() => accessSettings({ INTERLUDE_TOKEN: 'x'.repeat(15) })).toThrow('too short');
    expect(accessSettings({ INTERLUDE_TOKEN: ` ${'x'.repeat(16)} ` }).token).toBe('x'.repeat(16));
  });
});

describe('the Host header', () => {
  const isTaken = (host: string, env: Record<string, string> = {}) => {
    try {
      checkHost(new Request('http://127.0.0.1/', { headers: { host } }), settingsOf(env));
      return true;
    } catch {
      return false;
    }
  };

  test('accepts an allowed name on any port', () => {
    const env = { INTERLUDE_ALLOWED_HOSTS: 'Dash.Example, other.example ,' };
    expect(isTaken('dash.example', env)).toBe(true);
    expect(isTaken('DASH.example:8443', env)).toBe(true);
    expect(isTaken('other.example', env)).toBe(true);
    expect(isTaken('example', env)).toBe(false);
    expect(isTaken('x.dash.example', env)).toBe(false);
    expect(isTaken('', env)).toBe(false);
  });

  test('accepts its own name below localhost, and no other', () => {
    expect(isTaken('interlude-k3.localhost:4319', { INTERLUDE_LOCAL_NAME: 'interlude-k3' })).toBe(true);
    expect(isTaken('evil.localhost:4319')).toBe(false);
    expect(isTaken('fleet.localhost', { INTERLUDE_LOCAL_NAME: 'Fleet' })).toBe(true);
    expect(isTaken('interlude.localhost')).toBe(false);
    expect(() => settingsOf({ INTERLUDE_LOCAL_NAME: 'a.b' })).toThrow('letters, digits and hyphens');
  });

  test('accepts the address that the server listens on', () => {
    expect(isTaken('192.168.1.5:4319', { HOST: '192.168.1.5' })).toBe(true);
    expect(isTaken('192.168.1.6:4319', { HOST: '192.168.1.5' })).toBe(false);
    expect(isTaken('[fd00::1]:4319', { HOST: 'fd00::1' })).toBe(true);
  });

  test('accepts any address, but no other name, when listening on all interfaces', () => {
    for (const HOST of ['0.0.0.0', '::']) {
      expect(isTaken('192.168.1.5:4319', { HOST })).toBe(true);
      expect(isTaken('[fd00::1]', { HOST })).toBe(true);
      expect(isTaken('evil.example', { HOST })).toBe(false);
      expect(isTaken('1.2.3.4.evil.example', { HOST })).toBe(false);
    }
    expect(isTaken('192.168.1.5')).toBe(false);
  });
});

describe('a sign-in', () => {
  const HOUR_MS = 3_600_000;

  test('has a configurable idle timeout: a week by default, 1 hour to 30 days', () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const idle = (hours?: string) => sessionIdleMs(hours === undefined ? {} : { INTERLUDE_SESSION_IDLE_HOURS: hours });
    expect([idle(), idle('1'), idle('720')]).toEqual([7 * 24 * HOUR_MS, HOUR_MS, 720 * HOUR_MS]);
    expect([idle('0.5'), idle('721'), idle('a day')]).toEqual(Array(3).fill(7 * 24 * HOUR_MS));
    vi.restoreAllMocks();
  });

  test('has a configurable lifetime for members: 12 hours by default, 1 hour to 30 days', () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const lasts = (hours?: string) => sessionMs(hours === undefined ? {} : { INTERLUDE_SESSION_HOURS: hours });
    expect([lasts(), lasts('1'), lasts('720')]).toEqual([12 * HOUR_MS, HOUR_MS, 720 * HOUR_MS]);
    expect([lasts('0.5'), lasts('721'), lasts('a day')]).toEqual(Array(3).fill(12 * HOUR_MS));
    vi.restoreAllMocks();
  });

  test('uses a cookie over TLS that no other host can set', () => {
    expect(sessionCookie('x', true)).toMatch(/^__Host-interlude=x; Path=\/; HttpOnly; SameSite=Lax; .*; Secure$/);
    expect(sessionCookie('x', false)).toMatch(/^interlude=x; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+$/);
    expect(sessionSecret(new Headers({ cookie: 'interlude=theirs; __Host-interlude=ours' }))).toBe('ours');
    // browsers accept `__Host-` only for the whole origin
    const attributes = 'Path=/tools/interlude; HttpOnly; SameSite=Lax; Max-Age=';
    expect(sessionCookie('x', true, '/tools/interlude')).toMatch(
      new RegExp(`^__Secure-interlude=x; ${attributes}\\d+; Secure$`),
    );
    expect(sessionCookie('x', false, '/tools/interlude')).toMatch(new RegExp(`^interlude=x; ${attributes}\\d+$`));
    expect(clearedCookie(true, '/tools/interlude')).toMatch(
      new RegExp(`^__Secure-interlude=; ${attributes}0; Secure$`),
    );
    const both = new Headers({ cookie: 'interlude=theirs; __Host-interlude=theirs; __Secure-interlude=ours' });
    expect(sessionSecret(both, '/tools/interlude')).toBe('ours');
    expect(sessionSecret(both)).toBe('theirs');
  });

  test('is read only from the cookie of its name', () => {
    const read = (cookie: string) => sessionSecret(new Headers({ cookie }));
    expect(read('interlude=1.a')).toBe('1.a');
    expect(read('x=1; interlude=1.a=; y=2')).toBe('1.a=');
    expect(read('xinterlude=1; interludex=2')).toBeNull();
    expect(read('interlude')).toBeNull();
    expect(sessionSecret(new Headers())).toBeNull();
  });
});

describe('sameSecret', () => {
  test('accepts only equal secrets', () => {
    expect(sameSecret(TOKEN, TOKEN)).toBe(true);
    for (const other of ['', 'a', `${TOKEN}${TOKEN}`, TOKEN.slice(1), `${TOKEN}\0`, TOKEN.replace('a', 'b')]) {
      expect([other, sameSecret(other, TOKEN), sameSecret(TOKEN, other)]).toEqual([other, false, false]);
    }
    expect(sameSecret('', '')).toBe(false);
  });
});
