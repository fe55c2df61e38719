import { describe, expect, test } from 'vitest';
import { type AccessSettings, accessSettings } from '@/lib/access/access-settings';
import { sameSecret } from '@/lib/access/digest';
import { checkHost } from '@/lib/access/host';
import { isLiveSession, makeSession, sessionOf } from '@/lib/access/session-cookie';

const TOKEN = 'a-token-of-enough-characters';
const settingsOf = (env: Record<string, string>): AccessSettings => accessSettings({ INTERLUDE_TOKEN: TOKEN, ...env });

describe('the settings', () => {
  test('wants a token, and a long one', () => {
    expect(() => accessSettings({})).toThrow('INTERLUDE_TOKEN is not set');
    expect(() => accessSettings({ INTERLUDE_TOKEN: '  ' })).toThrow('not set');
    expect(() => accessSettings({ INTERLUDE_TOKEN: 'x'.repeat(15) })).toThrow('too short');
    expect(accessSettings({ INTERLUDE_TOKEN: ` ${'x'.repeat(16)} ` }).token).toBe('x'.repeat(16));
  });
});

describe('the Host', () => {
  const isTaken = (host: string, env: Record<string, string> = {}) => {
    try {
      checkHost(new Request('http://127.0.0.1/', { headers: { host } }), settingsOf(env));
      return true;
    } catch {
      return false;
    }
  };

  test('may be a name that was allowed, with any port', () => {
    const env = { INTERLUDE_ALLOWED_HOSTS: 'Dash.Example, other.example ,' };
    expect(isTaken('dash.example', env)).toBe(true);
    expect(isTaken('DASH.example:8443', env)).toBe(true);
    expect(isTaken('other.example', env)).toBe(true);
    expect(isTaken('example', env)).toBe(false);
    expect(isTaken('x.dash.example', env)).toBe(false);
    expect(isTaken('', env)).toBe(false);
  });

  test('may be the address the server listens on', () => {
    expect(isTaken('192.168.1.5:4319', { HOST: '192.168.1.5' })).toBe(true);
    expect(isTaken('192.168.1.6:4319', { HOST: '192.168.1.5' })).toBe(false);
    expect(isTaken('[fd00::1]:4319', { HOST: 'fd00::1' })).toBe(true);
  });

  test('may be any address, but no other name, when the server listens everywhere', () => {
    for (const HOST of ['0.0.0.0', '::']) {
      expect(isTaken('192.168.1.5:4319', { HOST })).toBe(true);
      expect(isTaken('[fd00::1]', { HOST })).toBe(true);
      expect(isTaken('evil.example', { HOST })).toBe(false);
      expect(isTaken('1.2.3.4.evil.example', { HOST })).toBe(false);
    }
    expect(isTaken('192.168.1.5')).toBe(false);
  });
});

describe('a session', () => {
  const now = 1_795_170_000_000;
  const month = 30 * 24 * 60 * 60 * 1000;

  test('lives for thirty days', async () => {
    const session = await makeSession(TOKEN, now);
    expect(await isLiveSession(session, TOKEN, now)).toBe(true);
    expect(await isLiveSession(session, TOKEN, now + month - 1)).toBe(true);
    expect(await isLiveSession(session, TOKEN, now + month)).toBe(false);
  });

  test('ends with the token it was made of', async () => {
    expect(await isLiveSession(await makeSession(TOKEN, now), `${TOKEN}x`, now)).toBe(false);
  });

  test('is read from the cookie of its name only', () => {
    const read = (cookie: string) => sessionOf(new Headers({ cookie }));
    expect(read('interlude=1.a')).toBe('1.a');
    expect(read('x=1; interlude=1.a=; y=2')).toBe('1.a=');
    expect(read('xinterlude=1; interludex=2')).toBeNull();
    expect(read('interlude')).toBeNull();
    expect(sessionOf(new Headers())).toBeNull();
  });
});

describe('comparing secrets', () => {
  test('finds equal ones equal and nothing else', () => {
    expect(sameSecret(TOKEN, TOKEN)).toBe(true);
    for (const other of ['', 'a', `${TOKEN}${TOKEN}`, TOKEN.slice(1), `${TOKEN}\0`, TOKEN.replace('a', 'b')]) {
      expect([other, sameSecret(other, TOKEN), sameSecret(TOKEN, other)]).toEqual([other, false, false]);
    }
    expect(sameSecret('', '')).toBe(false);
  });
});
