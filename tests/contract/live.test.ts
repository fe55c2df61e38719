import { beforeAll, describe, expect, test } from 'vitest';
import { liveServer, type ServerTarget } from '../support/server-target';
import { describeAccessContract } from './access-contract';
import { describeContract, sharedServer } from './contract';
import { describeReadsContract } from './reads-contract';

/** The contract against `npm start`: failures here only are failures of the front door. */
const shared = sharedServer(liveServer);

describeContract('npm start', shared);
describeAccessContract('npm start', shared);
// On its own server: the records of other suites keep changing state over time.
describeReadsContract('npm start', liveServer);

describe('pages of npm start', () => {
  let target: ServerTarget;
  let cookie = '';

  beforeAll(async () => {
    target = await shared();
    const signIn = await target.send(`/sign-in?token=${target.token}`);
    cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  });

  test('redirect a visitor without a sign-in to the sign-in page on the requested host', async () => {
    for (const host of [new URL(target.origin).host, `localhost:${new URL(target.origin).port}`]) {
      const response = await target.send('/sessions/a%2Fb?turn=1', { headers: { host } });
      expect(response.status).toBe(307);
      const location = new URL(response.headers.get('location') ?? '', `http://${host}`);
      expect(location.href).toBe(`http://${host}/signed-out?next=%2Fsessions%2Fa%252Fb%3Fturn%3D1`);
      expect((await target.send(location.pathname, { headers: { host } })).status).toBe(200);
    }
  });

  test('open for a signed-in visitor, and run only scripts with their nonce', async () => {
    const response = await target.send('/', { headers: { cookie } });
    expect(response.status).toBe(200);
    const nonce = /'nonce-([^']+)'/.exec(response.headers.get('content-security-policy') ?? '')?.[1];
    const scripts = [...(await response.text()).matchAll(/<script\b[^>]*>/g)].map(([tag]) => tag);
    expect(scripts.length).toBeGreaterThan(0);
    for (const tag of scripts) expect(tag).toContain(`nonce="${nonce}"`);
  });

  test('send headers against framing, sniffing and referrers, like API responses', async () => {
    for (const path of ['/', '/signed-out', '/api/v1/sessions', '/healthz', '/no-such-page']) {
      const { headers } = await target.send(path, { headers: { cookie } });
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('same-origin');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(headers.get('x-powered-by')).toBeNull();
    }
  });

  test('have no image optimizer', async () => {
    const image = '/_next/image?url=%2Freadme%2Fsession.png&w=640&q=75';
    expect((await target.send(image)).status).toBe(404);
    expect((await target.send(image, { headers: { cookie } })).status).toBe(404);
  });

  test('are not served under another host name', async () => {
    const response = await target.send('/', { headers: { cookie, host: 'evil.example' } });
    expect(response.status).toBe(421);
  });
});

describe('npm start', () => {
  test('sends bye to its streams and exits when it is stopped', async () => {
    const own = await liveServer();
    const reader = await own.stream('topic=fleet');
    await reader.frame('up-to-date');
    const closed = own.close({ keepStreams: true });
    expect((await reader.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } });
    await closed;
  });
});
